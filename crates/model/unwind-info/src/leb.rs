//! LEB128, the variable-length numbers of DWARF.

use alloc::vec::Vec;

/// Appends an unsigned number.
pub(crate) fn unsigned(mut value: u32, out: &mut Vec<u8>) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            out.push(low & 0x7f);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Appends a signed number.
pub(crate) fn signed(mut value: i32, out: &mut Vec<u8>) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        // Bit 6 of the last byte is the sign.
        let done = value == if low & 0x40 == 0 { 0 } else { -1 };
        if done {
            out.push(low & 0x7f);
            return;
        }
        out.push(low | 0x80);
    }
}
