//! LEB128, the variable-length integers of DWARF (version 5, section 7.6).

/// Passes the bytes of an unsigned number to `put`.
#[inline]
pub fn unsigned(mut value: u64, mut put: impl FnMut(u8)) {
    while value >= 0x80 {
        put(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    put(value.to_le_bytes()[0]);
}

/// Passes the bytes of a signed number to `put`.
#[inline]
pub fn signed(mut value: i64, mut put: impl FnMut(u8)) {
    // Bit 6 of the last byte is the sign.
    while !(-0x40..0x40).contains(&value) {
        put(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    put(value.to_le_bytes()[0] & 0x7f);
}

#[cfg(test)]
mod tests {
    extern crate alloc;

    use alloc::vec::Vec;

    use super::{signed, unsigned};

    /// The examples of DWARF 5, figures 22 and 23, and the extremes.
    #[test]
    fn examples_of_the_standard() {
        let examples: [(u64, &[u8]); 6] = [
            (2, &[2]),
            (127, &[127]),
            (128, &[0x80, 1]),
            (129, &[0x81, 1]),
            (12857, &[57 + 0x80, 100]),
            (u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        ];
        for (value, bytes) in examples {
            let mut encoded = Vec::new();
            unsigned(value, |byte| encoded.push(byte));
            assert_eq!(encoded, bytes, "{value}");
        }
        let examples: [(i64, &[u8]); 8] = [
            (2, &[2]),
            (-2, &[0x7e]),
            (127, &[0xff, 0]),
            (-127, &[0x81, 0x7f]),
            (128, &[0x80, 1]),
            (-128, &[0x80, 0x7f]),
            (-129, &[0xff, 0x7e]),
            (i64::MIN, &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f]),
        ];
        for (value, bytes) in examples {
            let mut encoded = Vec::new();
            signed(value, |byte| encoded.push(byte));
            assert_eq!(encoded, bytes, "{value}");
        }
    }
}
