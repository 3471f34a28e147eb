//! The payload of a CODE item, which describes a code.

use super::Kind;
use crate::endian::Fields;

/// Size of the payload.
pub const SIZE: usize = 40;

/// Offset of the u64 with the time when the code was unloaded or moved away; 0 while it is loaded.
pub const DIED: usize = 0;
/// Offset of the u64 with the size of the code.
pub const CODE_SIZE: usize = 8;
/// Offset of the u64 with the code's number, as in LOAD.
pub const CODE_INDEX: usize = 16;
/// Offset of the u32 with the size of all records of this code, a multiple of 8.
pub const GROUP_SIZE: usize = 24;
/// Offset of the u32 with the id of the thread that loaded the code.
pub const TID: usize = 28;
/// Offset of the u8 with the [`Kind`].
pub const KIND: usize = 32;
/// Offset of the u8 with the flags.
pub const FLAGS: usize = 33;

/// Largest size accepted for a code without bytes. The dump does not contain the bytes, so nothing but this field
/// supports the claim.
pub const LARGEST_WITHOUT_BYTES: u64 = 1 << 28;

/// Flag: no LOAD follows.
pub const WITHOUT_BYTES: u8 = 1;
/// Flag: the code keeps a frame pointer, set up by the machine's standard prologue.
pub const FRAME_POINTER: u8 = 2;
/// Flag: the code has a frame pointer throughout, but does not set up its own.
pub const FRAME_POINTER_THROUGHOUT: u8 = 4;

/// The content of a CODE item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeItem {
    /// When the code was unloaded or moved away, by the records' clock; 0 while it is loaded.
    pub died: u64,
    /// Its size in bytes.
    pub code_size: u64,
    /// Its number, as in LOAD.
    pub code_index: u64,
    /// Size in bytes of all its records, from the start of this one on.
    pub group_size: u32,
    /// Id of the thread that loaded it.
    pub tid: u32,
    /// What it is to its runtime.
    pub kind: Kind,
    /// [`WITHOUT_BYTES`], [`FRAME_POINTER`], [`FRAME_POINTER_THROUGHOUT`].
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
    pub fn is_without_bytes(&self) -> bool {
        self.flags & WITHOUT_BYTES != 0
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
    /// It sets up its own frame pointer with the machine's standard prologue.
    Prologue,
    /// It has a frame pointer throughout that it did not set up: that of its caller.
    Throughout,
}
