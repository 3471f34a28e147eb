//! The list of files that are watched, for who started the command, and says what is left when it has ended.
#![forbid(unsafe_code)]

use std::ffi::c_int;
use std::fs::{OpenOptions, read_link};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;

/// Names the file that has the list: a path and a NUL for each.
const FILES: &str = "JITSCRIBE_BRIDGE_FILES";

/// Adds the file of a descriptor, if there is a list.
pub(crate) fn add(fd: c_int) {
    let Some(list) = std::env::var_os(FILES) else { return };
    let Ok(path) = read_link(format!("/proc/self/fd/{fd}")) else { return };
    let mut line = path.into_os_string().into_vec();
    line.push(0);
    // One write, so that what other processes add stays whole. Where it cannot be, nothing is said.
    if let Ok(mut list) = OpenOptions::new().append(true).open(list) {
        _ = list.write_all(&line);
    }
}
