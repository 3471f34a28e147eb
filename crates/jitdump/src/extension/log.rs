//! The payload of a LOG item: the control words of a code log.

use super::LeftOut;
use crate::endian::Fields;

/// The version described here.
pub const VERSION: u32 = 1;

/// Size of the payload.
pub const SIZE: usize = 80;

/// Where the first chunk begins in the file. The record with the LOG item reaches up to there.
pub const FIRST_CHUNK: usize = 4096;

/// Offset of the u32 that tells the version.
pub const VERSION_AT: usize = 0;
/// Offset of the u32 that tells the size of a chunk.
pub const CHUNK_SIZE: usize = 4;
/// Offset of the u32 that tells how many chunks are in use.
pub const CHUNKS: usize = 8;
/// Offset of the u32 of [`control`](super::control) bits.
pub const CONTROL: usize = 12;
/// Offset of the u64 that tells the size to which the file may grow.
pub const LIMIT: usize = 16;
/// Offset of the u64 that counts the codes not written for want of room.
pub const LEFT_OUT: usize = 24;
/// Offset of the u64 that tells the time of the first of them.
pub const LEFT_OUT_FIRST: usize = 32;
/// Offset of the u64 that tells the time of the last of them.
pub const LEFT_OUT_LAST: usize = 40;
/// Offset of the u64 that tells when the log was turned off the last time; 0: never.
pub const PAUSED: usize = 48;
/// Offset of the u64 that tells when it was turned on again; 0: never.
pub const RESUMED: usize = 56;
/// Offset of the u64 that tells when the process was forked from one with a log; 0: not known.
pub const FORKED: usize = 64;
/// Offset of the u32 that tells the process it was forked from; 0: none.
pub const PARENT: usize = 72;

/// What a LOG item says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogItem {
    /// Version of the log; [`VERSION`] is the one described.
    pub version: u32,
    /// Size of a chunk in bytes.
    pub chunk_size: u32,
    /// How many chunks are in use.
    pub chunks: u32,
    /// What the process is to do: bits of [`control`](super::control).
    pub control: u32,
    /// Size in bytes to which the file may grow.
    pub limit: u64,
    /// The codes that were not written for want of room.
    pub left_out: LeftOut,
    /// When the log was turned off the last time; 0: never.
    pub paused: u64,
    /// When it was turned on again; 0: never.
    pub resumed: u64,
    /// When the process was forked from one with a log; 0: not known.
    pub forked: u64,
    /// The process it was forked from; 0: none.
    pub parent: u32,
}

impl LogItem {
    pub(crate) fn parse(mut fields: Fields<'_>) -> Option<Self> {
        let item = Self {
            version: fields.u32()?,
            chunk_size: fields.u32()?,
            chunks: fields.u32()?,
            control: fields.u32()?,
            limit: fields.u64()?,
            left_out: LeftOut::read(&mut fields)?,
            paused: fields.u64()?,
            resumed: fields.u64()?,
            forked: fields.u64()?,
            parent: fields.u32()?,
        };
        fields.u32()?;
        Some(item)
    }
}
