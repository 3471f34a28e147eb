//! What this project writes beyond the format: tails of DEBUG_INFO records, and the code log made
//! of them. Their layout stands in `docs/format.md`, "Extensions" and "The code log".
//!
//! Each module has the numbers that writers and readers share (offsets and sizes are in bytes) and
//! the type that a reader gets. [`DebugInfo::tail`](crate::DebugInfo::tail) is where to begin;
//! [`Dump::codes`](crate::Dump::codes) has it all done already.

pub mod chunk;
pub mod code;
pub mod control;
pub mod inlined;
mod kind;
pub mod left_out;
pub mod lines;
pub mod log;
pub mod tag;
pub mod tail;

pub use chunk::ChunkItem;
pub use code::{CodeItem, FramePointer};
pub use inlined::{InlinedCall, InlinedCalls, InlinedRanges};
pub use kind::Kind;
pub use left_out::LeftOut;
pub use lines::{LineRow, LineRows, LineTable};
pub use log::LogItem;
pub use tail::{Item, ItemBody, Items, Tail};
