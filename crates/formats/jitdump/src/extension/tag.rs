//! The tags of the items in a tail.

/// Describes a code; the first item of its tail. See [`code`](super::code).
pub const CODE: u16 = 1;
/// The code's name, if no LOAD contains it; no NUL.
pub const NAME: u16 = 2;
/// Name of the compiler's tier; no NUL.
pub const TIER: u16 = 3;
/// A line table; the detail is [`LINES_SOURCE`] or [`LINES_IR`].
pub const LINES: u16 = 4;
/// The calls inlined into the code.
pub const INLINED: u16 = 5;
/// An `.eh_frame` section, if no UNWINDING_INFO contains it.
pub const EH_FRAME: u16 = 6;
/// How many codes were not written, and when (three u64: number, first time, last time).
pub const LEFT_OUT: u16 = 7;
/// When the code was first seen, if its load was not: the record's timestamp is the earliest possible time of the load (one u64).
pub const SEEN: u16 = 8;
/// The control words of a code log. See [`log`](super::log).
pub const LOG: u16 = 16;
/// The head of a chunk of a code log. See [`chunk`](super::chunk).
pub const CHUNK: u16 = 17;
/// The breakpoints that a debugger waits to place. See [`breakpoints`](super::breakpoints).
pub const BREAKPOINTS: u16 = 18;

/// Detail of [`LINES`]: lines of the source.
pub const LINES_SOURCE: u16 = 0;
/// Detail of [`LINES`]: lines of the bytecode or intermediate representation.
pub const LINES_IR: u16 = 1;

/// Parent of a call that was inlined into the code itself.
pub const NO_PARENT: u32 = u32::MAX;
