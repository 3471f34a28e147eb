//! The smallest JIT that announces its code: one function, which counts down from its argument. Under perf:
//!
//!     perf record -o perf.data target/debug/hello-jit && perf report -i perf.data
//!
//! perf shows `countdown` without any further step, as the code lies in an arena. Every other tool knows it too:
//! `jitscribe dump -p PID` while it runs, gdb when it attaches.
#![allow(unsafe_code, clippy::print_stdout)]

use std::time::{Duration, Instant};

use jitscribe::{Code, Line, Scribe, Unwind, arena};

/// What a compiler would have made: `loop: dec rdi; jnz loop; ret`, and two nops. x86-64.
const COUNTDOWN: [u8; 8] = [0x90, 0x90, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3];

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1.0);

    // Memory for code. It is written at one address and runs at another.
    let scribe = Scribe::global();
    let arena = arena::open(&scribe).expect("an arena");
    let mut draft = arena.allocate(COUNTDOWN.len(), 16).expect("space in the arena");
    draft.bytes_mut().copy_from_slice(&COUNTDOWN);
    let code = draft.finish();

    // The announcement, before the code runs. It has no frame: the return address is on top of the stack throughout.
    let lines = [Line::new(0, "/src/hello.lang", 1).column(1)];
    let announced = Code::new(&COUNTDOWN).runs_at(code.address()).named("countdown");
    let loaded = scribe.load(&announced.lines(&lines).unwind(Unwind::Rows(&[])));

    let address = std::ptr::with_exposed_provenance::<()>(code.address() as usize);
    // SAFETY: the bytes above are a function of one argument, which clobbers nothing but that.
    let countdown: extern "C" fn(u64) = unsafe { std::mem::transmute(address) };
    println!("countdown runs: jitscribe dump -p {}", std::process::id());
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end {
        countdown(1_000_000);
    }

    // First the announcement, then the memory.
    drop(loaded);
    drop(code);
}
