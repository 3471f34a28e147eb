//! Numbers, as ELF and DWARF have them on little-endian machines.

/// Appends numbers.
pub(crate) trait Encode {
    fn u16(&mut self, value: u16);
    fn u32(&mut self, value: u32);
    fn u64(&mut self, value: u64);
    fn uleb(&mut self, value: u64);
    fn sleb(&mut self, value: i64);
}

impl Encode for Vec<u8> {
    fn u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn uleb(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn sleb(&mut self, mut value: i64) {
        while !(-0x40..0x40).contains(&value) {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8 & 0x7f);
    }
}

/// Writes a number over what stands there.
pub(crate) fn put<const N: usize>(out: &mut [u8], at: usize, bytes: [u8; N]) {
    if let Some(field) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *field = bytes;
    }
}

/// A `u32` that stands there; 0 if none does.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word))
}
