//! The payload of a CHUNK item, which begins a chunk of a code log, and the fillers in it.

/// Size of the payload.
pub const SIZE: usize = 16;

/// Size of the record with the CHUNK item, which begins each chunk.
pub const HEAD_SIZE: usize = 64;

/// Offset of the u64 that grows whenever room of the chunk is used anew.
pub const EPOCH: usize = 0;
/// Offset of the u32 that tells how many chunks from here on belong together.
pub const SPAN: usize = 8;

/// Smallest size of a filler: a DEBUG_INFO record of no address, with no entries and no tail.
pub const FILLER_MIN: usize = 32;
