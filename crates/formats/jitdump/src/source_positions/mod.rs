//! The record `SAMPLY_JIT_CODE_DEBUG_INFO2`: source positions, each with the position of the call that was inlined to
//! get there.
//!
//! samply introduced it, and JavaScriptCore writes it. It is not part of version 1 of the format, so perf skips it. Like
//! DEBUG_INFO it comes before the LOAD of its code. `docs/format.md`, "Source positions", specifies its layout.

mod build;
mod calls;
mod from_code;
mod lines;
mod record;

pub use build::{NewPosition, SourcePositionsBuilder};
pub(crate) use calls::ComputedCall;
pub(crate) use lines::PositionLines;
pub use record::{PositionRow, SourcePosition, SourcePositions};
