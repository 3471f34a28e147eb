//! Room in a table whose entries come and go.

use std::collections::BTreeMap;

/// Hands out places in a stretch of bytes: such as were given back, if they fit, or behind the last.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Behind all that were ever handed out.
    next: usize,
    end: usize,
    unit: usize,
    /// By size.
    free: BTreeMap<usize, Vec<usize>>,
}

/// A place: nobody else has it until it is given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) at: usize,
    pub(crate) size: usize,
}

impl Slot {
    pub(crate) fn end(self) -> usize {
        self.at.saturating_add(self.size)
    }
}

impl Slots {
    /// For `start..end`, in pieces of multiples of `unit`.
    pub(crate) fn new(start: usize, end: usize, unit: usize) -> Self {
        Self { next: start, end, unit, free: BTreeMap::new() }
    }

    /// Where the first place would be that was never used.
    pub(crate) fn next(&self) -> usize {
        self.next
    }

    /// A place of at least `size` bytes; of little more, unless there is no other.
    pub(crate) fn take(&mut self, size: usize) -> Option<Slot> {
        let size = size.checked_next_multiple_of(self.unit)?;
        if size == 0 {
            return Some(Slot::default());
        }
        let enough = size.saturating_add(size / 2);
        if let Some(slot) = self.take_free(size, enough) {
            return Some(slot);
        }
        match self.next.checked_add(size).filter(|end| *end <= self.end) {
            Some(end) => {
                let at = std::mem::replace(&mut self.next, end);
                Some(Slot { at, size })
            }
            None => self.take_free(size, usize::MAX),
        }
    }

    pub(crate) fn give_back(&mut self, slot: Slot) {
        if slot.size > 0 {
            self.free.entry(slot.size).or_default().push(slot.at);
        }
    }

    fn take_free(&mut self, least: usize, most: usize) -> Option<Slot> {
        let (&size, places) = self.free.range_mut(least..=most).next()?;
        let at = places.pop()?;
        if places.is_empty() {
            self.free.remove(&size);
        }
        Some(Slot { at, size })
    }
}

#[cfg(test)]
mod tests {
    use super::{Slot, Slots};

    #[test]
    fn places_are_used_again_by_what_fits() {
        let mut slots = Slots::new(64, 256, 8);
        let first = slots.take(20).unwrap();
        assert_eq!(first, Slot { at: 64, size: 24 });
        let second = slots.take(100).unwrap();
        assert_eq!((second, slots.next()), (Slot { at: 88, size: 104 }, 192));
        slots.give_back(first);
        slots.give_back(second);
        assert_eq!(slots.take(0), Some(Slot::default()));
        // Not of much larger ones while there is room.
        assert_eq!(slots.take(32), Some(Slot { at: 192, size: 32 }));
        assert_eq!(slots.take(24), Some(first));
        assert_eq!(slots.take(24), Some(Slot { at: 224, size: 24 }));
        assert_eq!(slots.take(24), Some(second));
        assert_eq!(slots.take(24), None);
    }
}
