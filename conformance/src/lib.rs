//! Conformance files for readers of the jitdump format and of code logs.
//!
//! Each [`Case`] is one file for one rule, with the reading that a correct reader returns. Both are made from the
//! description of the file, without any reader. [`check_files`] compares the committed files with what this crate makes;
//! [`judge`] compares what a reader printed with the expected reading. `README.md` describes the JSON.

#![forbid(unsafe_code)]

pub mod bytes;
mod case;
mod cases;
mod compare;
pub mod extended;
mod files;
pub mod reading;
pub mod records;
mod run;

pub use case::{Case, Reading};
pub use cases::all;
pub use compare::{FIELDS, Verdict, judge};
pub use files::{check_files, folder, write_files};
pub use run::{read_with, run_all};
