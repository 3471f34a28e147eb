//! The memory of a log: what the system gives of it.
//!
//! On Linux it is shared, and lies in a file that others open; on Windows it belongs to the process alone.

#[cfg(unix)]
mod backing;
#[cfg(unix)]
mod linux;
#[cfg(windows)]
mod windows;

use std::fmt;

#[cfg(unix)]
pub(crate) use self::linux::*;
#[cfg(windows)]
pub(crate) use self::windows::*;

/// Why something could not be had.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) what: String,
    pub(crate) cause: Errno,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.cause)
    }
}
