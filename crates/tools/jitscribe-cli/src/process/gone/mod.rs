//! The programs and libraries of a process whose files are gone from their paths, or may be soon.
//!
//! - [`list`]: a worker lists what the process has mapped to run its code, again and again.
//! - [`hold`]: another one opens the files that are gone, or were written after the process began.
//! - [`files`] starts them.

mod files;
mod hold;
mod list;

pub use files::{FileBytes, GoneFiles, HeldFile, LastingFiles};
pub use hold::HoldFiles;
pub use list::ListCode;
