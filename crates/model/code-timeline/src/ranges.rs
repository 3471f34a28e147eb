//! The arithmetic of address ranges.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

/// Whether two ranges share an address.
#[must_use]
pub fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    !intersection(a, b).is_empty()
}

/// The intersection of two ranges; an empty range if there is none.
#[must_use]
pub fn intersection(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// Merges ranges in ascending order: those that touch, overlap, or are separated by a gap for which `bridge` returns
/// true.
pub fn merge(
    sorted: impl IntoIterator<Item = Range<u64>>,
    mut bridge: impl FnMut(Range<u64>) -> bool,
) -> Vec<Range<u64>> {
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end || bridge(last.end..range.start) => {
                last.end = last.end.max(range.end);
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// The members of `sorted` (ascending, disjoint) that share an address with `range`.
#[must_use]
pub fn overlapping<'a>(sorted: &'a [Range<u64>], range: &Range<u64>) -> &'a [Range<u64>] {
    let first = sorted.partition_point(|one| one.end <= range.start);
    let count = sorted[first..].partition_point(|one| one.start < range.end);
    &sorted[first..first + count]
}

/// Whether one of `sorted` (ascending, disjoint) has the address.
#[must_use]
pub fn contain(sorted: &[Range<u64>], address: u64) -> bool {
    let next = sorted.partition_point(|range| range.end <= address);
    sorted.get(next).is_some_and(|range| range.start <= address)
}

/// What remains of `range` without `holes` (ascending, disjoint).
#[must_use]
pub fn subtract(range: &Range<u64>, holes: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    let mut at = range.start;
    for hole in overlapping(holes, range) {
        if at < hole.start {
            left.push(at..hole.start);
        }
        at = hole.end;
    }
    if at < range.end {
        left.push(at..range.end);
    }
    left
}

/// Passes what is visible where `above` covers `below` to `show`, by address (both ascending, each disjoint).
pub fn overlay<T: Copy>(
    below: &[(Range<u64>, T)],
    above: impl IntoIterator<Item = (Range<u64>, T)>,
    mut show: impl FnMut(Range<u64>, T),
) {
    let mut above = above.into_iter().peekable();
    let mut at = 0;
    for (range, colour) in below {
        at = range.start.max(at);
        while let Some((cover, covering)) = above.next_if(|(cover, _)| cover.start < range.end) {
            if at < cover.start {
                show(at..cover.start, *colour);
            }
            at = cover.end.max(at);
            show(cover, covering);
        }
        if at < range.end {
            show(at..range.end, *colour);
        }
    }
    above.for_each(|(cover, covering)| show(cover, covering));
}

/// A canvas of addresses: what is painted later covers what was painted before.
#[derive(Debug)]
pub struct Canvas<T> {
    painted: BTreeMap<u64, (u64, T)>,
}

impl<T: Copy> Canvas<T> {
    /// A blank canvas.
    #[must_use]
    pub fn new() -> Self {
        Self { painted: BTreeMap::new() }
    }

    /// Paints `range`. An empty range paints nothing.
    pub fn paint(&mut self, range: Range<u64>, colour: T) {
        if range.is_empty() {
            return;
        }
        // The usual case: behind everything else.
        if self.painted.last_key_value().is_none_or(|(_, (end, _))| *end <= range.start) {
            self.painted.insert(range.start, (range.end, colour));
            return;
        }
        let before = self
            .painted
            .range(..range.start)
            .next_back()
            .map(|(&start, &(end, c))| (start, end, c));
        if let Some((start, end, under)) = before
            && end > range.start
        {
            self.painted.insert(start, (range.start, under));
            if end > range.end {
                self.painted.insert(range.end, (end, under));
            }
        }
        while let Some((&start, &(end, under))) = self.painted.range(range.clone()).next() {
            self.painted.remove(&start);
            if end > range.end {
                self.painted.insert(range.end, (end, under));
            }
        }
        self.painted.insert(range.start, (range.end, colour));
    }

    /// The colours visible in `range`, by address.
    pub fn under(&self, range: &Range<u64>) -> impl Iterator<Item = T> {
        let before = self.painted.range(..range.start).next_back();
        let reaching_in = before.filter(|(_, (end, _))| *end > range.start);
        reaching_in
            .into_iter()
            .chain(self.painted.range(range.clone()))
            .map(|(_, &(_, colour))| colour)
    }

    /// Everything that is visible, by address.
    pub fn visible(&self) -> impl Iterator<Item = (Range<u64>, T)> {
        self.painted.iter().map(|(&start, &(end, colour))| (start..end, colour))
    }
}

impl<T: Copy> Default for Canvas<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    #[test]
    fn gaps_are_bridged_only_where_allowed() {
        let merged = merge([0..4, 4..6, 8..9, 20..30, 25..27], |gap| gap.end - gap.start <= 2);
        assert_eq!(merged, vec![0..9, 20..30]);
    }

    proptest! {
        #[test]
        fn laying_over_is_painting_later(
            below in prop::collection::vec((0u64..40, 0u64..20), 0..20),
            above in prop::collection::vec((0u64..40, 0u64..20), 0..20),
        ) {
            let painted = |strokes: &[(u64, u64)], first: usize| {
                let mut canvas = Canvas::new();
                for (colour, &(start, len)) in (first..).zip(strokes) {
                    canvas.paint(start..start + len, colour);
                }
                canvas
            };
            let (lower, upper) = (painted(&below, 0), painted(&above, below.len()));
            let mut overlaid = Vec::new();
            let lower: Vec<_> = lower.visible().collect();
            overlay(&lower, upper.visible(), |range, colour| overlaid.push((range, colour)));
            let all = painted(&[below, above].concat(), 0);
            // Painting splits what it covers in the middle, and so does `overlay`.
            prop_assert!(overlaid.iter().cloned().eq(all.visible()));
        }

        #[test]
        fn canvas_and_subtraction_agree_with_a_table(strokes in prop::collection::vec((0u64..40, 0u64..20), 0..20), cut in (0u64..60, 0u64..60)) {
            let mut canvas = Canvas::new();
            let mut table = [None; 64];
            for (colour, (start, len)) in strokes.into_iter().enumerate() {
                canvas.paint(start..start + len, colour);
                table[start as usize..(start + len) as usize].fill(Some(colour));
            }
            let mut seen = [None; 64];
            for (range, colour) in canvas.visible() {
                for slot in &mut seen[range.start as usize..range.end as usize] {
                    prop_assert!(slot.replace(colour).is_none());
                }
            }
            prop_assert_eq!(seen, table);

            let holes = merge(canvas.visible().map(|(range, _)| range), |_| false);
            let range = cut.0..cut.0.max(cut.1);
            let left = subtract(&range, &holes);
            for address in 0..64u64 {
                let expected = range.contains(&address) && table[address as usize].is_none();
                prop_assert_eq!(left.iter().any(|one| one.contains(&address)), expected);
            }
        }
    }
}
