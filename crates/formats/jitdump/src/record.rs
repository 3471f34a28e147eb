//! One record: its header, and its body by type.

use crate::debug_info::DebugInfo;
use crate::endian::{Endian, Fields};
use crate::error::ErrorKind;
use crate::load::{Load, Move};
use crate::record_id::RecordId;
use crate::unwinding::UnwindingInfo;

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
