//! Consecutive sections, at offsets that differ from their addresses by a constant.

use super::written::LARGEST;
use std::io::{Seek, Write};

use crate::error::Error;
use crate::sparse::SparseWriter;

/// The part of a file behind its text.
pub(super) struct Behind<'a, W> {
    out: &'a mut SparseWriter<W>,
    /// Offset in the file behind the last section.
    pub(super) end: u64,
}

impl<'a, W: Write + Seek> Behind<'a, W> {
    /// The part behind `end`.
    pub(super) fn new(out: &'a mut SparseWriter<W>, end: u64) -> Self {
        Self { out, end }
    }

    /// Advances to the next multiple of `align`, and returns it.
    pub(super) fn align(&mut self, align: u64) -> u64 {
        self.end = self.end.next_multiple_of(align);
        self.end
    }

    /// Writes bytes behind the previous ones; returns their position.
    pub(super) fn write(&mut self, what: &'static str, bytes: &[u8]) -> Result<Room, Error> {
        let offset = self.end;
        let size = bytes.len() as u64;
        let end = offset.saturating_add(size);
        match (u32::try_from(offset), u32::try_from(size)) {
            (Ok(at), Ok(size)) if end <= LARGEST => {
                self.out.write_at(offset, bytes)?;
                self.end = end;
                Ok(Room { at, size })
            }
            _ => Err(Error::TooLarge { what, size: end }),
        }
    }

    /// Hashes what was written, and what will be written at the beginning of the file.
    pub(super) fn hash(&mut self, head: &[&[u8]]) -> Result<[u8; 20], Error> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.out.hash()?.as_bytes());
        for part in head {
            hasher.update(part);
        }
        let mut id = [0; 20];
        hasher.finalize_xof().fill(&mut id);
        Ok(id)
    }
}

/// A part of a file.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Room {
    pub(super) at: u32,
    pub(super) size: u32,
}
