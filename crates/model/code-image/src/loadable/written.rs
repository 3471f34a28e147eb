//! The result of the writers of the formats.

use crate::cfi::UnwindSummary;

/// Distances within an object are signed 32-bit numbers.
pub(super) const LARGEST: u64 = i32::MAX as u64;

/// The result of the writer of one of the formats.
pub(super) struct Written {
    pub(super) id: [u8; 20],
    pub(super) file_size: u64,
    pub(super) unwind: UnwindSummary,
}
