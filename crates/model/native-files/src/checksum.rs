//! The checksum in `.gnu_debuglink`: CRC-32, as in zlib.

use std::io;

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
    let table = table();
    let mut part = vec![0; AT_ONCE];
    let (mut sum, mut at) = (u32::MAX, 0_u64);
    loop {
        let count = file.read_at(&mut part, at)?;
        if count == 0 {
            return Ok(!sum);
        }
        for &byte in part.get(..count).unwrap_or_default() {
            let [low, ..] = sum.to_le_bytes();
            let of_byte = table.get(usize::from(low ^ byte)).copied().unwrap_or_default();
            sum = (sum >> 8) ^ of_byte;
        }
        at = at.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        if at > LARGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
}

/// The checksum of each byte.
fn table() -> [u32; 256] {
    let mut table = [0; 256];
    for (byte, sum) in (0_u32..).zip(&mut table) {
        *sum = (0..8).fold(byte, |sum, _| match sum & 1 {
            0 => sum >> 1,
            _ => (sum >> 1) ^ 0xedb8_8320,
        });
    }
    table
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
