//! The checksum in `.gnu_debuglink`: CRC-32, as in zlib.

use std::io;

use crc32fast::Hasher;
use jitdump::ReadAt;

/// Files with more bytes are not read. A browser's debug file has a few gigabytes.
const LARGEST: u64 = 1 << 32;
/// Number of bytes that are read at a time.
const AT_ONCE: usize = 1 << 16;

/// The checksum of a whole file.
///
/// # Errors
/// If it cannot be read, or is too large.
pub fn of_file(file: &impl ReadAt) -> io::Result<u32> {
    let mut part = vec![0; AT_ONCE];
    let (mut sum, mut at) = (Hasher::new(), 0_u64);
    loop {
        let count = file.read_at(&mut part, at)?;
        if count == 0 {
            return Ok(sum.finalize());
        }
        sum.update(part.get(..count).unwrap_or_default());
        at = at.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        if at > LARGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_standard() {
        assert_eq!(of_file(&&b"123456789"[..]).expect("read"), 0xcbf4_3926);
        assert_eq!(of_file(&&b""[..]).expect("read"), 0);
    }
}
