//! The code log of V8: which code was created when, and which source positions and inlined calls it has.
//!
//! V8, the JavaScript engine of node, deno and Chromium, writes this text file with `--log-code` (codes) and
//! `--log-source-code` (positions, and the sources of scripts). `--logfile` says where. By default, each isolate writes a
//! file of its own, `isolate-0xADDRESS-PID-v8.log`. Each line is an event: a name, then fields, separated by commas.
//!
//! ```text
//! code-creation,JS,KIND,MICROSECONDS,0xADDRESS,SIZE,NAME FILE:LINE:COLUMN,0xFUNCTION,MARK
//! code-source-info,0xADDRESS,SCRIPT,START,END,POSITIONS,INLININGS,FUNCTIONS
//! script-source,SCRIPT,URL,TEXT
//! code-move,0xFROM,0xTO
//! sfi-move,0xFROM,0xTO
//! ```
//!
//! [`Reader`] returns these events one at a time, and skips all others.
//!
//! ```
//! use v8_log::{Event, Reader};
//!
//! let log = b"code-creation,JS,13,448472,0x7f00,864,mid /a.js:10:13,0x18a8,*\n\
//!             code-source-info,0x7f00,81,135,174,C0O135C132O94I0,F0O150,S0x1198\n";
//! let mut reader = Reader::new(&log[..]);
//! let mut names = Vec::new();
//! while let Some(entry) = reader.next_event()? {
//!     match entry.event? {
//!         Event::Code(code) => names.push(code.name()),
//!         Event::SourceInfo(info) => {
//!             let inlined: Vec<_> = info.positions().flatten().map(|at| at.inlining).collect();
//!             assert_eq!(inlined, [None, Some(0)]);
//!         }
//!         _ => {}
//!     }
//! }
//! assert_eq!(names, ["mid /a.js:10:13"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Times count from when the log was opened, so they must be compared with another source of the same events to be
//! converted. Offsets in scripts count UTF-16 code units; [`LineStarts`] converts them to lines and columns.
//!
//! Input is treated as hostile: no input makes the reader panic, hold more than one line, or take more than linear time.
//! A line that cannot be read yields an [`Error`] with its position, and reading continues behind it.
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

mod error;
mod escape;
mod event;
mod fields;
mod line_starts;
mod reader;
mod source_info;

pub use error::{Cause, Error};
pub use escape::{Units, unescape};
pub use event::{CodeCreation, Event, Move, ScriptSource, split_name};
pub use line_starts::LineStarts;
pub use reader::{Entry, LONGEST_LINE, Reader};
pub use source_info::{Inlining, Malformed, Position, SourceInfo};
