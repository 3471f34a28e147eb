//! One record: its header, and its body by type.

use core::fmt;

use crate::debug_info::DebugInfo;
use crate::endian::{Endian, Fields};
use crate::error::ErrorKind;
use crate::load::{Load, Move};
use crate::unwinding::UnwindingInfo;

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

    /// Whether version 1 defines this type.
    #[must_use]
    pub fn is_known(self) -> bool {
        self <= Self::UNWINDING_INFO
    }

    /// Smallest size in bytes that a record of this type can have, its header included.
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
            Self(other) => write!(f, "unknown ({other:#x})"),
        }
    }
}

/// A record, borrowed from the dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Offset of its header in the file.
    pub offset: u64,
    /// Its size in bytes, header included.
    pub total_size: u32,
    /// When it was written, in nanoseconds of `CLOCK_MONOTONIC` or, if
    /// [`Header::arch_timestamp`](crate::Header::arch_timestamp), in ticks of the processor's clock. Neither unique
    /// nor always ascending.
    pub timestamp: u64,
    /// Its content.
    pub body: Body<'a>,
}

/// The body of a record by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// A code was loaded or replaced.
    Load(Load<'a>),
    /// A code was moved.
    Move(Move),
    /// Source lines.
    DebugInfo(DebugInfo<'a>),
    /// The writer closed the dump properly.
    Close,
    /// Unwind tables.
    UnwindingInfo(UnwindingInfo<'a>),
    /// A type that version 1 does not define.
    Unknown {
        /// The type.
        id: u32,
        /// All bytes behind the record's header.
        bytes: &'a [u8],
    },
}

impl Body<'_> {
    /// The record's type.
    #[must_use]
    pub fn id(&self) -> RecordId {
        match self {
            Self::Load(_) => RecordId::LOAD,
            Self::Move(_) => RecordId::MOVE,
            Self::DebugInfo(_) => RecordId::DEBUG_INFO,
            Self::Close => RecordId::CLOSE,
            Self::UnwindingInfo(_) => RecordId::UNWINDING_INFO,
            Self::Unknown { id, .. } => RecordId(*id),
        }
    }
}

/// A record's header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefix {
    pub(crate) id: RecordId,
    pub(crate) total_size: u32,
    pub(crate) timestamp: u64,
}

impl Prefix {
    pub(crate) fn read(data: &[u8], endian: Endian) -> Option<Self> {
        let mut fields = Fields::new(data, endian);
        Some(Self {
            id: RecordId(fields.u32()?),
            total_size: fields.u32()?,
            timestamp: fields.u64()?,
        })
    }
}

/// Parses the body that follows `prefix`; `payload` is all of the record behind its header.
pub(crate) fn parse_body<'a>(
    prefix: Prefix,
    payload: &'a [u8],
    endian: Endian,
) -> Result<Body<'a>, ErrorKind> {
    let fields = Fields::new(payload, endian);
    let too_small = ErrorKind::RecordTooSmall { id: prefix.id, total_size: prefix.total_size };
    match prefix.id {
        RecordId::LOAD => Load::parse(fields, too_small).map(Body::Load),
        RecordId::MOVE => Move::parse(fields).map(Body::Move).ok_or(too_small),
        RecordId::DEBUG_INFO => DebugInfo::parse(fields).map(Body::DebugInfo).ok_or(too_small),
        RecordId::CLOSE => Ok(Body::Close),
        RecordId::UNWINDING_INFO => {
            UnwindingInfo::parse(fields, too_small).map(Body::UnwindingInfo)
        }
        RecordId(id) => Ok(Body::Unknown { id, bytes: payload }),
    }
}
