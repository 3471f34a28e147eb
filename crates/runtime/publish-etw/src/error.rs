//! Errors of the publisher.

use std::fmt;

/// Why the publisher could not be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// There is no ETW on this system.
    NotWindows,
    /// The system does not register the provider. The number is its error (winerror.h).
    NotRegistered(u32),
    /// An allocation failed.
    Memory,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no events for profilers: ")?;
        match self {
            Self::NotWindows => f.write_str("this system has no ETW"),
            Self::NotRegistered(error) => {
                write!(f, "the system does not register a provider (error {error})")
            }
            Self::Memory => f.write_str("out of memory"),
        }
    }
}

impl std::error::Error for Error {}
