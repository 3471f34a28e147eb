//! Where a log is read from.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// A source of bytes with random access.
pub trait Source {
    /// Reads up to `buffer.len()` bytes from offset `at` on; fewer only at the end.
    ///
    /// # Errors
    /// The error of the operating system.
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// The next range of data in `range`. Holes between data read as zeros and take no memory: a file may claim any
    /// size. `None` if there is no data. Returns all of `range` if the source cannot find holes.
    ///
    /// # Errors
    /// The error of the operating system.
    fn next_data(&self, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
        Ok(Some(range).filter(|range| !range.is_empty()))
    }

    /// Whether the writer of the log may still be running, so that waiting for it makes sense.
    fn may_change(&self) -> bool {
        true
    }
}

impl Source for File {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match FileExt::read_at(self, rest, at.saturating_add(done as u64)) {
                Ok(0) => break,
                Ok(count) => done = done.saturating_add(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

impl Source for &[u8] {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(buffer), Some(rest)) = (buffer.get_mut(..count), rest.get(..count)) {
            buffer.copy_from_slice(rest);
        }
        Ok(count)
    }

    fn may_change(&self) -> bool {
        false
    }
}
