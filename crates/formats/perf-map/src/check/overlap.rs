//! Which older entry a line overlaps.

use alloc::collections::BTreeMap;

use crate::Entry;

/// The owner of each address after the lines so far: the end and the owner of each range, keyed by its start. Ranges
/// do not overlap.
#[derive(Debug, Default)]
pub(super) struct Owners<'a> {
    stretches: BTreeMap<u64, (u64, Entry<'a>)>,
}

impl<'a> Owners<'a> {
    /// Assigns the entry its range. Returns the newest of the entries that it replaces there, if any.
    ///
    /// Every range that is removed was inserted once, at most three for each claim. All claims together take *n* log
    /// *n*.
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
