//! The clock of all records.

use crate::system;

/// Now, in nanoseconds of a clock that does not go back. Never 0.
pub(crate) fn now() -> u64 {
    system::nanoseconds().max(1)
}
