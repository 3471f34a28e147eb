//! The open file: whole lines go in at its end, and the size in a line of ours can be changed
//! where it stands.

use std::os::fd::OwnedFd;

use rustix::fs::{Stat, tell};
use rustix::io::{Errno, pread, pwrite, write};
use rustix::process::{Resource, getrlimit};

use crate::descriptor::{Descriptor, Identity};
use crate::error::Cause;
use crate::line;
use crate::table::Resize;

/// The open map.
#[derive(Debug)]
pub(crate) struct MapFile {
    /// Opened with `O_APPEND`: only so do the lines of several writers stay whole.
    append: Descriptor,
    /// The same file without `O_APPEND`, with which Linux appends even what `pwrite` is told
    /// to put elsewhere.
    patch: Descriptor,
    /// The end of what we wrote last; at first, of what was there.
    end: u64,
    /// The file's length when it was last asked for.
    seen_end: u64,
    /// Whether a line of ours stands before `end`, which is ended for certain.
    ends_with_ours: bool,
    /// Bytes that are not ours.
    foreign: u64,
    /// `RLIMIT_FSIZE` when the file was opened. To write beyond it would raise SIGXFSZ, which
    /// kills.
    limit: Option<u64>,
}

impl MapFile {
    /// Takes two descriptors of one file, the first opened with `O_APPEND`. What is in it
    /// already is not ours.
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

    /// The file's length as far as we know.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Bytes in it that are not ours.
    pub fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Whether the descriptors are still ours.
    pub fn is_ours(&self) -> bool {
        self.append.examine().is_ok() && self.patch.examine().is_ok()
    }

    /// Whether the file has no name any more. Asked before each append, so it also sees whether
    /// the descriptor is still ours, and the file as long as it was.
    pub fn is_deleted(&mut self) -> Result<bool, Cause> {
        let stat = self.append.examine()?;
        let end = length(&stat);
        if end < self.end {
            return Err(Cause::Damaged);
        }
        self.seen_end = end;
        Ok(stat.st_nlink == 0)
    }

    /// Appends whole lines with one `write`; the answer is where they stand.
    /// [`is_deleted`](Self::is_deleted) was asked just before.
    ///
    /// If the disk is full or the like, what was written of the last line is blanked, so that
    /// no reader takes half a line for a whole one.
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

    /// Whether the line before `end` is ended. If another writer did not end his, ours would
    /// become part of it.
    fn ends_with_newline(&self, end: u64) -> Result<bool, Cause> {
        let mut last = [b'\n'];
        if end > 0 && !(self.ends_with_ours && end == self.end) {
            self.read(end - 1, &mut last)?;
        }
        Ok(last == [b'\n'])
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

    /// Completes a short write, of which the first `written` bytes stand at `at`.
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
                // What stopped the second write too is most often a full disk.
                Cause::System { doing: "write all of it", error: Errno::NOSPC.into() }
            }
            Err(cause) => cause,
        };
        self.blank(torn.0, torn.1);
        Err(cause)
    }

    /// Turns a part of the file into empty lines. The room is there, so a full disk does not
    /// hinder it.
    fn blank(&self, at: u64, length: usize) {
        if let Ok(patch) = self.patch.get() {
            let _ = pwrite(patch, &vec![b'\n'; length], at);
        }
    }

    /// Reads from the file into `buffer`; the answer is how much of it was filled.
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

    /// Makes a line of ours say another size. Another writer may have written over it: so it
    /// is read before.
    pub fn resize(&self, resize: Resize) -> Result<(), Cause> {
        let mut head = [0; line::LONGEST_HEAD];
        let filled = self.read(resize.offset, &mut head)?;
        let (at, digits) = line::resized(&head[..filled], resize.address, resize.from, resize.to)?;
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

    /// Takes over what another writer appended to `old` behind what we knew of it.
    pub fn rescue(&mut self, old: &MapFile) -> Result<(), Cause> {
        let mut from = old.end;
        let mut buffer = vec![0; 1 << 16];
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

fn length(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

fn to_u64(length: usize) -> u64 {
    // Usize never exceeds 64 bits.
    u64::try_from(length).unwrap_or(u64::MAX)
}
