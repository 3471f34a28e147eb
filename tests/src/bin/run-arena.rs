//! Announces functions in an arena, and runs them, for tools to inspect in the test `code_arena`.
//!
//!     run-arena ROUNDS
#![allow(unsafe_code)]

use jitscribe::arena::{self, Executable};
use jitscribe::{Code, LoadedCode, Row, Scribe, Unwind};

const FUNCTIONS: u64 = 5;

/// Counts down from its argument.
const COUNTER: [u8; 8] = [0x90, 0x90, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3];

fn main() {
    let rounds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).expect("rounds");
    let scribe = Scribe::global();
    let arena = arena::open_with(&scribe, |options| options.segment(1 << 20)).expect("an arena");
    let codes: Vec<(Executable, LoadedCode)> = (0..FUNCTIONS)
        .map(|number| {
            let mut draft = arena.allocate(COUNTER.len(), 16).expect("room");
            draft.bytes_mut().copy_from_slice(&COUNTER);
            let code = draft.finish();
            let name = format!("arena::count{number}");
            let lines = [jitscribe::Line::new(0, "/src/run.arena", 3).column(1)];
            let rows: [Row<'_>; 0] = [];
            let announced = Code::new(&COUNTER)
                .runs_at(code.address())
                .named(&name)
                .lines(&lines)
                .unwind(Unwind::Rows(&rows));
            let loaded = scribe.load(&announced);
            (code, loaded)
        })
        .collect();
    for _ in 0..rounds {
        for (number, (code, _)) in (1..).zip(&codes) {
            let address = std::ptr::with_exposed_provenance::<()>(code.address() as usize);
            // SAFETY: the code above takes one argument and changes no register that it may not.
            let count: extern "C" fn(u64) = unsafe { std::mem::transmute(address) };
            count(number * 10_000);
        }
    }
}
