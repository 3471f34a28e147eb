//! The parts of the address space where the object file says that it is.

use fallible::{Map, Refused, Vec};

use super::object::{Headers, Object, SLOTS};

const PAGE: u64 = 4096;
/// Code at most this far from a range belongs to it. A larger gap could become a library's, in which a walk would then look for
/// the library's functions in our table.
const GAP: u64 = 2 * PAGE;

/// Ranges of whole pages, each with a program header.
#[derive(Debug)]
pub(super) struct Ranges {
    /// By the first byte: the end, and the program header.
    ranges: Map<u64, (u64, usize)>,
    /// Program headers that are not in use. There is capacity for all.
    free: Vec<usize>,
}

impl Ranges {
    pub(super) fn new() -> Result<Self, Refused> {
        let mut free = Vec::new();
        free.try_reserve_exact(SLOTS)?;
        free.extend((0..SLOTS).rev());
        Ok(Self { ranges: Map::new(), free })
    }

    /// Includes the pages of a code. False if there is no program header for them.
    pub(super) fn add(&mut self, object: &Object, start: u64, end: u64) -> Result<bool, Refused> {
        let Some((start, end)) = pages(start, end).filter(|_| start >= object.lowest()) else {
            return Ok(false);
        };
        if let Some((_, (within, _))) = self.ranges.last_up_to(&start)
            && end <= *within
        {
            return Ok(true);
        }
        // All ranges that it touches become one, which has the program header of the first.
        let (mut low, mut high) = (start, end);
        let (mut slot, kept) = (None, self.free.len());
        while let Some((&first, &(last, of))) = self.ranges.last_up_to(&high.saturating_add(GAP))
            && last.saturating_add(GAP) >= low
        {
            (low, high) = (low.min(first), high.max(last));
            self.free.extend(slot.replace(of));
            self.ranges.remove(&first);
        }
        let Some(slot) = slot.or_else(|| self.free.pop()) else { return Ok(false) };
        self.ranges.try_insert(low, (high, slot)).map_err(|(refused, _)| refused)?;
        object.change(|headers| {
            headers.set(slot, low, high);
            for other in self.free.get(kept..).unwrap_or_default() {
                headers.clear(*other);
            }
        });
        Ok(true)
    }

    /// Excludes the pages between two codes that have no code between them any more: the last byte of the code before is at
    /// `before`, and the code behind is at `behind`.
    pub(super) fn remove(
        &mut self,
        object: &Object,
        start: u64,
        before: Option<u64>,
        behind: Option<u64>,
    ) -> Result<(), Refused> {
        let Some((&low, &(high, slot))) = self.ranges.last_up_to(&start) else { return Ok(()) };
        let below = before.and_then(|last| pages(last, last.saturating_add(1)));
        let above = behind.and_then(|first| pages(first, first.saturating_add(1)));
        let below = below.map(|(_, end)| end).filter(|end| *end > low).map(|end| end.min(high));
        let above = above.map(|(start, _)| start).filter(|start| *start < high);
        let change = |work: &dyn Fn(&mut Headers<'_>)| object.change(|headers| work(headers));
        match (below, above) {
            (Some(end), Some(start)) if start.saturating_sub(end) <= GAP => {}
            (Some(end), Some(start)) => {
                // Without another program header, the range stays as it is.
                let Some(other) = self.free.pop() else { return Ok(()) };
                self.ranges.try_insert(start, (high, other)).map_err(|(refused, _)| refused)?;
                if let Some(range) = self.ranges.get_mut(&low) {
                    range.0 = end;
                }
                change(&|headers| {
                    headers.set(other, start, high);
                    headers.set(slot, low, end);
                });
            }
            (Some(end), None) => {
                if let Some(range) = self.ranges.get_mut(&low) {
                    range.0 = end;
                }
                change(&|headers| headers.set(slot, low, end));
            }
            (None, Some(start)) => {
                self.ranges.remove(&low);
                self.ranges.try_insert(start, (high, slot)).map_err(|(refused, _)| refused)?;
                change(&|headers| headers.set(slot, start, high));
            }
            (None, None) => {
                self.ranges.remove(&low);
                self.free.push(slot);
                change(&|headers| headers.clear(slot));
            }
        }
        Ok(())
    }
}

/// The whole pages that contain a range.
fn pages(start: u64, end: u64) -> Option<(u64, u64)> {
    let end = end.checked_add(PAGE - 1)? & !(PAGE - 1);
    Some((start & !(PAGE - 1), end)).filter(|(start, end)| start < end)
}
