//! The memory of a log, from the system.
//!
//! On Linux it is shared, in a file that other processes can open; on macOS and Windows it is private to the
//! process, or on macOS in a file, if asked for.

#[cfg(target_os = "linux")]
mod backing;
#[cfg(windows)]
mod errno;
mod failure;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use self::backing::{MapName, remove, retry};
pub(crate) use self::failure::Failure;
#[cfg(target_os = "linux")]
pub(crate) use self::linux::*;
#[cfg(target_os = "macos")]
pub(crate) use self::macos::*;
#[cfg(windows)]
pub(crate) use self::windows::*;
