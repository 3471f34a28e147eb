//! What a process has mapped.

use std::ops::Range;

/// What a process has mapped, as far as it matters here. All ranges are sorted and do not overlap; those that touch are one.
#[derive(Clone, Debug, Default)]
pub struct Mapped {
    /// Writable memory that no file backs: what may have structures.
    pub data: Vec<Range<u64>>,
    /// Executable memory that no file backs: what may have code. While a compiler writes, it may be writable instead.
    pub code: Vec<Range<u64>>,
}

impl Mapped {
    /// Whether `size` bytes at `address` may have a structure.
    pub(crate) fn is_data(&self, address: u64, size: u64) -> bool {
        contain(&self.data, address, size)
    }

    /// Whether `size` bytes at `address` may be code.
    pub(crate) fn is_code(&self, address: u64, size: u64) -> bool {
        contain(&self.code, address, size)
    }
}

/// Whether one of `sorted` has all of these bytes.
fn contain(sorted: &[Range<u64>], address: u64, size: u64) -> bool {
    let next = sorted.partition_point(|range| range.end <= address);
    let Some(end) = address.checked_add(size) else { return false };
    size > 0 && sorted.get(next).is_some_and(|range| range.start <= address && end <= range.end)
}
