//! Which older entry a line lies over.

use alloc::collections::BTreeMap;

use crate::Entry;

/// Who owns which addresses after the lines so far: the end and the owner of each
/// stretch by its start. Stretches do not overlap.
#[derive(Debug, Default)]
pub(super) struct Owners<'a> {
    stretches: BTreeMap<u64, (u64, Entry<'a>)>,
}

impl<'a> Owners<'a> {
    /// Gives the entry its range. The answer is the youngest of those that had to
    /// give way, if any.
    ///
    /// Every stretch taken away was once put in, at most three for a claim, so all
    /// claims together take *n* log *n*.
    pub(super) fn claim(&mut self, entry: Entry<'a>) -> Option<Entry<'a>> {
        let (start, end) = (entry.address, entry.end());
        if start >= end {
            return None;
        }
        let mut youngest: Option<Entry<'a>> = None;
        while let Some((&from, &(until, owner))) = self.stretches.range(..end).next_back() {
            if until <= start {
                break;
            }
            youngest = match youngest {
                Some(seen) if seen.line > owner.line => Some(seen),
                _ => Some(owner),
            };
            self.stretches.remove(&from);
            if until > end {
                self.stretches.insert(end, (until, owner));
            }
            if from < start {
                self.stretches.insert(from, (start, owner));
                break;
            }
        }
        self.stretches.insert(start, (end, entry));
        youngest
    }
}
