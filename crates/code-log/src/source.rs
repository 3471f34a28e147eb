//! Where a log is read from.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes at offsets.
pub trait Source {
    /// Reads up to `room.len()` bytes from offset `at` on; fewer only at the end.
    ///
    /// # Errors
    /// What the operating system says.
    fn read_at(&self, at: u64, room: &mut [u8]) -> io::Result<usize>;

    /// Whether who writes the log may go on with it meanwhile, so that it is worth waiting for.
    fn may_change(&self) -> bool {
        true
    }
}

impl Source for File {
    fn read_at(&self, at: u64, room: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = room.get_mut(done..).filter(|rest| !rest.is_empty()) {
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
    fn read_at(&self, at: u64, room: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let count = rest.len().min(room.len());
        if let (Some(room), Some(rest)) = (room.get_mut(..count), rest.get(..count)) {
            room.copy_from_slice(rest);
        }
        Ok(count)
    }

    fn may_change(&self) -> bool {
        false
    }
}
