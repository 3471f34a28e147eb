//! The open file: complete lines are appended, and the size in one of our lines can be changed in
//! place.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Stat, tell};
use rustix::io::{Errno, pread, pwrite, write};
use rustix::process::{Resource, getrlimit};

use crate::descriptor::{Descriptor, Identity};
use crate::error::{Cause, not_refused};
use crate::line;
use crate::table::Resize;

/// The open map.
#[derive(Debug)]
pub(crate) struct MapFile {
    /// Opened with `O_APPEND`: only then do the lines of several writers stay intact.
    append: Descriptor,
    /// The same file without `O_APPEND`, with which Linux appends even for `pwrite` at another
    /// offset.
    patch: Descriptor,
    /// The end of what we wrote last; initially, of what was there.
    end: u64,
    /// The file's length when it was last queried.
    seen_end: u64,
    /// Whether a line of ours, which certainly ends with a newline, is before `end`.
    ends_with_ours: bool,
    /// Number of bytes that are not ours.
    foreign: u64,
    /// `RLIMIT_FSIZE` when the file was opened. Writing beyond it would raise SIGXFSZ, which kills
    /// the process.
    limit: Option<u64>,
}

impl MapFile {
    /// Takes two descriptors of one file, the first opened with `O_APPEND`. Existing content is not
    /// ours.
    pub fn new(append: OwnedFd, patch: OwnedFd) -> Result<Self, Cause> {
        let (append, patch) = (Descriptor::new(append)?, Descriptor::new(patch)?);
        if append.identity() != patch.identity() {
            return Err(Cause::Contested);
        }
        let end = length(&append.examine()?);
        let limit = getrlimit(Resource::Fsize).current;
        Ok(MapFile {
            append,
            patch,
            end,
            seen_end: end,
            ends_with_ours: false,
            foreign: end,
            limit,
        })
    }

    pub fn identity(&self) -> Identity {
        self.append.identity()
    }

    /// The last known length of the file.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Number of bytes in it that are not ours.
    pub fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Whether the descriptors are still ours.
    pub fn is_ours(&self) -> bool {
        self.append.examine().is_ok() && self.patch.examine().is_ok()
    }

    /// Whether the file has been deleted. Called before each append, it also checks that the
    /// descriptor is still ours, and that the file was not truncated.
    pub fn is_deleted(&mut self) -> Result<bool, Cause> {
        let stat = self.append.examine()?;
        let end = length(&stat);
        if end < self.end {
            return Err(Cause::Damaged);
        }
        self.seen_end = end;
        Ok(stat.st_nlink == 0)
    }

    /// Appends complete lines with one `write`, and returns their offset.
    /// [`is_deleted`](Self::is_deleted) must be called just before.
    ///
    /// If a write is incomplete, as on a full disk, the partial last line is overwritten with
    /// newlines, so that no reader takes it for a complete line.
    pub fn append(&mut self, lines: &[u8]) -> Result<u64, Cause> {
        let end = self.seen_end.max(self.end);
        if !self.ends_with_newline(end)? {
            self.check_limit(end, 1)?;
            self.write(b"\n")?;
        }
        self.check_limit(end, lines.len())?;
        let written = self.write(lines)?;
        let mut at = self.position()?.saturating_sub(to_u64(written));
        if written < lines.len() {
            at = self.complete(lines, written, at)?;
        }
        self.foreign += at.saturating_sub(self.end);
        self.end = at + to_u64(lines.len());
        self.ends_with_ours = true;
        Ok(at)
    }

    /// Whether the line before `end` ends with a newline. If another writer did not end its line,
    /// ours would become part of it.
    fn ends_with_newline(&self, end: u64) -> Result<bool, Cause> {
        let mut last = *b"\n";
        if end > 0 && !(self.ends_with_ours && end == self.end) {
            self.read(end - 1, &mut last)?;
        }
        Ok(last == *b"\n")
    }

    fn check_limit(&self, end: u64, more: usize) -> Result<(), Cause> {
        let fits = self.limit.is_none_or(|limit| end.saturating_add(to_u64(more)) <= limit);
        if fits { Ok(()) } else { Err(Cause::SizeLimit) }
    }

