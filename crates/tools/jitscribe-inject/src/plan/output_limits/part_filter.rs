//! Bounds the output for code that is shown in many parts, each with the code's name and lines.
//!
//! A name may be megabytes long, and the number of moves and overwrites that split a code into parts is limited only by the
//! size of the dump. Without a bound, the output would grow quadratically.

use std::collections::HashSet;

/// All parts together may take this many bytes plus eight times the size of the input. A million functions take some 400 MB,
/// and epochs repeat them in several images.
const MOST: u64 = 1 << 31;
/// Code described by at most this many bytes is always shown in all its parts.
const SMALL: u64 = 1 << 12;

/// Selects the parts to write where [`parts_fit`] says that not all can be written.
#[derive(Debug, Default)]
pub struct PartFilter {
    /// The codes with large descriptions of which a part was written.
    shown: HashSet<u32>,
    /// The number of parts that were left out.
    pub left_out: usize,
}

/// Whether all parts, whose descriptions take `parts` bytes, may be written for an input of `input` bytes.
#[must_use]
pub fn parts_fit(parts: u64, input: u64) -> bool {
    parts <= input.saturating_mul(8).saturating_add(MOST)
}

impl PartFilter {
    /// Whether to write a part. Code with a small description is written in all its parts, other code only in its first.
    /// `number` identifies the code, and `weight` is the number of bytes that describe it.
    pub fn is_shown(&mut self, weight: u64, number: u32) -> bool {
        let is_shown = weight <= SMALL || self.shown.insert(number);
        self.left_out += usize::from(!is_shown);
        is_shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_with_a_large_description_is_shown_in_one_part() {
        let mut filter = PartFilter::default();
        assert!(filter.is_shown(SMALL + 1, 7));
        assert!(!filter.is_shown(SMALL + 1, 7));
        assert!(filter.is_shown(SMALL + 1, 8));
        assert!(filter.is_shown(SMALL, 9) && filter.is_shown(SMALL, 9));
        assert_eq!(filter.left_out, 1);
        assert!(parts_fit(MOST, 0) && !parts_fit(MOST + 1, 0) && parts_fit(MOST + 8, 1));
    }
}
