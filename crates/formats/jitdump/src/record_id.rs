//! The types of records.

use core::fmt;

/// Size of the header of every record: type, size, timestamp.
pub const RECORD_HEADER_SIZE: u32 = 16;

/// The type of a record. Compare with the constants; others are extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(pub u32);

impl RecordId {
    /// A code was loaded or replaced.
    pub const LOAD: Self = Self(0);
    /// A code was moved.
    pub const MOVE: Self = Self(1);
    /// Source lines of a code whose LOAD follows.
    pub const DEBUG_INFO: Self = Self(2);
    /// The writer closed the dump properly.
    pub const CLOSE: Self = Self(3);
    /// Unwind tables of a code whose LOAD follows.
    pub const UNWINDING_INFO: Self = Self(4);
    /// [`SourcePositions`](crate::SourcePositions) of a code whose LOAD follows: samply's
    /// `SAMPLY_JIT_CODE_DEBUG_INFO2`, an extension. An earlier layout had the number before.
    pub const SOURCE_POSITIONS: Self = Self(0x3150_4d54);

    /// Whether version 1 defines this type.
    #[inline]
    #[must_use]
    pub fn is_known(self) -> bool {
        self <= Self::UNWINDING_INFO
    }

    /// Smallest size in bytes that a record of this type can have, its header included.
    #[inline]
    #[must_use]
    pub fn min_size(self) -> u32 {
        match self {
            // 40 bytes of fields and the NUL of an empty name.
            Self::LOAD => 57,
            Self::MOVE => 64,
            Self::DEBUG_INFO => 32,
            Self::UNWINDING_INFO => 40,
            _ => RECORD_HEADER_SIZE,
        }
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::LOAD => f.write_str("LOAD"),
            Self::MOVE => f.write_str("MOVE"),
            Self::DEBUG_INFO => f.write_str("DEBUG_INFO"),
            Self::CLOSE => f.write_str("CLOSE"),
            Self::UNWINDING_INFO => f.write_str("UNWINDING_INFO"),
            Self::SOURCE_POSITIONS => f.write_str("SAMPLY_JIT_CODE_DEBUG_INFO2"),
            Self(other) => write!(f, "unknown ({other:#x})"),
        }
    }
}
