//! The payload of a CODE item: what is known of a code.

/// Size of the payload.
pub const SIZE: usize = 40;

/// Offset of the u64 that tells when the code was unloaded or moved away; 0 while it lives.
pub const DIED: usize = 0;
/// Offset of the u64 that tells the size of the code.
pub const CODE_SIZE: usize = 8;
/// Offset of the u64 that numbers the code, as in LOAD.
pub const CODE_INDEX: usize = 16;
/// Offset of the u32 that tells the size of all records of this code, a multiple of 8.
pub const GROUP_SIZE: usize = 24;
/// Offset of the u32 that tells the thread that made the code.
pub const TID: usize = 28;
/// Offset of the u8 that tells the [`Kind`](super::Kind).
pub const KIND: usize = 32;
/// Offset of the u8 that holds the flags.
pub const FLAGS: usize = 33;

/// Flag: no LOAD follows.
pub const LEAN: u8 = 1;
/// Flag: the code keeps a frame pointer, set up by the machine's standard prologue.
pub const FRAME_POINTER: u8 = 2;
/// Flag: the code has a frame pointer throughout, and sets up none of its own.
pub const FRAME_POINTER_THROUGHOUT: u8 = 4;
