//! The bits of the control word of a code log: what the process should do.

/// Write the log.
pub const LOG: u32 = 1;
/// Write the code's bytes with it.
pub const BYTES: u32 = 2;
/// Keep a perf map.
pub const PERF_MAP: u32 = 4;
/// Show the code to debuggers.
pub const GDB: u32 = 8;
/// Show debuggers the code that their breakpoints are in, and count all changes: see [`breakpoints`](super::breakpoints).
pub const BREAKPOINTS: u32 = 16;
/// The other bits are a request from outside. The process clears this bit when it has applied them.
pub const REQUEST: u32 = 1 << 31;
