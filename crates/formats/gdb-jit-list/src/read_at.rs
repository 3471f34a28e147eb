//! Where bytes are read from.

/// The memory of a process, by address, or a file, by offset.
pub trait ReadAt {
    /// Reads bytes that begin at `at`. Returns how many there are, at most as many as the buffer has.
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> usize;

    /// Fills an array, if all of its bytes are there.
    fn array<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        (self.read_at(at, &mut bytes) == N).then_some(bytes)
    }

    /// Reads `size` bytes, if all of them are there. The caller has limited `size`.
    fn bytes(&self, at: u64, size: u64) -> Option<Vec<u8>> {
        const PART: usize = 1 << 16;
        let size = usize::try_from(size).ok()?;
        let mut bytes = Vec::new();
        // What is not there is not allocated.
        while bytes.len() < size {
            let done = bytes.len();
            let part = size.saturating_sub(done).min(PART);
            bytes.resize(done.saturating_add(part), 0);
            let place = at.checked_add(u64::try_from(done).ok()?)?;
            if self.read_at(place, bytes.get_mut(done..)?) != part {
                return None;
            }
        }
        Some(bytes)
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> usize {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        count
    }
}
