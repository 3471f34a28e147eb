//! The open file: complete lines are appended, and the size in one of our lines can be changed in
//! place.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{Stat, tell};
use rustix::io::{Errno, pread, pwrite, write};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::descriptor::{Descriptor, Identity};
use crate::error::{Cause, not_refused};
use crate::line;
use crate::table::Resize;

/// As long as nothing shows that others write the file, it is examined once in so many appends, and
/// after this many nanoseconds: each of the calls for it takes about as long as a third of a write.
const MOST_UNCHECKED: u32 = 64;
const LONGEST_UNCHECKED: u64 = 10_000_000;
/// So near to the limit on file sizes, it is examined each time: what others may have written
/// counts.
const NEAR_LIMIT: u64 = 16 << 20;

/// Counts how often a map of this process was opened whose file existed: maybe that of another map.
static SHARED: AtomicU32 = AtomicU32::new(0);

/// Whether a file exists already when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It was created for this map.
    New,
    /// Others may have it open.
    Existing,
}

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
    /// The offsets of our lines before this place are certain. Those behind it are right unless
    /// others have written to the file since it was examined.
    sure_end: u64,
    /// What [`SHARED`] was when the file was created; `None` if it existed.
    sole_since: Option<u32>,
    /// Whether appends rely on being the only ones.
    is_alone: bool,
    /// Number of appends since the file was examined, and the time of that.
    unchecked: u32,
    checked_at: u64,
}

impl MapFile {
    /// Takes two descriptors of one file, the first opened with `O_APPEND`. Existing content is not
    /// ours.
    pub fn new(append: OwnedFd, patch: OwnedFd, origin: Origin) -> Result<Self, Cause> {
        let shared = match origin {
            Origin::New => SHARED.load(Ordering::Relaxed),
            // Before its first line.
            Origin::Existing => SHARED.fetch_add(1, Ordering::Relaxed),
        };
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
            sure_end: end,
            sole_since: (origin == Origin::New).then_some(shared),
            is_alone: false,
            unchecked: 0,
            checked_at: 0,
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

    /// Whether the file must be examined before the next append.
    pub fn is_check_due(&mut self) -> bool {
        self.is_alone = self.is_alone && self.may_be_alone();
        !self.is_alone
            || self.unchecked >= MOST_UNCHECKED
            || now().wrapping_sub(self.checked_at) >= LONGEST_UNCHECKED
    }

    fn may_be_alone(&self) -> bool {
        self.foreign == 0
            && self.sole_since == Some(SHARED.load(Ordering::Relaxed))
            && self.limit.is_none_or(|limit| limit.saturating_sub(self.end) > NEAR_LIMIT)
    }

    /// Examines the file, and returns whether it has been deleted. It also checks that the
    /// descriptor is still ours, and that the file was not truncated. If others have written
    /// between lines of ours, there are [unsure](Self::unsure) ones then.
    pub fn is_deleted(&mut self) -> Result<bool, Cause> {
        let stat = self.append.examine()?;
        let end = length(&stat);
        if end < self.end {
            return Err(Cause::Damaged);
        }
        self.seen_end = end;
        // Each append makes the file longer. So nothing of others is in it if it has the length
        // that ours alone have.
        if end == self.end {
            self.sure_end = end;
        }
        self.is_alone = end == self.end && self.may_be_alone();
        (self.unchecked, self.checked_at) = (0, now());
        Ok(stat.st_nlink == 0)
    }

    /// The part of the file that has lines of ours at unknown places, among those of others.
    pub fn unsure(&self) -> Option<std::ops::Range<u64>> {
        (self.sure_end < self.end && self.end < self.seen_end)
            .then_some(self.sure_end..self.seen_end)
    }

    /// The end of the part whose offsets are certain, if there are lines of ours behind it.
    pub fn sure_end(&self) -> Option<u64> {
        (self.sure_end < self.end).then_some(self.sure_end)
    }

    /// Whether appends rely on being the only ones.
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Asks for the place of what is appended until the file is examined again.
    pub fn be_careful(&mut self) {
        self.is_alone = false;
    }

    /// Our lines in the [unsure](Self::unsure) part were found: all else there is of others.
    pub fn are_found(&mut self) {
        self.foreign += self.seen_end - self.end;
        self.end = self.seen_end;
        self.sure_end = self.seen_end;
        self.ends_with_ours = false;
    }

    /// Appends complete lines with one `write`, and returns their offset. Just before, the file
    /// must be examined if that [is due](Self::is_check_due).
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
        let mut at = self.end;
        if !self.is_alone || written < lines.len() {
            let there = self.position()?.saturating_sub(to_u64(written));
            if written < lines.len() {
                self.complete(lines, written, there)?;
            }
            if !self.is_alone {
                at = there;
            }
        }
        self.foreign += at.saturating_sub(self.end);
        self.end = at + to_u64(lines.len());
        if self.is_alone {
            self.unchecked += 1;
        } else {
            self.sure_end = self.end;
        }
        self.seen_end = self.seen_end.max(self.end);
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
                Err(Errno::BADF) => return Err(Cause::Descriptor),
                other => return other.map_err(Cause::system("write it")),
            }
        }
    }

    /// Completes a short write, of which the first `written` bytes are at `at`.
    fn complete(&self, lines: &[u8], written: usize, at: u64) -> Result<(), Cause> {
        let whole = lines[..written].iter().rposition(|&byte| byte == b'\n').map_or(0, |n| n + 1);
        let torn = (at + to_u64(whole), written - whole);
        let rest = &lines[written..];
        let cause = match self.write(rest) {
            Ok(more) => {
                let there = self.position()?.saturating_sub(to_u64(more));
                if more == rest.len() && there == at + to_u64(written) {
                    return Ok(());
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
            self.sure_end = self.end;
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

/// Nanoseconds of a clock that is precise to some milliseconds, and takes no system call.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.wrapping_mul(1_000_000_000).wrapping_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

fn length(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

fn to_u64(length: usize) -> u64 {
    // usize never exceeds 64 bits.
    u64::try_from(length).unwrap_or(u64::MAX)
}
