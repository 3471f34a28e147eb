//! The payload of a CHUNK item, which begins a chunk of a code log, and the fillers in the chunk.

use crate::endian::Fields;

/// Size of the payload.
pub const SIZE: usize = 16;

/// Size of the record with the CHUNK item, which begins each chunk.
pub const HEAD_SIZE: usize = 64;

/// Offset of the u64 that is incremented whenever space in the chunk is reused: odd while this is being prepared.
pub const EPOCH: usize = 0;
/// Offset of the u32 with the number of chunks, from this one on, that belong together.
pub const SPAN: usize = 8;

/// Smallest size of a filler: a DEBUG_INFO record with address 0, no entries and no tail.
pub const FILLER_MIN: usize = 32;

/// The content of a CHUNK item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkItem {
    /// Incremented whenever space in the chunk is reused; odd while this is being prepared.
    pub epoch: u64,
    /// How many chunks, from this one on, belong together.
    pub span: u32,
}

impl ChunkItem {
    pub(crate) fn parse(mut fields: Fields<'_>) -> Option<Self> {
        let item = Self { epoch: fields.u64()?, span: fields.u32()? };
        fields.u32()?;
        Some(item)
    }
}
