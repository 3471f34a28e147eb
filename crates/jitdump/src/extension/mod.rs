//! What this project writes beyond the format: tails of DEBUG_INFO records, and the code log made
//! of them. Their layout stands in `docs/format.md`, "Extensions" and "The code log".
//!
//! Here are the numbers that writers and readers share. Offsets and sizes are in bytes.

pub mod chunk;
pub mod code;
pub mod control;
mod kind;
pub mod log;
pub mod tag;
pub mod tail;

pub use kind::Kind;
