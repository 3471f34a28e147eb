//! Writes profiles with jitted code in the formats of other viewers.
//!
//! | Format | Inlined calls | Tiers | Lines | Threads | Times |
//! |---|---|---|---|---|---|
//! | [`firefox`] | frames with a depth | subcategories, markers | of each frame | all | yes |
//! | [`pprof`] | lines of a location | labels `tier`, `generation` | of each frame | labels | no |
//! | [`speedscope`] | frames | in names, on request | of functions; in names, on request | a profile each | yes |
//! | [`folded`] | suffix `_[i]` | in names, on request | in names, on request | processes apart | no |
//! | [`cpuprofile`] | frames | in names, on request | samples by line | one | yes |
//! | [`otlp`] | lines of a location | attributes | of each frame | attributes | yes |
//! | [`chrome`] | frames | in names, on request; events | of functions | all | yes |
//!
//! Each writes as it goes: a profile of a million samples takes little memory beyond itself. Names are any bytes: U+FFFD replaces what is not UTF-8.
//!
//! ```
//! use profile::{Builder, Frame, Function, FunctionKind, SampleRow};
//! use profile_export::{Format, Options};
//!
//! let mut builder = Builder::new();
//! let event = builder.event(b"cycles");
//! let process = builder.process(4711, b"app");
//! let thread = builder.thread(process, 4711, b"app");
//! let name = builder.string(b"main");
//! let main = builder.function(Function::new(name, FunctionKind::Native));
//! let frame = builder.frame(Frame::new(main));
//! let stack = builder.stack(None, frame);
//! builder.sample(SampleRow { time: 1_000, thread, event, weight: 1, stack });
//!
//! let mut folded = Vec::new();
//! Format::Folded.write(&builder.finish(), &Options::default(), &mut folded)?;
//! assert_eq!(folded, b"app;main 1\n");
//! # Ok::<(), std::io::Error>(())
//! ```
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

pub mod chrome;
mod compilations;
pub mod cpuprofile;
pub mod firefox;
pub mod folded;
mod format;
mod json;
mod keys;
mod location;
mod mapping;
mod measure;
mod nodes;
mod options;
pub mod otlp;
pub mod pprof;
mod protobuf;
mod rows;
pub mod speedscope;
mod string_table;
mod timeline;
mod v8;

pub use format::Format;
pub use options::Options;
