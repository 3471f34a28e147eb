//! The memory of a log, from the system.
//!
//! On Linux it is shared, in a file that other processes can open; on Windows it is private to the
//! process.

#[cfg(unix)]
mod backing;
#[cfg(windows)]
mod errno;
mod failure;
#[cfg(unix)]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::backing::{MapName, remove, retry};
pub(crate) use self::failure::Failure;
#[cfg(unix)]
pub(crate) use self::linux::*;
#[cfg(windows)]
pub(crate) use self::windows::*;
