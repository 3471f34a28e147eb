//! Reading bytes and structures of a file.

use std::io;
use std::marker::PhantomData;

use jitdump::ReadAt;
use object::pod::{self, Pod};

/// A file that is smaller than it says takes no more memory than it has, and this.
const AT_ONCE: usize = 1 << 20;
/// Number of bytes of a name that are read at a time.
const NAME_PART: usize = 1 << 9;

/// Structures of a file, aligned in memory.
pub struct Pods<T> {
    words: Vec<u64>,
    count: usize,
    of: PhantomData<T>,
}

impl<T: Pod> Pods<T> {
    /// Reads `count` structures. The caller limits their number.
    ///
    /// # Errors
    /// If the file does not have so many.
    pub fn read(file: &impl ReadAt, offset: u64, count: usize) -> io::Result<Self> {
        let bytes = count.checked_mul(size_of::<T>()).ok_or_else(invalid)?;
        let mut words = vec![0_u64; bytes.div_ceil(8)];
        let space = pod::bytes_of_slice_mut(&mut words).get_mut(..bytes).ok_or_else(invalid)?;
        exact(file, space, offset)?;
        Ok(Self { words, count, of: PhantomData })
    }

    pub fn as_slice(&self) -> &[T] {
        let bytes = pod::bytes_of_slice(&self.words);
        pod::slice_from_bytes(bytes, self.count).map_or(&[], |(all, _)| all)
    }
}

/// Fills `buffer`.
///
/// # Errors
/// If the file does not have so many bytes at this offset.
pub fn exact(file: &impl ReadAt, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let at = offset.checked_add(number(done)).ok_or_else(invalid)?;
        match file.read_at(rest, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => done = done.saturating_add(count),
        }
    }
    Ok(())
}

/// Reads bytes; `None` if the file does not have so many.
pub fn bytes(file: &impl ReadAt, offset: u64, size: u64) -> Option<Vec<u8>> {
    let size = usize::try_from(size).ok()?;
    let mut bytes = Vec::new();
    while bytes.len() < size {
        let done = bytes.len();
        let end = done.saturating_add(AT_ONCE).min(size);
        bytes.resize(end, 0);
        exact(file, bytes.get_mut(done..)?, offset.checked_add(number(done))?).ok()?;
    }
    Some(bytes)
}

/// The name at an offset, up to its NUL; no more than `longest` bytes of it.
pub fn name(file: &impl ReadAt, offset: u64, longest: usize) -> Vec<u8> {
    let mut name = Vec::new();
    let mut part = [0; NAME_PART];
    while let Some(left) = longest.checked_sub(name.len()).filter(|left| *left > 0) {
        let at = offset.saturating_add(number(name.len()));
        let space = part.get_mut(..left.min(NAME_PART)).unwrap_or_default();
        let Ok(count @ 1..) = file.read_at(space, at) else { break };
        let read = space.get(..count).unwrap_or_default();
        let end = read.iter().position(|&byte| byte == 0);
        name.extend_from_slice(read.get(..end.unwrap_or(count)).unwrap_or_default());
        if end.is_some() {
            break;
        }
    }
    name
}

/// The error for what no ELF file has.
pub fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn number(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_at_their_nul_or_their_limit() {
        let long = [&[b'x'; 700][..], b"\0y"].concat();
        assert_eq!(name(&&long[..], 0, 1 << 16), [b'x'; 700]);
        assert_eq!(name(&&long[..], 0, 512), [b'x'; 512]);
        assert_eq!(name(&&long[..], 701, 512), b"y");
        assert_eq!(name(&&long[..], u64::MAX, 512), b"");
        assert_eq!(bytes(&&long[..], 699, 3), Some(b"x\0y".to_vec()));
        assert_eq!(bytes(&&long[..], 699, 4), None);
        assert_eq!(bytes(&&long[..], u64::MAX, 1), None);
    }
}
