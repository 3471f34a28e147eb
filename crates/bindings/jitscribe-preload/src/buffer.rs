//! The buffer into which files are read.
#![forbid(unsafe_code)]

use fallible::Vec;

/// A part of the buffer of this size; empty if memory is exhausted.
pub(crate) fn part(buffer: &mut Vec<u8>, size: usize) -> &mut [u8] {
    if buffer.len() < size {
        buffer.resize(size, 0);
    }
    buffer.get_mut(..size).unwrap_or_default()
}
