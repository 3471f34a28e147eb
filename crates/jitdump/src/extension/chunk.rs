//! The payload of a CHUNK item, which begins a chunk of a code log, and the fillers in it.

use crate::endian::Fields;

/// Size of the payload.
pub const SIZE: usize = 16;

/// Size of the record with the CHUNK item, which begins each chunk.
pub const HEAD_SIZE: usize = 64;

/// Offset of the u64 that grows whenever room of the chunk is used anew: odd while that is being prepared.
pub const EPOCH: usize = 0;
/// Offset of the u32 that tells how many chunks from here on belong together.
pub const SPAN: usize = 8;

/// Smallest size of a filler: a DEBUG_INFO record of no address, with no entries and no tail.
pub const FILLER_MIN: usize = 32;

/// What a CHUNK item says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkItem {
    /// Grows whenever room of the chunk is used anew; odd while that is being prepared.
    pub epoch: u64,
    /// How many chunks from here on belong together.
    pub span: u32,
}

impl ChunkItem {
    pub(crate) fn parse(mut fields: Fields<'_>) -> Option<Self> {
        let item = Self { epoch: fields.u64()?, span: fields.u32()? };
        fields.u32()?;
        Some(item)
    }
}
