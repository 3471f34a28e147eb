//! Machine code, and how it is announced.
#![allow(unsafe_code)]

use code_arena::{Code, CodeArena, Executable, Line, Options, Row, Unwind};

/// The arena in the directory that the test gave.
pub fn arena() -> CodeArena {
    let directory = std::env::var_os("DIRECTORY").expect("the test says where");
    CodeArena::create(options(directory)).expect("an arena")
}

pub fn options(directory: impl AsRef<std::path::Path>) -> Options {
    let options = Options::new(directory).segment(1 << 20);
    if std::env::var_os("UNLINKED").is_some() { options.unlinked() } else { options }
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

/// Counts down from its argument.
pub fn counter(arena: &CodeArena, name: &str) -> (Executable, extern "C" fn(u64)) {
    // nop to align; 1: dec rdi; jnz 1b; ret
    let code = place(arena, &[0x90, 0x90, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3]);
    announce(&code, name, Some(Unwind::Rows(&[])));
    // SAFETY: the code above takes one argument and changes no register that it may not.
    let call = unsafe { std::mem::transmute::<usize, extern "C" fn(u64)>(code.address() as usize) };
    (code, call)
}

pub type Callback = extern "C-unwind" fn(usize, usize);
pub type Caller = extern "C-unwind" fn(Callback, usize);

/// Code that calls back, in a frame that has no frame pointer and in which rbp is 0.
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

pub fn caller(arena: &CodeArena, name: &str) -> (Executable, Caller) {
    let code = place(arena, &CALLER);
    let row = |offset, cfa_offset, saved| Row::new(offset, 7, cfa_offset).saved(saved);
    let rows = [
        row(1, 16, &[(3, -16)][..]),
        row(2, 24, &[(3, -16), (6, -24)]),
        row(6, 32, &[(3, -16), (6, -24)]),
        row(14, 24, &[(3, -16), (6, -24)]),
        row(15, 16, &[(3, -16)]),
        row(16, 8, &[]),
    ];
    announce(&code, name, Some(Unwind::Rows(&rows)));
    // SAFETY: the code above takes two arguments, of which the first is called with the same, and unwinds as announced.
    let call = unsafe { std::mem::transmute::<usize, Caller>(code.address() as usize) };
    (code, call)
}
