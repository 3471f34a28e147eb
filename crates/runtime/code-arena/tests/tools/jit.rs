//! Machine code, and how it is announced.
#![allow(unsafe_code)]

use code_arena::{Code, CodeArena, Executable, Line, Options, Row, Unwind};

/// The arena in the directory that the test gave.
pub fn arena() -> CodeArena {
    arena_with(|options| options)
}

pub fn arena_with(change: impl FnOnce(Options) -> Options) -> CodeArena {
    let directory = std::env::var_os("DIRECTORY").expect("the test says where");
    let options = change(Options::new(directory).segment(1 << 20));
    let is_unlinked = std::env::var_os("UNLINKED").is_some();
    CodeArena::create(if is_unlinked { options.unlinked() } else { options }).expect("an arena")
}

pub fn place(arena: &CodeArena, code: &[u8]) -> Executable {
    let mut draft = arena.allocate(code.len(), 16).expect("room");
    draft.bytes_mut().copy_from_slice(code);
    draft.finish()
}

pub fn announce(code: &Executable, name: &str, unwind: Option<Unwind<'_>>) {
    let lines = [
        Line::new(0, "/src/arena.jit", 10).column(1),
        Line::new(8, "/src/arena.jit", 11).column(1),
    ];
    let mut announced = Code::at(code.address(), code.size() as u64).named(name).lines(&lines);
    announced.unwind = unwind;
    assert!(code_arena::announce(&announced));
}

/// Counts down from its argument. The loop is at offset 2 or 8.
#[cfg(target_arch = "x86_64")]
const COUNTER: [u8; 8] = [0x90, 0x90, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3]; // nop to align; 1: dec rdi; jnz 1b; ret
#[cfg(target_arch = "aarch64")]
const COUNTER: [u8; 12] = [
    0x00, 0x04, 0x00, 0xf1, // 1: subs x0, x0, 1
    0xe1, 0xff, 0xff, 0x54, // b.ne 1b
    0xc0, 0x03, 0x5f, 0xd6, // ret
];

/// A function that returns at once.
#[cfg(target_arch = "x86_64")]
pub const RETURN: &[u8] = &[0xc3];
#[cfg(target_arch = "aarch64")]
pub const RETURN: &[u8] = &[0xc0, 0x03, 0x5f, 0xd6];

pub fn counter(arena: &CodeArena, name: &str) -> (Executable, extern "C" fn(u64)) {
    let code = place(arena, &COUNTER);
    announce(&code, name, Some(Unwind::Rows(&[])));
    // SAFETY: the code above takes one argument and changes no register that it may not.
    let call = unsafe { std::mem::transmute::<usize, extern "C" fn(u64)>(code.address() as usize) };
    (code, call)
}

pub type Callback = extern "C-unwind" fn(usize, usize);
pub type Caller = extern "C-unwind" fn(Callback, usize);

/// Code that calls back, in a frame that has no frame pointer and in which rbp is 0.
#[cfg(target_arch = "x86_64")]
const CALLER: [u8; 17] = [
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

#[cfg(target_arch = "x86_64")]
fn frames() -> (&'static [u8], Vec<Row<'static>>) {
    let row = |offset, cfa_offset, saved| Row::new(offset, 7, cfa_offset).saved(saved);
    let rows = [
        row(1, 16, &[(3, -16)][..]),
        row(2, 24, &[(3, -16), (6, -24)]),
        row(6, 32, &[(3, -16), (6, -24)]),
        row(14, 24, &[(3, -16), (6, -24)]),
        row(15, 16, &[(3, -16)]),
        row(16, 8, &[]),
    ];
    (&CALLER, rows.to_vec())
}

/// The same for AArch64, where x29 is 0. The return address is signed.
#[cfg(target_arch = "aarch64")]
const CALLER: [u8; 36] = [
    0x3f, 0x23, 0x03, 0xd5, // paciasp
    0xf3, 0x77, 0xbe, 0xa9, // stp x19, x29, [sp, -32]!
    0xfe, 0x0b, 0x00, 0xf9, // str x30, [sp, 16]
    0xfd, 0x03, 0x1f, 0xaa, // mov x29, xzr
    0x00, 0x00, 0x3f, 0xd6, // blr x0
    0xfe, 0x0b, 0x40, 0xf9, // ldr x30, [sp, 16]
    0xf3, 0x77, 0xc2, 0xa8, // ldp x19, x29, [sp], 32
    0xbf, 0x23, 0x03, 0xd5, // autiasp
    0xc0, 0x03, 0x5f, 0xd6, // ret
];

/// Set for unwinders that do not know signed return addresses: nothing signs them.
pub const UNSIGNED: &str = "UNSIGNED";

#[cfg(target_arch = "aarch64")]
fn frames() -> (&'static [u8], Vec<Row<'static>>) {
    const PLAIN: [u8; 36] = {
        let mut code = CALLER;
        let nop = 0xd503_201f_u32.to_le_bytes();
        let mut at = 0;
        while at < 4 {
            (code[at], code[28 + at]) = (nop[at], nop[at]);
            at += 1;
        }
        code
    };
    let signed = std::env::var_os(UNSIGNED).is_none();
    let row = |offset, cfa_offset, saved, is_signed| {
        Row::new(offset, 31, cfa_offset).saved(saved).signed(is_signed && signed)
    };
    let rows = [
        row(4, 0, &[][..], true),
        row(8, 32, &[(19, -32), (29, -24)], true),
        row(12, 32, &[(19, -32), (29, -24), (30, -16)], true),
        row(28, 0, &[], true),
        row(32, 0, &[], false),
    ];
    (if signed { &CALLER } else { &PLAIN }, rows.to_vec())
}

pub fn caller(arena: &CodeArena, name: &str) -> (Executable, Caller) {
    let (bytes, rows) = frames();
    let code = place(arena, bytes);
    announce(&code, name, Some(Unwind::Rows(&rows)));
    // SAFETY: the code above takes two arguments, of which the first is called with the same, and unwinds as announced.
    let call = unsafe { std::mem::transmute::<usize, Caller>(code.address() as usize) };
    (code, call)
}
