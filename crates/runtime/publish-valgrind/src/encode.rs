//! Encodes numbers for ELF and DWARF on little-endian machines.

use fallible::Vec;
use jit_code::leb128;

/// Appends numbers.
pub(crate) trait Encode {
    fn u32(&mut self, value: u32);
    fn u64(&mut self, value: u64);
    fn uleb(&mut self, value: u64);
    fn sleb(&mut self, value: i64);
}

impl Encode for Vec<u8> {
    fn u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn uleb(&mut self, value: u64) {
        leb128::unsigned(value, |byte| self.push(byte));
    }

    fn sleb(&mut self, value: i64) {
        leb128::signed(value, |byte| self.push(byte));
    }
}

/// Overwrites a number.
pub(crate) fn put<const N: usize>(out: &mut [u8], at: usize, bytes: [u8; N]) {
    if let Some(field) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *field = bytes;
    }
}

/// The `u32` at an offset; 0 if there is none.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word))
}
