//! The bits of the control word of a code log: what the process is to do.

/// Write the log.
pub const LOG: u32 = 1;
/// Write the code's bytes with it.
pub const BYTES: u32 = 2;
/// Keep a perf map.
pub const PERF_MAP: u32 = 4;
/// Show the code to debuggers.
pub const GDB: u32 = 8;
/// The other bits are a wish from outside; the process clears this one when it has done so.
pub const WISH: u32 = 1 << 31;
