//! The payload of a LOG item: the control words of a code log.

use super::LeftOut;
use crate::endian::Fields;

/// The version that this module describes.
pub const VERSION: u32 = 1;

/// Size of the payload.
pub const SIZE: usize = 80;

/// Offset in the file of the first chunk. The record with the LOG item extends up to it.
pub const FIRST_CHUNK: usize = 4096;

/// Offset of the u32 with the version.
pub const VERSION_AT: usize = 0;
/// Offset of the u32 with the size of a chunk.
pub const CHUNK_SIZE: usize = 4;
/// Offset of the u32 with the number of chunks in use.
pub const CHUNKS: usize = 8;
/// Offset of the u32 of [`control`](super::control) bits.
pub const CONTROL: usize = 12;
/// Offset of the u64 with the size to which the file may grow.
pub const LIMIT: usize = 16;
/// Offset of the u64 with the number of codes that were not written for lack of space.
pub const LEFT_OUT: usize = 24;
/// Offset of the u64 with the time of the first of them.
pub const LEFT_OUT_FIRST: usize = 32;
/// Offset of the u64 with the time of the last of them.
pub const LEFT_OUT_LAST: usize = 40;
/// Offset of the u64 with the time when the log was last turned off; 0: never.
pub const PAUSED: usize = 48;
/// Offset of the u64 with the time when it was turned on again; 0: never.
pub const RESUMED: usize = 56;
/// Offset of the u64 with the time when the process was forked from one with a log; 0: unknown.
pub const FORKED: usize = 64;
/// Offset of the u32 with the id of the process that it was forked from; 0: none.
pub const PARENT: usize = 72;
/// Offset of the u32 with the place of the parent's log, and the bit [`IS_SHARED`].
pub const INHERITED: usize = 76;
/// Bit of [`INHERITED`]: a child of a fork has read this log in place. The process that writes it delays the reuse of space.
pub const IS_SHARED: u32 = 1;
/// [`INHERITED`] without that bit is the address of the parent's log in units of this size; 0: the log has all codes itself.
pub const INHERITED_UNIT: u64 = 1 << 15;

/// The content of a LOG item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogItem {
    /// Version of the log; this module describes [`VERSION`].
    pub version: u32,
    /// Size of a chunk in bytes.
    pub chunk_size: u32,
    /// How many chunks are in use.
    pub chunks: u32,
    /// What the process should do: bits of [`control`](super::control).
    pub control: u32,
    /// Size in bytes to which the file may grow.
    pub limit: u64,
    /// The codes that were not written for lack of space.
    pub left_out: LeftOut,
    /// When the log was last turned off; 0: never.
    pub paused: u64,
    /// When it was turned on again; 0: never.
    pub resumed: u64,
    /// When the process was forked from one with a log; 0: unknown.
    pub forked: u64,
    /// Id of the process that it was forked from; 0: none.
    pub parent: u32,
    /// The address at which the process has the log of that process mapped, if codes of that log belong to it: those that were alive
    /// at the time in [`Self::forked`]. `None`: the log has all codes itself.
    pub inherited: Option<u64>,
}

/// The address in a field [`INHERITED`].
#[must_use]
pub fn inherited_address(field: u32) -> Option<u64> {
    let place = u64::from(field & !IS_SHARED);
    (place != 0).then(|| place.saturating_mul(INHERITED_UNIT))
}

impl LogItem {
    pub(crate) fn parse(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self {
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
            inherited: inherited_address(fields.u32()?),
        })
    }
}
