//! Memory for the FDEs of a block. Rows refer to them with 32-bit offsets, so they are stored together.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use fallible::{Map, Vec};

use crate::memory::map;

/// Address space, of which pages are used on demand.
const ROOM: usize = 16 << 20;

/// The place of an FDE: its first byte, and its size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    at: usize,
    size: usize,
}

/// The memory, which is never freed, because a walk may be reading it.
#[derive(Debug)]
pub(super) struct Pool {
    base: NonNull<u8>,
    next: usize,
    /// By size.
    free: Map<usize, Vec<usize>>,
}

// SAFETY: only `&mut self` writes to the memory.
unsafe impl Send for Pool {}

impl Pool {
    pub(super) fn new() -> Option<Self> {
        // Eight zeros first, which end a search that finds them.
        Some(Self { base: map(ROOM)?, next: 8, free: Map::new() })
    }

    pub(super) fn address(&self) -> u64 {
        self.base.as_ptr().expose_provenance() as u64
    }

    /// Stores an FDE where no row refers to.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Option<Place> {
        let size = bytes.len().checked_next_multiple_of(8)?;
        let used = self.free.get_mut(&size).and_then(Vec::pop);
        let at = match used {
            Some(at) => at,
            None => {
                let end = self.next.checked_add(size).filter(|end| *end <= ROOM)?;
                std::mem::replace(&mut self.next, end)
            }
        };
        // SAFETY: `at..at + size` is in the mapping, and no other FDE overlaps with it.
        unsafe {
            self.base.add(at).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len())
        };
        Some(Place { at, size })
    }

    /// Frees a place: no row refers to it any more, and no walk is in the code.
    pub(super) fn take_back(&mut self, place: Place) {
        if !self.free.contains_key(&place.size)
            && self.free.try_insert(place.size, Vec::new()).is_err()
        {
            // A place that cannot be stored is not reused.
            return;
        }
        if let Some(places) = self.free.get_mut(&place.size) {
            let _ = places.try_push(place.at);
        }
    }
}

impl Place {
    /// The offset of the byte at `within` from the beginning.
    pub(super) fn offset(self, within: usize) -> u32 {
        self.at.saturating_add(within) as u32
    }
}
