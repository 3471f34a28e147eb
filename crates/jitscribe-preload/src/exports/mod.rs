//! What stands before the C library's functions: each does what that does, and tells [`crate::watch`] of files that are
//! watched.
//!
//! None has anything to clean up around the call of the real function: a thread that is cancelled there unwinds through
//! it. So they are of the ABI that may unwind.
//!
//! # Safety
//! Each function's is that of the C function of its name.

mod descriptors;
mod formats;
mod loading;
mod mappings;
mod opening;
mod streams;
mod writing;

use std::ffi::{CStr, c_char};

use crate::names::{self, Kind};

/// What the file at this path is.
///
/// # Safety
/// It is null or a string.
unsafe fn kind_of(path: *const c_char) -> Option<Kind> {
    if path.is_null() {
        return None;
    }
    // SAFETY: a string, as the caller promises.
    names::kind(unsafe { CStr::from_ptr(path) }.to_bytes())
}
