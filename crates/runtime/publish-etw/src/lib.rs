//! Reports jitted code to Windows' profilers, as events of ETW (Event Tracing for Windows).
//!
//! ```
//! use publish_etw::{Code, Etw, Options};
//!
//! # let memory = [0x55_u8, 0x48, 0x89, 0xe5, 0x5d, 0xc3];
//! // An error on other systems.
//! if let Ok(etw) = Etw::create(Options::new()) {
//!     let code = Code::new(&memory).named("answer");
//!     etw.load(&code); // before it runs
//! }
//! ```
//!
//! # The events
//!
//! They are those of V8 (`--enable-etw-stack-walking`), which has them from Microsoft's JScript engine: readers of jitted code know this
//! provider. It is named `V8.js`, its GUID is {57277741-3638-4a4b-bdba-0ac6e45da56c}, the level of the events is 4 (information), and their
//! keyword 1. They describe themselves (TraceLogging), so that nothing has to be installed.
//!
//! | Event | Id | Fields |
//! |---|---|---|
//! | `SourceLoad` | 41 | `SourceID` u64, `ScriptContextID` pointer, `SourceFlags` u32, `Url` UTF-16 with NUL |
//! | `MethodLoad` | 9 | `ScriptContextID`, `MethodStartAddress` pointers, `MethodSize` u64, `MethodID` u32, `MethodFlags`, `MethodAddressRangeID` u16, `SourceID` u64, `Line`, `Column` u32, `MethodName` UTF-16 with NUL |
//!
//! Sources of this: `src/diagnostics/etw-jit-win.cc` and `etw-jit-metadata-win.h` of V8; of a reader, `src/windows/etw_gecko.rs` of samply 0.13.
//!
//! - **Sources.** `SourceID` is a hash of the path. Each source is reported once for each recording, before the first method of it.
//! - **Lines.** A method has the line and column of its first line entry: the format has no others.
//! - **Unloads.** The format has no event for them: new code at an address takes the place of the old one in readers.
//! - **Names** that are not UTF-8 have U+FFFD in place of what is not. Names and paths are cut at 8,000 UTF-16 units: an event has
//!   64 KiB at most.
//!
//! # Recordings
//!
//! While nothing records, an announcement costs one load of a flag. When a recording begins, the system calls back, and
//! [`Options::when_enabled`] is called, to report what is alive.
//!
//! Not seen: a recording on Windows. The tests hand events to functions that take the place of the system's, and decode them.
//!
//! # Limits
//!
//! - Not for signal handlers or vectored exception handlers, because there is a lock. If an allocation fails, a code is left out, and the
//!   publisher gives up.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod api;
mod error;
mod metadata;
mod publisher;
mod text;

pub use error::Error;
pub use jit_code::{Code, Line};
pub use publisher::{Etw, Options};
