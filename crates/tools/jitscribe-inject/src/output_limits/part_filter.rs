//! Bounds the output for code that is shown in many parts, each with the code's name and lines.
//!
//! A name may be megabytes long, and the number of moves and overwrites that split a code into parts is limited only by the
//! size of the dump. Without a bound, the output would grow quadratically.

use std::collections::HashSet;

/// All parts together may take this many bytes plus eight times the size of the input. A million functions take some 400 MB,
/// and epochs repeat them in several images.
const MOST: u64 = 1 << 31;
/// Code described by at most this many bytes is always shown in all its parts.
const LIGHT: u64 = 1 << 12;

/// The heavy code shown so far.
#[derive(Debug, Default)]
pub struct Heavy {
    shown: HashSet<u32>,
    /// The number of parts that were left out.
    pub left_out: usize,
}

/// Whether all parts, which take `parts` bytes, may be written for an input of `told` bytes.
pub fn fits(parts: u64, told: u64) -> bool {
    parts <= told.saturating_mul(8).saturating_add(MOST)
}

impl Heavy {
    /// Whether to show a part when not all parts can be shown. Light code is shown in all its parts, heavy code only in its
    /// first. `number` identifies the code, and `weight` is the number of bytes that describe it.
    pub fn is_shown(&mut self, weight: u64, number: u32) -> bool {
        let is_shown = weight <= LIGHT || self.shown.insert(number);
        self.left_out += usize::from(!is_shown);
        is_shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_heavy_code_one_part_is_shown() {
        let mut heavy = Heavy::default();
        assert!(heavy.is_shown(LIGHT + 1, 7));
        assert!(!heavy.is_shown(LIGHT + 1, 7));
        assert!(heavy.is_shown(LIGHT + 1, 8));
        assert!(heavy.is_shown(LIGHT, 9) && heavy.is_shown(LIGHT, 9));
        assert_eq!(heavy.left_out, 1);
        assert!(fits(MOST, 0) && !fits(MOST + 1, 0) && fits(MOST + 8, 1));
    }
}
