//! [Profiles](profile) as Parquet files for engines that ask about many hosts at once.
//!
//! [`files`] makes four tables of a profile. Their keys are hashes ([`FunctionKey::id`](profile::FunctionKey::id) and others), so that rows of files from
//! different hosts join without coordination:
//!
//! | Table | A row is |
//! |---|---|
//! | `samples` | how many samples a host has in a window of time with the same stack, in the same code |
//! | `stacks` | the functions of a call stack |
//! | `functions` | a function |
//! | `codes` | a compilation of a function, or a function in a file |
//!
//! A file holds the rows of one service, one day and one table, in one row group: `samples/date=2026-11-25/service=shop/HOST-20261125T103000Z-1a2b3c4d.parquet`.
//! `docs/fleet.md` describes each column.
//!
//! Nothing is written: [`files`] returns paths and contents.
//!
//! ```
//! use profile::{Builder, CodeId, CodeSource, Listing, Source};
//! use profile_parquet::Options;
//!
//! struct NoCode;
//!
//! impl CodeSource for NoCode {
//!     fn listing(&mut self, _: CodeId) -> Option<Listing> { None }
//!     fn name_at(&mut self, _: CodeId, _: u64) -> Option<(Vec<u8>, u64)> { None }
//!     fn source(&mut self, _: &[u8]) -> Option<Source> { None }
//! }
//!
//! # fn main() -> Result<(), profile_parquet::Error> {
//! let profile = Builder::new().finish();
//! let exported = profile_parquet::files(&profile, &mut NoCode, &Options::new("host-1"))?;
//! assert!(exported.files.is_empty(), "no samples, no rows");
//! # Ok(())
//! # }
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

mod calendar;
mod column;
mod error;
mod export;
mod gather;
mod keys;
mod options;
mod path;
mod tables;

pub use column::{Column, Table};
pub use error::{Error, Result};
pub use export::{Exported, OutputFile, files};
pub use options::Options;
