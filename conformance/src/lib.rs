//! Conformance files for readers of the jitdump format and of code logs.
//!
//! Each [`Case`] is one file for one rule, with the reading that a correct reader returns. Both are made from the
//! description of the file, without any reader. [`check_files`] compares the committed files with what this crate makes;
//! [`run_all`] compares what a reader printed with the expected reading. `README.md` describes the JSON.

#![forbid(unsafe_code)]

mod bytes;
mod case;
mod cases;
mod compare;
mod extended;
mod files;
pub mod reading;
mod records;
mod run;

pub use case::Case;
pub use cases::all;
pub use compare::{FIELDS, Verdict};
pub use files::{check_files, folder, write_files};
pub use run::run_all;
