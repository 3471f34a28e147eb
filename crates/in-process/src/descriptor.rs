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
    match own_status(["Threads:", "FDSize:"]) {
        Some([threads, size]) if threads > 1 && size <= HIGH => size / 4 * 3,
        _ => HIGH,
    }
}
