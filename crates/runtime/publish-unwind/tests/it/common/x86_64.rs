//! Code for x86-64: see `super`.

use super::row_of;
use publish_unwind::Row;

pub const ROOM: usize = 32;
/// rbp is 0 in its frame.
pub const CALLER: [u8; 17] = [
    0x53, // push rbx
    0x55, // push rbp
    0x48, 0x83, 0xec, 0x08, // sub rsp, 8
    0x31, 0xed, // xor ebp, ebp
    0xff, 0xd7, // call rdi
    0x48, 0x83, 0xc4, 0x08, // add rsp, 8
    0x5d, // pop rbp
    0x5b, // pop rbx
    0xc3, // ret
];
pub const ROWS: [Row<'static>; 6] = [
    row(1, 16, &[(3, -16)]),
    row(2, 24, &[(3, -16), (6, -24)]),
    row(6, 32, &[(3, -16), (6, -24)]),
    row(14, 24, &[(3, -16), (6, -24)]),
    row(15, 16, &[(3, -16)]),
    row(16, 8, &[]),
];
/// Nothing is signed on this machine.
pub const PLAIN: [u8; 17] = CALLER;
pub const PLAIN_ROWS: [Row<'static>; 6] = ROWS;
/// rbx alone is saved, and 16 bytes more are taken. It calls at the same offset as `CALLER`.
pub const OTHER: [u8; 17] = [
    0x53, 0x48, 0x83, 0xec, 0x10, 0x90, 0x90, 0x90, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3,
    0x90,
];
pub const OTHER_ROWS: [Row<'static>; 4] =
    [row(1, 16, &[(3, -16)]), row(5, 32, &[(3, -16)]), row(14, 16, &[(3, -16)]), row(15, 8, &[])];
/// Larger: 48 bytes instead of 16.
pub const LARGE: [u8; 17] = [
    0x53, 0x48, 0x83, 0xec, 0x30, 0x90, 0x90, 0x90, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x30, 0x5b, 0xc3,
    0x90,
];
pub const LARGE_ROWS: [Row<'static>; 4] =
    [row(1, 16, &[(3, -16)]), row(5, 64, &[(3, -16)]), row(14, 16, &[(3, -16)]), row(15, 8, &[])];
/// It has a frame pointer, saves rbx and r12 below it, and changes both before it calls.
pub const SAVER: [u8; 19] = [
    0x55, 0x48, 0x89, 0xe5, // push rbp; mov rbp, rsp
    0x53, 0x41, 0x54, // push rbx; push r12
    0x31, 0xdb, 0x45, 0x31, 0xe4, // xor ebx, ebx; xor r12d, r12d
    0xff, 0xd7, // call rdi
    0x41, 0x5c, 0x5b, 0x5d, 0xc3, // pop r12; pop rbx; pop rbp; ret
];
pub const NOP: &[u8] = &[0x90];

const fn row(offset: u32, cfa_offset: i32, saved: &'static [(u16, i32)]) -> Row<'static> {
    row_of(offset, 7, cfa_offset, saved)
}

/// Processors fetch what was written.
pub fn synchronise(_: *mut u8, _: usize) {}
