//! UNWIND_INFO in memory, above its code.

use std::ops::Range;

use fallible::{HashMap, Vec};

use super::memory::Pages;

/// Memory is reserved in units of this size, the system's granularity.
const BLOCK: usize = 64 << 10;

/// The UNWIND_INFO of one region. Identical ones are stored only once, for all codes: compilers use few prologues. So they stay
/// as long as the region does.
#[derive(Debug, Default)]
pub(crate) struct Infos {
    blocks: Vec<Pages>,
    /// Bytes in use of the last block.
    used: usize,
    places: HashMap<Vec<u8>, u64>,
    /// The reverse map. Both have their own copy of the bytes, which are few.
    contents: HashMap<u64, Vec<u8>>,
}

impl Infos {
    /// The address of this UNWIND_INFO, which is stored within `range` if it is new. `None` if there is no space. If an
    /// allocation fails in the caller's attempt, the address must not be used.
    pub(crate) fn place(&mut self, bytes: &[u8], range: &Range<u64>) -> Option<u64> {
        if let Some(place) = self.places.get(bytes) {
            return Some(*place);
        }
        let is_full = |pages: &Pages| pages.size() < self.used.saturating_add(bytes.len());
        if self.blocks.last().is_none_or(is_full) {
            self.blocks.push(Pages::within(range.clone(), BLOCK)?);
            self.used = 0;
        }
        let block = self.blocks.last_mut()?;
        block.write(self.used, bytes)?;
        let place = block.address().checked_add(self.used as u64)?;
        self.used = self.used.checked_add(bytes.len())?.checked_next_multiple_of(4)?;
        self.places.insert(bytes.into(), place);
        self.contents.insert(place, bytes.into());
        Some(place)
    }

    /// The UNWIND_INFO at an address.
    pub(crate) fn at(&self, place: u64) -> Option<&[u8]> {
        self.contents.get(&place).map(Vec::as_slice)
    }

    /// The memory, for a caller that keeps it until no thread reads it any more.
    pub(crate) fn into_blocks(self) -> Vec<Pages> {
        self.blocks
    }
}
