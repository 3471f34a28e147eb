//! The answer to where a code is described.

use std::ops::Range;

use jitdump::CodePlace;

/// A code that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The number of its source, in the order in which they were added.
    pub source: usize,
    /// Address of its first byte, at that time.
    pub start: u64,
    /// Its size in bytes.
    pub size: u64,
    pub(crate) place: Place,
}

/// Where a source describes a code.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// The records of a jitdump.
    Records(CodePlace),
    /// The name in a line of a perf map.
    Name(Range<usize>),
}
