//! Errors in a dump, and their positions.

use core::fmt;

use crate::record_id::RecordId;

/// Something in the dump that cannot be read: its position and the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// Offset in the file: of the file header, or of the bad record.
    pub offset: u64,
    /// The cause.
    pub kind: ErrorKind,
}

impl Error {
    pub(crate) fn new(offset: u64, kind: ErrorKind) -> Self {
        Self { offset, kind }
    }
}

/// The causes of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is shorter than the 40 bytes of a header.
    HeaderCutOff {
        /// Length of the file.
        len: u64,
    },
    /// The first four bytes are not the magic number in either byte order.
    BadMagic {
        /// The bytes found.
        found: [u8; 4],
    },
    /// A version whose layout is unknown (above 1).
    UnknownVersion {
        /// The version found.
        version: u32,
    },
    /// Bytes that are not a record. Reading continues where the next record is found, if there is one.
    Gap {
        /// How many bytes were skipped.
        len: u64,
        /// Whether they begin with at least a record header of zeros, as a crash leaves behind.
        zeros: bool,
    },
    /// The record is too small for the fields of its type.
    RecordTooSmall {
        /// Type of the record.
        id: RecordId,
        /// The size in its header.
        total_size: u32,
    },
    /// A LOAD whose name has no terminating NUL within the record.
    NameNotTerminated,
    /// A LOAD that claims more code than the record holds.
    CodeTooLarge {
        /// The size claimed.
        code_size: u64,
        /// What the record has behind the name.
        available: u64,
    },
    /// A DEBUG_INFO whose entries end before their count is reached.
    EntryCutOff {
        /// Number of the entry, from 0.
        index: u64,
        /// The count claimed.
        nr_entry: u64,
    },
    /// An UNWINDING_INFO whose sizes contradict one another or the record's.
    UnwindingTooLarge {
        /// Size of all unwinding data claimed.
        unwinding_size: u64,
        /// Size of the header within it claimed.
        eh_frame_hdr_size: u64,
        /// What the record has.
        available: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at offset {:#x}: {}", self.offset, self.kind)
    }
}

impl core::error::Error for Error {}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeaderCutOff { len } => {
                write!(f, "a jitdump header has 40 bytes, but the file has {len}")
            }
            Self::BadMagic { found } => write!(f, "not a jitdump: it begins with {found:02x?}"),
            Self::UnknownVersion { version } => write!(f, "unknown jitdump version {version}"),
            Self::Gap { len, zeros } => {
                let hole = if *zeros { ", a hole of zeros" } else { "" };
                write!(f, "no record here ({len} bytes skipped{hole})")
            }
            Self::RecordTooSmall { id, total_size } => {
                write!(f, "{id} record of {total_size} bytes is too small for its fields")
            }
            Self::NameNotTerminated => f.write_str("the code's name is not terminated"),
            Self::CodeTooLarge { code_size, available } => {
                write!(f, "the record claims {code_size} bytes of code but contains {available}")
            }
            Self::EntryCutOff { index, nr_entry } => {
                write!(f, "debug entry {index} of {nr_entry} does not fit into its record")
            }
            Self::UnwindingTooLarge { unwinding_size, eh_frame_hdr_size, available } => write!(
                f,
                "the record claims {unwinding_size} bytes of unwind data with a header of \
                 {eh_frame_hdr_size}, but contains {available}"
            ),
        }
    }
}

impl core::error::Error for ErrorKind {}
