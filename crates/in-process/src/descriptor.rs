//! Numbers for descriptors.

use crate::own_status;

/// From which number on a descriptor is out of the program's way: programs count on the lowest being free, as where they close
/// standard input and open a file in its place, or close all that they know of.
///
/// Where other threads share the table of descriptors, it is a number that fits the table as it is: to enlarge it, the kernel waits
/// for all processors (`synchronize_rcu` in `expand_fdtable` of its fs/file.c), for ten milliseconds and more.
#[must_use]
pub fn high_descriptor() -> i32 {
    // Many may have no more than 1024, and few have so many open.
    const HIGH: i32 = 900;
    let size = if has_other_threads() { own_status("FDSize:") } else { None };
    size.filter(|size| *size <= HIGH).map_or(HIGH, |size| size / 4 * 3)
}

/// By one call: a directory has a link for each of its directories, and two for itself.
#[cfg(unix)]
fn has_other_threads() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/task").is_ok_and(|task| task.nlink() > 3)
}

#[cfg(not(unix))]
fn has_other_threads() -> bool {
    false
}
