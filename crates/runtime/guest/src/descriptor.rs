//! Numbers for descriptors.

#[cfg(unix)]
use std::os::fd::OwnedFd;

#[cfg(unix)]
use rustix::io::fcntl_dupfd_cloexec;

use crate::own_status;

/// The lowest number for our own descriptors, out of the program's way. Programs rely on getting the lowest free number, for
/// example when they close standard input and open a file in its place, or they close all descriptors that they know about.
///
/// If other threads share the descriptor table, the number fits into the current table. To enlarge the table, the kernel waits
/// for all processors (`synchronize_rcu` in `expand_fdtable` of its fs/file.c), for ten milliseconds and more.
#[must_use]
pub fn high_descriptor() -> i32 {
    // Many processes are limited to 1024 descriptors, and few have that many open.
    const HIGH: i32 = 900;
    let size = if has_other_threads() { own_status("FDSize:") } else { None };
    size.filter(|size| *size <= HIGH).map_or(HIGH, |size| size / 4 * 3)
}

/// Moves a descriptor to a number that is [out of the program's way](high_descriptor), if the process may have so many.
#[cfg(unix)]
#[must_use]
pub fn moved_out_of_the_way(file: OwnedFd) -> OwnedFd {
    let high = [high_descriptor(), 200, 10];
    let moved = high.into_iter().find_map(|least| fcntl_dupfd_cloexec(&file, least).ok());
    moved.unwrap_or(file)
}

/// With one call: a directory has a link from each of its subdirectories, and two of its own.
#[cfg(unix)]
fn has_other_threads() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/task").is_ok_and(|task| task.nlink() > 3)
}

#[cfg(not(unix))]
fn has_other_threads() -> bool {
    false
}
