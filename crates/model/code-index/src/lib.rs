//! Which code was at an address of a process at a time, and what its source says of it.
//!
//! A runtime describes its code in a jitdump, a perf map or a code log. (`code-log` makes a jitdump of a code log.) This crate
//! puts what they say into the histories of [`code_timeline`], and answers from these. It has these parts, each of which can be
//! used alone:
//!
//! * [`DumpEvents`] takes the events of a jitdump into a history. It is the only place that defines which event of a history
//!   each of them is. The caller chooses what is kept of a code.
//! * [`CodeIndex`] keeps of a code only its position in the source. It takes sources in any format of [`FORMATS`], and answers
//!   which code was [at](CodeIndex::at) an address of a process at a time. [`CodeIndex::describe`] reads the rest from the
//!   source again: name, bytes, tier, lines, unwind tables.
//! * [`FunctionName`] takes the names that runtimes give to code apart: function, file, line, and the compiler's tier.
//! * [`CodeLines`] has the functions and lines of each address of a code, with the inlined calls.
//!
//! ```
//! use code_index::{AddressSpaceId, CodeIndex, PERF_MAP};
//!
//! let map = b"1000 40 fib\n1020 20 fact\n";
//! let mut index = CodeIndex::new();
//! index.add(&PERF_MAP, map)?;
//! let found = index.last(AddressSpaceId::ONLY, 0x1024).expect("a code");
//! assert_eq!((found.start, found.size), (0x1020, 0x20));
//! assert_eq!(index.describe(&found, map).expect("its line").name(), b"fact");
//! # Ok::<(), jitdump::Error>(())
//! ```
//!
//! Input is treated as hostile: no input makes this crate panic, or take more than n·log n time. What is damaged is left out.
//! An index takes memory in proportion to the number of codes.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

mod code_lines;
mod description;
mod events;
mod format;
mod found;
mod index;
mod logs;
mod names;
mod sources;

pub use code_lines::{CodeLines, Frame, SourcePlace};
pub use code_timeline::{AddressSpaceId, Processes};
pub use description::Description;
pub use events::DumpEvents;
pub use format::Format;
pub use found::Found;
pub use index::{Added, CodeIndex};
pub use logs::{LOG_FORMATS, LogFormat, LogTranslator, translate_log};
pub use names::{FunctionName, NameKind};
pub use sources::{FORMATS, JITDUMP, PERF_MAP, format_of};
