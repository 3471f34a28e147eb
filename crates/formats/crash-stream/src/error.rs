//! Why a minidump or a stream is not what it should be.

use core::fmt;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The file is no minidump, or one of a machine with another byte order.
    NotAMinidump,
    /// The file ends too early.
    Cut {
        /// What is not all there.
        what: &'static str,
        /// Where it begins.
        at: u64,
        /// Its size.
        size: u64,
    },
    /// The minidump would have more than 4 GiB, which its offsets do not allow.
    TooLarge,
    /// The minidump has a stream of this type already.
    HasStream,
    /// The stream is damaged.
    Damaged {
        /// Offset in the stream.
        at: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// A stream of a later version of this project.
    Version(u16),
    /// The snapshot is not one of a code log.
    NotASnapshot {
        /// Offset in the snapshot.
        at: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAMinidump => f.write_str("not a minidump in this machine's byte order"),
            Self::Cut { what, at, size } => {
                write!(f, "the minidump is cut: {what} at offset {at:#x} is {size} bytes long")
            }
            Self::TooLarge => f.write_str("the minidump would be larger than 4 GiB"),
            Self::HasStream => f.write_str("the minidump already describes JIT-compiled code"),
            Self::Damaged { at, what } => {
                write!(f, "the stream of JIT-compiled code is damaged at offset {at:#x}: {what}")
            }
            Self::Version(version) => {
                write!(f, "version {version} of the stream of JIT-compiled code is not supported")
            }
            Self::NotASnapshot { at } => {
                write!(f, "not a snapshot of a code log: damaged at offset {at:#x}")
            }
        }
    }
}

impl core::error::Error for Error {}
