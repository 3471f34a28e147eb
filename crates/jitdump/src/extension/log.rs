//! The payload of a LOG item: the control words of a code log.

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
