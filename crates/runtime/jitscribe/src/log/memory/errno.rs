//! Errors of Windows, by their numbers.

use std::{fmt, io};

/// The number of a system error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(i32);

impl Errno {
    /// `ERROR_NOT_ENOUGH_MEMORY`.
    pub(crate) const NOMEM: Self = Self(8);
    /// `ERROR_NOT_SUPPORTED`.
    pub(super) const NOT_SUPPORTED: Self = Self(50);

    pub(crate) const FBIG: Self = Self(223);

    pub(crate) const fn raw_os_error(self) -> i32 {
        self.0
    }

    pub(crate) const fn from_raw_os_error(number: i32) -> Self {
        Self(number)
    }

    pub(super) fn last() -> Self {
        io::Error::last_os_error().raw_os_error().map_or(Self::NOMEM, Self)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        io::Error::from_raw_os_error(self.0).fmt(f)
    }
}
