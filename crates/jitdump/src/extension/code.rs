//! The payload of a CODE item: what is known of a code.

use super::Kind;
use crate::endian::Fields;

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
/// Offset of the u8 that tells the [`Kind`].
pub const KIND: usize = 32;
/// Offset of the u8 that holds the flags.
pub const FLAGS: usize = 33;

/// A lean code that claims more bytes than this is not believed: nothing but its own word speaks for
/// it, as the dump does not hold the bytes.
pub const LARGEST_LEAN: u64 = 1 << 28;

/// Flag: no LOAD follows.
pub const LEAN: u8 = 1;
/// Flag: the code keeps a frame pointer, set up by the machine's standard prologue.
pub const FRAME_POINTER: u8 = 2;
/// Flag: the code has a frame pointer throughout, and sets up none of its own.
pub const FRAME_POINTER_THROUGHOUT: u8 = 4;

/// What a CODE item says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeItem {
    /// When the code was unloaded or moved away, by the records' clock; 0 while it lives.
    pub died: u64,
    /// Its size in bytes.
    pub code_size: u64,
    /// Its number, as in LOAD.
    pub code_index: u64,
    /// Size in bytes of all its records, from the start of this one on.
    pub group_size: u32,
    /// Id of the thread that made it.
    pub tid: u32,
    /// What it is to its runtime.
    pub kind: Kind,
    /// [`LEAN`], [`FRAME_POINTER`], [`FRAME_POINTER_THROUGHOUT`].
    pub flags: u8,
}

impl CodeItem {
    pub(crate) fn parse(mut fields: Fields<'_>) -> Option<Self> {
        let item = Self {
            died: fields.u64()?,
            code_size: fields.u64()?,
            code_index: fields.u64()?,
            group_size: fields.u32()?,
            tid: fields.u32()?,
            kind: Kind::from(fields.u8()?),
            flags: fields.u8()?,
        };
        fields.take(6)?;
        Some(item)
    }

    /// Whether no LOAD follows.
    #[must_use]
    pub fn is_lean(&self) -> bool {
        self.flags & LEAN != 0
    }

    /// How the code keeps a frame pointer, if it is known to keep one.
    #[must_use]
    pub fn frame_pointer(&self) -> Option<FramePointer> {
        if self.flags & FRAME_POINTER != 0 {
            Some(FramePointer::Prologue)
        } else if self.flags & FRAME_POINTER_THROUGHOUT != 0 {
            Some(FramePointer::Throughout)
        } else {
            None
        }
    }
}

/// How a code keeps a frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FramePointer {
    /// It sets one up of its own by the machine's standard prologue.
    Prologue,
    /// There is one throughout, which it did not set up: that of its caller.
    Throughout,
}
