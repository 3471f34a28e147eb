//! Which code was where and when: a rectangle in address and time.

use core::ops::Range;

/// The caller's number of a piece of code. Numbers should be dense, because they index tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeId(pub u32);

impl CodeId {
    /// The index of this code in a table.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A rectangle in address and time: `code` was at every address of `range` from `since` until `until`. The pieces of
/// a timeline never overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The addresses.
    pub range: Range<u64>,
    /// When the code was loaded.
    pub since: u64,
    /// When it was gone; `u64::MAX` for code that is still there.
    pub until: u64,
    /// The code.
    pub code: CodeId,
}
