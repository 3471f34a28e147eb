//! The log of PyPy's JIT compiler: where the machine code of each trace is, and which source lines it was made from.
//!
//! PyPy writes this text if the environment variable `PYPYLOG` is `CATEGORIES:FILE`. Two categories matter here, each in
//! sections of its own, which begin and end with a time:
//!
//! ```text
//! [2002b7237583] {jit-backend-addr
//! Loop 1 (inner;/tmp/spin.py:1-3~#12 FOR_ITER) has address 0x7f6eb9d65a5b to 0x7f6eb9d65c00 (bootstrap 0x7f6eb9d659d0)
//!        gc table: 0x7f6eb9d65950
//!        function: 0x7f6eb9d659d0
//!             end: 0x7f6eb9d65db7
//! [2002b7245e74] jit-backend-addr}
//! [2002b724a000] {jit-log-opt-loop
//! # Loop 1 (inner;/tmp/spin.py:1-3~#12 FOR_ITER) : loop with 92 ops
//! debug_merge_point(0, 0, 'inner;/tmp/spin.py:1-4~#26 POP_JUMP_IF_FALSE')
//! +284: i18 = int_ge(i16, 0)
//! [2002b724b000] jit-log-opt-loop}
//! ```
//!
//! - `jit-backend-addr` (`rpython/jit/backend/x86/assembler.py`) has the addresses of a loop, or of a bridge: code that is run
//!   when a guard of other code fails.
//! - `jit-log-opt-loop` and `jit-log-opt-bridge` (`rpython/jit/metainterp/logger.py`) follow, with its operations. A number is an
//!   offset in bytes from the table for the garbage collector, which precedes the code. `debug_merge_point(DEPTH, …)` tells the
//!   bytecode instruction that the operations behind it were made from, and how deep in inlined calls it is.
//!
//! Times are counts of the processor's clock on x86, in hexadecimal (`rpython/translator/c/src/asm_gcc_x86_64.h`).
//!
//! [`Reader`] takes the bytes of such a file in parts of any size, and reports each [`Trace`].
//!
//! ```
//! let log = b"[10] {jit-backend-addr\n\
//!             Loop 1 (f;/a.py:1-2~#4 FOR_ITER) has address 0x1040 to 0x1080 (bootstrap 0x1010)\n  gc table: 0x1000\n  end: 0x1090\n\
//!             [11] jit-backend-addr}\n\
//!             [12] {jit-log-opt-loop\n# Loop 1 (f;/a.py:1-2~#4 FOR_ITER) : loop with 1 ops\n\
//!             debug_merge_point(0, 0, 'f;/a.py:1-3~#6 LOAD_FAST')\n+64: i1 = int_add(i0, 1)\n\
//!             [13] jit-log-opt-loop}\n";
//! let mut traces = Vec::new();
//! let mut reader = pypy_log::Reader::default();
//! reader.take(log, |trace| traces.push(trace));
//! reader.finish(|trace| traces.push(trace));
//! let [trace] = traces.as_slice() else { panic!("{traces:?}") };
//! assert_eq!((trace.range.clone(), trace.time), (0x1010..0x1090, 0x10));
//! assert_eq!((trace.positions[0].address, trace.positions[0].place.line), (0x1040, 3));
//! ```
//!
//! Input is treated as hostile: no input makes the reader panic, take more than linear time, or hold more than a bounded number of
//! lines, names and positions. Lines that it does not know are skipped.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::as_conversions
    )
)]

mod line;
mod place;
mod reader;
mod trace;

pub use place::Place;
pub use reader::Reader;
pub use trace::{Position, Trace, TraceKind};

/// Whether a file that begins with these bytes is a log of PyPy's: its first line begins a section.
#[must_use]
pub fn recognizes(beginning: &[u8]) -> bool {
    let end = beginning.iter().position(|byte| *byte == b'\n').unwrap_or(beginning.len());
    let line = beginning.get(..end).unwrap_or_default();
    matches!(line::Mark::parse(line), Some(line::Mark { name, is_end: false, .. }) if !name.is_empty())
}
