//! A code that calls back, and how it is unwound.

use jitscribe::Row;

pub type Callback = extern "C-unwind" fn(usize, usize);
pub type Caller = extern "C-unwind" fn(Callback, usize);

/// Calls its first argument with both, in a frame that has no frame pointer and in which rbp is 0.
pub const CALLER: [u8; 17] = [
    0x53, 0x55, 0x48, 0x83, 0xec, 0x08, 0x31, 0xed, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0x5d, 0x5b,
    0xc3,
];
pub const ROWS: [Row<'static>; 6] = {
    const fn row(offset: u32, cfa_offset: i32, saved: &'static [(u16, i32)]) -> Row<'static> {
        Row::new(offset, 7, cfa_offset).saved(saved)
    }
    [
        row(1, 16, &[(3, -16)]),
        row(2, 24, &[(3, -16), (6, -24)]),
        row(6, 32, &[(3, -16), (6, -24)]),
        row(14, 24, &[(3, -16), (6, -24)]),
        row(15, 16, &[(3, -16)]),
        row(16, 8, &[]),
    ]
};
