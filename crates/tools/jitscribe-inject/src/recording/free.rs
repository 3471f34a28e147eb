//! Finds free address ranges of a process.

use std::ops::Range;

/// Ranges begin at multiples of this.
const PAGE: u64 = 4096;

/// The free ranges of an address space.
#[derive(Debug)]
pub struct Free {
    /// Ascending and disjoint; each begins at a page boundary.
    gaps: Vec<Range<u64>>,
    /// The size of the largest gap under each node of a complete binary tree. The gaps are its leaves, from index
    /// `leaves` on.
    largest: Vec<u64>,
    leaves: usize,
}

impl Free {
    /// Everything outside of `taken`, which is ascending and disjoint.
    pub fn outside(taken: &[Range<u64>]) -> Self {
        let starts = std::iter::once(0).chain(taken.iter().map(|range| range.end));
        let ends = taken.iter().map(|range| range.start).chain(std::iter::once(u64::MAX));
        let aligned = starts.zip(ends).filter_map(|(start, end)| {
            let start = start.checked_next_multiple_of(PAGE)?;
            (start < end).then_some(start..end)
        });
        let gaps: Vec<Range<u64>> = aligned.collect();
        let leaves = gaps.len().next_power_of_two();
        let mut largest = vec![0; 2 * leaves];
        for (leaf, gap) in largest[leaves..].iter_mut().zip(&gaps) {
            *leaf = gap.end - gap.start;
        }
        for node in (1..leaves).rev() {
            largest[node] = largest[2 * node].max(largest[2 * node + 1]);
        }
        Self { gaps, largest, leaves }
    }

    /// The first page at or above `from` with `size` free bytes.
    pub fn first(&self, from: u64, size: u64) -> Option<u64> {
        let from = from.checked_next_multiple_of(PAGE)?;
        let gap = self.gaps.partition_point(|gap| gap.end <= from);
        let here = self.gaps.get(gap)?;
        let start = here.start.max(from);
        if here.end - start >= size {
            return Some(start);
        }
        let found = self.large_behind(gap, size)?;
        Some(self.gaps.get(found)?.start)
    }

    /// The first gap behind this one with at least this size.
    fn large_behind(&self, gap: usize, size: u64) -> Option<usize> {
        let mut node = self.leaves + gap;
        // Go up until a right neighbour has one.
        loop {
            if node <= 1 {
                return None;
            }
            let is_left = node.is_multiple_of(2);
            if is_left && self.largest[node + 1] >= size {
                node += 1;
                break;
            }
            node /= 2;
        }
        // Go down to its first.
        while node < self.leaves {
            node = 2 * node + usize::from(self.largest[2 * node] < size);
        }
        Some(node - self.leaves)
    }
}

#[cfg(test)]
mod tests {
    use code_timeline::ranges;
    use proptest::prelude::*;

    use super::*;

    /// A search page by page.
    fn naive(taken: &[Range<u64>], from: u64, size: u64) -> Option<u64> {
        let mut at = from.checked_next_multiple_of(PAGE)?;
        loop {
            let wanted = at..at.checked_add(size)?;
            match ranges::overlapping(taken, &wanted).last() {
                Some(last) => at = last.end.checked_next_multiple_of(PAGE)?,
                None => return Some(at),
            }
        }
    }

    proptest! {
        #[test]
        fn the_first_page_with_enough_space_is_found(
            steps in prop::collection::vec((1u64..5, 1u64..4), 0..40),
            from in 0u64..200, size in 1u64..6, odd in 0u64..4096,
        ) {
            let mut at = 0;
            let taken: Vec<_> = steps.into_iter().map(|(gap, len)| {
                let start = at + gap * PAGE / 2;
                at = start + len * PAGE / 2;
                start..at
            }).collect();
            let (from, size) = (from * PAGE / 2 + odd, size * PAGE - odd % 4095);
            prop_assert_eq!(Free::outside(&taken).first(from, size), naive(&taken, from, size));
        }
    }

    #[test]
    fn the_address_space_has_an_end() {
        let taken = std::slice::from_ref(&(0..u64::MAX - 10 * PAGE));
        assert_eq!(Free::outside(taken).first(0, 20 * PAGE), None);
        assert!(Free::outside(taken).first(0, PAGE).is_some());
        assert_eq!(Free::outside(&[]).first(u64::MAX, 1), None);
        assert_eq!(Free::outside(&[]).first(5, PAGE), Some(PAGE));
    }
}
