//! UNWIND_INFO in memory, above the code that it is of.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::memory::Pages;

/// As much is reserved at once, by the system's own measure.
const BLOCK: usize = 64 << 10;

/// Those of one region. What is the same is there once, whatever code it is of: compilers make few
/// prologues. So it stays as long as the region does.
#[derive(Debug, Default)]
pub(crate) struct Infos {
    blocks: Vec<Pages>,
    /// Bytes taken of the last one.
    used: usize,
    places: HashMap<Arc<[u8]>, u64>,
    /// And the other way.
    known: HashMap<u64, Arc<[u8]>>,
}

impl Infos {
    /// The address of this information, made within `room` if it is new. `None` if there is no room.
    pub(crate) fn place(&mut self, bytes: &[u8], room: &Range<u64>) -> Option<u64> {
        if let Some(place) = self.places.get(bytes) {
            return Some(*place);
        }
        let is_full = |pages: &Pages| pages.size() < self.used.saturating_add(bytes.len());
        if self.blocks.last().is_none_or(is_full) {
            self.blocks.push(Pages::within(room.clone(), BLOCK)?);
            self.used = 0;
        }
        let block = self.blocks.last_mut()?;
        block.write(self.used, bytes)?;
        let place = block.address().checked_add(self.used as u64)?;
        self.used = self.used.checked_add(bytes.len())?.checked_next_multiple_of(4)?;
        let bytes: Arc<[u8]> = bytes.into();
        self.places.insert(bytes.clone(), place);
        self.known.insert(place, bytes);
        Some(place)
    }

    /// The information at an address.
    pub(crate) fn at(&self, place: u64) -> Option<&[u8]> {
        self.known.get(&place).map(|bytes| &**bytes)
    }

    /// The memory, for who sees to it that nobody reads it any more.
    pub(crate) fn into_blocks(self) -> Vec<Pages> {
        self.blocks
    }
}
