//! Why a minidump or a stream is not what it should be.

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is no minidump, or one of a machine with another byte order.
    #[error("not a minidump in this machine's byte order")]
    NotAMinidump,
    /// The file ends too early.
    #[error("the minidump is cut: {what} at offset {at:#x} is {size} bytes long")]
    Cut {
        /// What is not all there.
        what: &'static str,
        /// Where it begins.
        at: u64,
        /// Its size.
        size: u64,
    },
    /// The minidump would have more than 4 GiB, which its offsets do not allow.
    #[error("the minidump would be larger than 4 GiB")]
    TooLarge,
    /// The minidump has a stream of this type already.
    #[error("the minidump already describes JIT-compiled code")]
    HasStream,
    /// The stream is damaged.
    #[error("the stream of JIT-compiled code is damaged at offset {at:#x}: {what}")]
    Damaged {
        /// Offset in the stream.
        at: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// A stream of a later version of this project.
    #[error("version {0} of the stream of JIT-compiled code is not supported")]
    Version(u16),
    /// The snapshot is not one of a code log.
    #[error("not a snapshot of a code log: damaged at offset {at:#x}")]
    NotASnapshot {
        /// Offset in the snapshot.
        at: u64,
    },
}
