//! The list of watched files, for the program that started the command and reports which files are left when
//! it has ended.
#![forbid(unsafe_code)]

use std::ffi::{CStr, c_int};

use fallible::Vec;

use crate::buffer::part;
use crate::sys;

/// The variable with the path of the list, which contains a path and a NUL for each file.
const FILES: &CStr = c"JITSCRIBE_BRIDGE_FILES";
/// Space for a path and its NUL: the system's `PATH_MAX`.
const LONGEST: usize = 4096;

/// Adds the file of a descriptor, if there is a list.
pub(crate) fn add(fd: c_int, buffer: &mut Vec<u8>) {
    let Some(Some(list)) = sys::variable(FILES, sys::open_to_append) else { return };
    let space = part(buffer, LONGEST);
    if let Some(length) = sys::path_of(fd, space)
        && let Some((line, _)) = space.split_at_mut_checked(length + 1)
        && let Some(end) = line.last_mut()
    {
        *end = 0;
        // One write, so that entries of different processes do not mix. Failures are ignored.
        sys::write(list, line);
    }
    sys::close(list);
}
