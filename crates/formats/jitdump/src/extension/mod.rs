//! What this project writes beyond the format: tails of DEBUG_INFO records, and the code log that consists of them.
//! `docs/format.md`, "Extensions" and "The code log", specifies their layout.
//!
//! Each module has the numbers that writers and readers share (offsets and sizes are in bytes) and the type that a
//! reader gets. Begin with [`DebugInfo::tail`](crate::DebugInfo::tail). [`Dump::codes`](crate::Dump::codes) already
//! evaluates all of it.

pub mod breakpoints;
pub mod chunk;
pub mod code;
pub mod control;
pub mod inlined;
pub mod left_out;
pub mod lines;
pub mod log;
pub mod tag;
pub mod tail;

pub use breakpoints::Breakpoint;
pub use chunk::ChunkItem;
pub use code::{CodeItem, FramePointer};
pub use inlined::{InlinedCall, InlinedCalls, InlinedRanges};
pub use jit_code::Kind;
pub use left_out::LeftOut;
pub use lines::{LineRow, LineRows, LineTable};
pub use log::LogItem;
pub use tail::{Item, ItemBody, Items, Tail};
