//! A stack of Rust below jitted code, printed by another test that starts this program.
#![allow(unsafe_code)]

use jitscribe::{Code, Mode, Row, Scribe, Unwind, arena};

/// Calls its first argument with both, in a frame without a frame pointer in which rbp is 0.
const CALLER: [u8; 17] = [
    0x53, 0x55, 0x48, 0x83, 0xec, 0x08, 0x31, 0xed, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0x5d, 0x5b,
    0xc3,
];

type Callback = extern "C-unwind" fn(usize, usize);
type Caller = extern "C-unwind" fn(Callback, usize);

#[expect(clippy::print_stdout, reason = "the test of the table reads it")]
extern "C-unwind" fn native_top(_: usize, _: usize) {
    println!("{}", std::backtrace::Backtrace::force_capture());
}

#[inline(never)]
fn native_bottom(caller: Caller) {
    caller(native_top, 0);
    std::hint::black_box(());
}

#[test]
#[ignore = "prints what the test of the table reads"]
fn print() {
    let place = std::env::var("PLACE").expect("where the code is");
    let builder = Scribe::builder().dir(std::env::var_os("FOLDER").expect("a folder"));
    let scribe = if place == "unwinders" { builder.unwinders(Mode::On) } else { builder }.build();
    let arena = (place == "arena").then(|| arena::open(&scribe).expect("an arena"));
    let allocated = arena.as_ref().map(|arena| {
        let mut draft = arena.allocate(CALLER.len(), 16).expect("space");
        draft.bytes_mut().copy_from_slice(&CALLER);
        draft.finish()
    });
    let address = allocated.as_ref().map_or_else(mapped, |code| code.address() as usize);
    let row = |offset, cfa_offset, saved| Row::new(offset, 7, cfa_offset).saved(saved);
    let rows = [
        row(1, 16, &[(3, -16)][..]),
        row(2, 24, &[(3, -16), (6, -24)]),
        row(6, 32, &[(3, -16), (6, -24)]),
        row(14, 24, &[(3, -16), (6, -24)]),
        row(15, 16, &[(3, -16)]),
        row(16, 8, &[]),
    ];
    let code = Code::at(address as u64, CALLER.len() as u64).named("jit::caller");
    let _loaded = scribe.load(&code.unwind(Unwind::Rows(&rows)));
    // SAFETY: the code above takes two arguments, the first of which it calls, and keeps all registers that it must.
    native_bottom(unsafe { std::mem::transmute::<usize, Caller>(address) });
}

/// The address of a copy of the code.
fn mapped() -> usize {
    // SAFETY: new memory of this size, which is written before it becomes executable.
    unsafe {
        let (read, write, execute) = (1, 2, 4);
        let (private, anonymous) = (2, 0x20);
        let room = mmap(std::ptr::null_mut(), 4096, read | write, private | anonymous, -1, 0);
        assert_ne!(room.addr(), usize::MAX);
        std::ptr::copy_nonoverlapping(CALLER.as_ptr(), room.cast::<u8>(), CALLER.len());
        assert_eq!(mprotect(room, 4096, read | execute), 0);
        room.addr()
    }
}

unsafe extern "C" {
    fn mmap(at: *mut u8, size: usize, protection: i32, flags: i32, fd: i32, offset: i64)
    -> *mut u8;
    fn mprotect(at: *mut u8, size: usize, protection: i32) -> i32;
}
