//! Code for AArch64: see `super`. The return addresses in its frames are signed.

use super::row_of;
use publish_unwind::Row;

pub const ROOM: usize = 64;
/// x29 is 0 in its frame, and the return address is signed with key A.
pub const CALLER: [u8; 36] = code([
    0xd503_233f, // paciasp
    0xa9be_77f3, // stp x19, x29, [sp, -32]!
    0xf900_0bfe, // str x30, [sp, 16]
    0xaa1f_03fd, // mov x29, xzr
    0xd63f_0000, // blr x0
    0xf940_0bfe, // ldr x30, [sp, 16]
    0xa8c2_77f3, // ldp x19, x29, [sp], 32
    0xd503_23bf, // autiasp
    0xd65f_03c0, // ret
]);
pub const ROWS: [Row<'static>; 5] = [
    row(4, 0, &[]).signed(true),
    row(8, 32, &[(19, -32), (29, -24)]).signed(true),
    row(12, 32, &[(19, -32), (29, -24), (30, -16)]).signed(true),
    row(28, 0, &[]).signed(true),
    row(32, 0, &[]),
];
/// The same without a signature, for unwinders that do not know of them.
pub const PLAIN: [u8; 36] = code([
    0xa9be_77f3, // stp x19, x29, [sp, -32]!
    0xf900_0bfe, // str x30, [sp, 16]
    0xaa1f_03fd, // mov x29, xzr
    0xd503_201f, // nop
    0xd63f_0000, // blr x0
    0xf940_0bfe, // ldr x30, [sp, 16]
    0xa8c2_77f3, // ldp x19, x29, [sp], 32
    0xd65f_03c0, // ret
    0xd503_201f,
]);
pub const PLAIN_ROWS: [Row<'static>; 3] = [
    row(4, 32, &[(19, -32), (29, -24)]),
    row(8, 32, &[(19, -32), (29, -24), (30, -16)]),
    row(28, 0, &[]),
];
/// `CALLER` with key B.
pub const CALLER_KEY_B: [u8; 36] = code([
    0xd503_237f, // pacibsp
    0xa9be_77f3,
    0xf900_0bfe,
    0xaa1f_03fd,
    0xd63f_0000,
    0xf940_0bfe,
    0xa8c2_77f3,
    0xd503_23ff, // autibsp
    0xd65f_03c0,
]);
/// x19 and x30 alone are saved, nothing is signed. It calls at the same offset as `CALLER`.
pub const OTHER: [u8; 36] = code([
    0xa9bf_7bf3, // stp x19, x30, [sp, -16]!
    0xd503_201f, // nop
    0xd503_201f,
    0xd503_201f,
    0xd63f_0000, // blr x0
    0xd503_201f,
    0xd503_201f,
    0xa8c1_7bf3, // ldp x19, x30, [sp], 16
    0xd65f_03c0, // ret
]);
pub const OTHER_ROWS: [Row<'static>; 2] = [row(4, 16, &[(19, -16), (30, -8)]), row(32, 0, &[])];
/// Larger: 80 bytes instead of 16.
pub const LARGE: [u8; 36] = code([
    0xa9bb_7bf3, // stp x19, x30, [sp, -80]!
    0xd503_201f,
    0xd503_201f,
    0xd503_201f,
    0xd63f_0000,
    0xd503_201f,
    0xd503_201f,
    0xa8c5_7bf3, // ldp x19, x30, [sp], 80
    0xd65f_03c0,
]);
pub const LARGE_ROWS: [Row<'static>; 2] = [row(4, 80, &[(19, -80), (30, -72)]), row(32, 0, &[])];
/// It has a frame pointer, saves x19 and x20 below it, and changes both before it calls. Nothing is signed.
pub const SAVER: [u8; 36] = code([
    0xa9bf_7bfd, // stp x29, x30, [sp, -16]!
    0x9100_03fd, // mov x29, sp
    0xa9bf_53f3, // stp x19, x20, [sp, -16]!
    0xaa1f_03f3, // mov x19, xzr
    0xaa1f_03f4, // mov x20, xzr
    0xd63f_0000, // blr x0
    0xa8c1_53f3, // ldp x19, x20, [sp], 16
    0xa8c1_7bfd, // ldp x29, x30, [sp], 16
    0xd65f_03c0, // ret
]);
pub const NOP: &[u8] = &0xd503_201f_u32.to_le_bytes();

const fn row(offset: u32, cfa_offset: i32, saved: &'static [(u16, i32)]) -> Row<'static> {
    row_of(offset, 31, cfa_offset, saved)
}

const fn code(instructions: [u32; 9]) -> [u8; 36] {
    let mut bytes = [0; 36];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = instructions[at / 4].to_le_bytes()[at % 4];
        at += 1;
    }
    bytes
}

/// Processors fetch what was written.
pub fn synchronise(start: *mut u8, size: usize) {
    unsafe extern "C" {
        /// Of libgcc.
        fn __clear_cache(start: *mut u8, end: *mut u8);
    }
    // SAFETY: memory of the test.
    unsafe { __clear_cache(start, start.add(size)) };
}
