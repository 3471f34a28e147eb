//! Allocates space in a table whose entries come and go.

use fallible::{Map, Vec};

/// Allocates places in a range: freed ones that fit, or new ones at the end.
#[derive(Debug)]
pub(crate) struct Slots {
    /// The end of everything that was ever allocated.
    next: usize,
    end: usize,
    unit: usize,
    /// Free places by size.
    free: Map<usize, Vec<usize>>,
}

/// A place. It is not allocated again until it is freed.
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
    /// An allocator for `start..end`, with places of multiples of `unit`.
    pub(crate) fn new(start: usize, end: usize, unit: usize) -> Self {
        Self { next: start, end, unit, free: Map::new() }
    }

    /// The start of the part that was never used.
    pub(crate) fn next(&self) -> usize {
        self.next
    }

    /// Allocates at least `size` bytes; only a little more, unless there is no other place.
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

    pub(crate) fn release(&mut self, slot: Slot) {
        if slot.size > 0 {
            // A place that cannot be stored is not reused.
            if !self.free.contains_key(&slot.size)
                && self.free.try_insert(slot.size, Vec::new()).is_err()
            {
                return;
            }
            if let Some(places) = self.free.get_mut(&slot.size) {
                let _ = places.try_push(slot.at);
            }
        }
    }

    fn take_free(&mut self, least: usize, most: usize) -> Option<Slot> {
        let (&size, _) = self.free.first_from(&least).filter(|(size, _)| **size <= most)?;
        let places = self.free.get_mut(&size)?;
        let at = places.pop();
        if places.is_empty() {
            self.free.remove(&size);
        }
        let at = at?;
        Some(Slot { at, size })
    }
}

#[cfg(test)]
mod tests {
    use super::{Slot, Slots};

    #[test]
    fn freed_slots_are_reused_for_the_same_size() {
        let mut slots = Slots::new(64, 256, 8);
        let first = slots.take(20).unwrap();
        assert_eq!(first, Slot { at: 64, size: 24 });
        let second = slots.take(100).unwrap();
        assert_eq!((second, slots.next()), (Slot { at: 88, size: 104 }, 192));
        slots.release(first);
        slots.release(second);
        assert_eq!(slots.take(0), Some(Slot::default()));
        // Not from much larger ones while there is new space.
        assert_eq!(slots.take(32), Some(Slot { at: 192, size: 32 }));
        assert_eq!(slots.take(24), Some(first));
        assert_eq!(slots.take(24), Some(Slot { at: 224, size: 24 }));
        assert_eq!(slots.take(24), Some(second));
        assert_eq!(slots.take(24), None);
    }
}
