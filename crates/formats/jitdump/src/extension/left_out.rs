//! The payload of a LEFT_OUT item: codes that were not written for lack of space.

use crate::endian::Fields;

/// Size of the payload.
pub const SIZE: usize = 24;

/// Offset of the u64 with the number of codes.
pub const COUNT: usize = 0;
/// Offset of the u64 with the time of the first of them.
pub const FIRST: usize = 8;
/// Offset of the u64 with the time of the last of them.
pub const LAST: usize = 16;

/// Codes that were not written for lack of space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// How many.
    pub count: u64,
    /// When the first of them was loaded, by the records' clock.
    pub first: u64,
    /// When the last of them was loaded.
    pub last: u64,
}

impl LeftOut {
    pub(crate) fn parse(mut fields: Fields<'_>) -> Option<Self> {
        Self::read(&mut fields)
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { count: fields.u64()?, first: fields.u64()?, last: fields.u64()? })
    }

    /// Adds the codes of another item.
    pub(crate) fn add(&mut self, other: Self) {
        if other.count == 0 {
            return;
        }
        let is_first = self.count == 0;
        self.first = if is_first { other.first } else { self.first.min(other.first) };
        self.last = if is_first { other.last } else { self.last.max(other.last) };
        self.count = self.count.saturating_add(other.count);
    }
}