    fn position(&self) -> Result<u64, Cause> {
        tell(self.append.get()?).map_err(Cause::system("tell the place in it"))
    }

    fn write(&self, bytes: &[u8]) -> Result<usize, Cause> {
        loop {
            match write(self.append.get()?, bytes) {
                Err(Errno::INTR) => {}
                other => return other.map_err(Cause::system("write it")),
            }
        }
    }

    /// Completes a short write, of which the first `written` bytes are at `at`.
    fn complete(&self, lines: &[u8], written: usize, at: u64) -> Result<u64, Cause> {
        let whole = lines[..written].iter().rposition(|&byte| byte == b'\n').map_or(0, |n| n + 1);
        let torn = (at + to_u64(whole), written - whole);
        let rest = &lines[written..];
        let cause = match self.write(rest) {
            Ok(more) => {
                let there = self.position()?.saturating_sub(to_u64(more));
                if more == rest.len() && there == at + to_u64(written) {
                    return Ok(at);
                }
                self.blank(there, more);
                // If the second write fails, too, the most common cause is a full disk.
                Cause::System { doing: "write all of it", error: Errno::NOSPC.into() }
            }
            Err(cause) => cause,
        };
        self.blank(torn.0, torn.1);
        Err(cause)
    }

    /// Overwrites a part of the file with empty lines. The space is already allocated, so this
    /// works on a full disk.
    fn blank(&self, at: u64, length: usize) {
        if let Ok(patch) = self.patch.get() {
            let _ = write_blanks(patch, length, at);
        }
    }

    /// Reads from the file into `buffer`, and returns how many bytes were read.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Cause> {
        let mut filled = 0;
        while filled < buffer.len() {
            match pread(self.patch.get()?, &mut buffer[filled..], offset + to_u64(filled)) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Cause::system("read it")(errno)),
            }
        }
        Ok(filled)
    }

    /// Changes the size in one of our lines. It reads the line first, because another writer may
    /// have overwritten it.
    pub fn resize(&self, resize: Resize) -> Result<(), Cause> {
        let mut head = [0; line::LONGEST_HEAD];
        let filled = self.read(resize.offset, &mut head)?;
        let (at, digits) = line::resized(&head[..filled], resize.address, resize.from, resize.to)?;
        // An incomplete number would be a different size.
        not_refused()?;
        let at = resize.offset + to_u64(at);
        loop {
            match pwrite(self.patch.get()?, digits.as_bytes(), at) {
                Err(Errno::INTR) => {}
                Ok(written) if written == digits.len() => return Ok(()),
                Ok(_) => return Err(Cause::Damaged),
                Err(errno) => return Err(Cause::system("write it")(errno)),
            }
        }
    }

    /// Copies what another writer appended to `old` after our last check.
    pub fn rescue(&mut self, old: &MapFile) -> Result<(), Cause> {
        let mut from = old.end;
        // Small enough for any stack.
        let mut buffer = [0; 1 << 12];
        loop {
            let filled = old.read(from, &mut buffer)?;
            if filled == 0 {
                return Ok(());
            }
            let written = self.write(&buffer[..filled])?;
            self.end += to_u64(written);
            self.foreign += to_u64(written);
            self.ends_with_ours = false;
            from += to_u64(written);
        }
    }
}

/// Writes newlines from `at` on.
fn write_blanks(patch: BorrowedFd<'_>, length: usize, at: u64) -> Result<(), Errno> {
    const BLANKS: [u8; 256] = [b'\n'; 256];
    let mut done = 0;
    while done < length {
        done += match pwrite(patch, &BLANKS[..BLANKS.len().min(length - done)], at + to_u64(done)) {
            Ok(0) => break,
            Ok(written) => written,
            Err(Errno::INTR) => 0,
            Err(errno) => return Err(errno),
        };
    }
    Ok(())
}

fn length(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

fn to_u64(length: usize) -> u64 {
    // usize never exceeds 64 bits.
    u64::try_from(length).unwrap_or(u64::MAX)
}
