//! How many files are joined, and into which.

/// This many files of one level are joined into one of the next.
pub(crate) const FAN: usize = 32;
/// This many, where a debugger's work for a file hardly grows with the number of files, as in lldb. What it saves is the call for
/// each file that is removed.
pub(crate) const WIDE_FAN: usize = 4096;
/// A file with this many codes or more is not joined: all of it is made again if new code takes the place of one of its codes.
pub(crate) const LARGE: usize = 256;
/// Files with fewer than 32, and with fewer than 256 codes.
pub(crate) const LEVELS: usize = 2;

/// The level of a file with this many codes; large files are above the last level.
pub(crate) fn level(live: usize) -> usize {
    match live {
        LARGE.. => LEVELS,
        FAN.. => 1,
        _ => 0,
    }
}
