//! Allocates the text of a segment.

use fallible::Map;

use crate::layout::GRANULE;

/// Allocates regions for code: fresh ones first, so that code that was freed recently can still be looked up. Adjacent
/// free regions are merged.
#[derive(Debug)]
pub(crate) struct TextAllocator {
    next: usize,
    end: usize,
    /// Sizes, by place.
    free: Map<usize, usize>,
    /// Size and place.
    by_size: Map<(usize, usize), ()>,
}

/// A range of the text, in bytes from the file's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) at: usize,
    /// A multiple of [`GRANULE`].
    pub(crate) size: usize,
}

impl TextAllocator {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { next: start, end, free: Map::new(), by_size: Map::new() }
    }

    /// The end of everything that was ever allocated.
    pub(crate) fn next(&self) -> usize {
        self.next
    }

    /// The end of a fresh region of this size, if it were allocated; `None` if there is no space.
    pub(crate) fn fresh_end(&self, size: usize, align: usize) -> Option<usize> {
        let at = self.next.checked_next_multiple_of(align)?;
        at.checked_add(rounded(size)?).filter(|end| *end <= self.end)
    }

    /// Allocates a region that was never in use.
    pub(crate) fn allocate_fresh(&mut self, size: usize, align: usize) -> Option<Region> {
        let end = self.fresh_end(size, align)?;
        let region = Region { at: end.checked_sub(rounded(size)?)?, size: rounded(size)? };
        let gap = region.at.saturating_sub(self.next);
        if gap > 0 {
            self.insert(Region { at: self.next, size: gap });
        }
        self.next = end;
        Some(region)
    }

    /// Allocates a region that was freed.
    pub(crate) fn allocate_freed(&mut self, size: usize, align: usize) -> Option<Region> {
        /// Number of regions that are checked: they are large enough, but may not be after alignment.
        const TRIES: usize = 16;
        let size = rounded(size)?;
        let candidates = self.by_size.range((size, 0)..).take(TRIES);
        let fitting = candidates.filter_map(|(&(has, place), ())| {
            let at = place.checked_next_multiple_of(align)?;
            let end = at.checked_add(size)?;
            (end <= place.saturating_add(has)).then_some((place, has, at))
        });
        let found = { fitting }.next();
        let (place, has, at) = found?;
        self.remove(place, has);
        let (end, has_end) = (at.saturating_add(size), place.saturating_add(has));
        if at > place {
            self.insert(Region { at: place, size: at.saturating_sub(place) });
        }
        if has_end > end {
            self.insert(Region { at: end, size: has_end.saturating_sub(end) });
        }
        Some(Region { at, size })
    }

    /// Frees a region.
    pub(crate) fn release(&mut self, region: Region) {
        let Region { mut at, mut size } = region;
        if let Some((&before, &has)) = self.free.last_below(&at)
            && before.saturating_add(has) == at
        {
            self.remove(before, has);
            at = before;
            size = size.saturating_add(has);
        }
        let end = at.saturating_add(size);
        if let Some(&has) = self.free.get(&end) {
            self.remove(end, has);
            size = size.saturating_add(has);
        }
        self.insert(Region { at, size });
    }

    fn insert(&mut self, region: Region) {
        // A region that cannot be stored is not reused.
        if self.free.try_insert(region.at, region.size).is_ok()
            && self.by_size.try_insert((region.size, region.at), ()).is_err()
        {
            self.free.remove(&region.at);
        }
    }

    fn remove(&mut self, at: usize, size: usize) {
        self.free.remove(&at);
        self.by_size.remove(&(size, at));
    }
}

/// Codes begin at granules, so that each has a row of its own in the search table.
fn rounded(size: usize) -> Option<usize> {
    size.max(1).checked_next_multiple_of(GRANULE)
}

#[cfg(test)]
mod tests {
    use super::{Region, TextAllocator};

    #[test]
    fn adjacent_free_regions_are_merged() {
        let mut allocator = TextAllocator::new(0x1000, 0x1000 + 0x100);
        let all: Vec<Region> = (0..8).map(|_| allocator.allocate_fresh(20, 32).unwrap()).collect();
        assert_eq!(allocator.allocate_fresh(1, 32), None);
        for region in [all[1], all[3], all[2]] {
            allocator.release(region);
        }
        assert_eq!(allocator.allocate_freed(97, 32), None);
        assert_eq!(allocator.allocate_freed(64, 64), Some(Region { at: 0x1040, size: 64 }));
        assert_eq!(allocator.allocate_freed(64, 32), None);
        assert_eq!(allocator.allocate_freed(32, 32), Some(Region { at: 0x1020, size: 32 }));
    }

    #[test]
    fn a_gap_left_by_alignment_is_used_later() {
        let mut allocator = TextAllocator::new(0x1000, 0x2000);
        allocator.allocate_fresh(1, 32).unwrap();
        assert_eq!(allocator.allocate_fresh(1, 256), Some(Region { at: 0x1100, size: 32 }));
        assert_eq!(allocator.allocate_freed(0xe0, 32), Some(Region { at: 0x1020, size: 0xe0 }));
    }
}
