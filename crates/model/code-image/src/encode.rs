//! Encodes numbers as bytes, in the target's byte order.

use fallible::Vec;
use jit_code::leb128;

use crate::target::{Endian, Target};

/// A growing piece of the file, in the target's byte order.
#[derive(Debug, Clone)]
pub(crate) struct Encoder {
    pub(crate) bytes: Vec<u8>,
    target: Target,
}

impl Encoder {
    pub(crate) fn new(target: Target) -> Self {
        Encoder { bytes: Vec::new(), target }
    }

    /// An empty one that reuses the memory of `room`.
    pub(crate) fn with_room(target: Target, mut room: Vec<u8>) -> Self {
        room.clear();
        Encoder { bytes: room, target }
    }

    pub(crate) fn target(&self) -> Target {
        self.target
    }

    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        match self.target.endian {
            Endian::Little => self.bytes.extend_from_slice(&value.to_le_bytes()),
            Endian::Big => self.bytes.extend_from_slice(&value.to_be_bytes()),
        }
    }

    pub(crate) fn u32(&mut self, value: u32) {
        match self.target.endian {
            Endian::Little => self.bytes.extend_from_slice(&value.to_le_bytes()),
            Endian::Big => self.bytes.extend_from_slice(&value.to_be_bytes()),
        }
    }

    /// Replaces the 32 bits written at `offset`.
    pub(crate) fn set_u32(&mut self, offset: usize, value: u32) {
        let bytes = match self.target.endian {
            Endian::Little => value.to_le_bytes(),
            Endian::Big => value.to_be_bytes(),
        };
        let end = offset.saturating_add(bytes.len());
        if let Some(place) = self.bytes.get_mut(offset..end) {
            place.copy_from_slice(&bytes);
        }
    }

    /// The 32 bits at `offset`; 0 if there are none.
    pub(crate) fn get_u32(&self, offset: usize) -> u32 {
        let field = self.bytes.get(offset..).and_then(|rest| rest.first_chunk()).copied();
        match self.target.endian {
            Endian::Little => u32::from_le_bytes(field.unwrap_or_default()),
            Endian::Big => u32::from_be_bytes(field.unwrap_or_default()),
        }
    }

    pub(crate) fn u64(&mut self, value: u64) {
        match self.target.endian {
            Endian::Little => self.bytes.extend_from_slice(&value.to_le_bytes()),
            Endian::Big => self.bytes.extend_from_slice(&value.to_be_bytes()),
        }
    }

    /// A number of the target's word size. On 32 bits the upper half is cut off: values written here were checked
    /// against the word size, or wrap intentionally.
    pub(crate) fn word(&mut self, value: u64) {
        if self.target.is_64 {
            self.u64(value);
        } else {
            self.u32(value as u32);
        }
    }

    /// An unsigned LEB128 number.
    #[inline]
    pub(crate) fn uleb(&mut self, value: u64) {
        leb128::unsigned(value, |byte| self.bytes.push(byte));
    }

    /// A signed LEB128 number.
    #[inline]
    pub(crate) fn sleb(&mut self, value: i64) {
        leb128::signed(value, |byte| self.bytes.push(byte));
    }

    /// Bytes, none of them NUL, and a NUL.
    pub(crate) fn string(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.bytes.push(0);
    }

    /// Bytes, unchanged.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}
