//! The functions of a range of addresses, in one table.

use std::ops::Range;

use fallible::{Refused, Vec};

use super::retired::{Retired, RetiredMemory};
use super::table::{Entry, Function, Table};

/// Number of free entries behind the last function in a new table, for each function; and the minimum.
const GROWTH: usize = 1;
const LEAST: usize = 16;

#[derive(Debug)]
pub(crate) struct Block {
    table: Table,
    range: Range<u64>,
    /// Number of functions that have not been removed.
    pub(crate) count: usize,
}

impl Block {
    /// A table of ascending functions within `range`, with free entries between them.
    ///
    /// # Errors
    /// An allocation failed.
    pub(crate) fn new(
        range: Range<u64>,
        functions: &[Function],
        may_grow: bool,
    ) -> Result<Self, Refused> {
        let length = functions.len();
        let spare_entries = length.saturating_mul(GROWTH).max(LEAST);
        let mut entries = Vec::new();
        // For everything that is pushed below.
        entries.try_reserve_exact(length.saturating_mul(2).saturating_add(spare_entries))?;
        for (number, function) in functions.iter().enumerate() {
            let entry = Entry::default();
            let [begin, end, info] = distances(&range, function);
            entry.set(begin, end, info);
            entries.push(entry);
            // A free entry, if there are addresses for it.
            let next = functions.get(number.saturating_add(1));
            if next.is_some_and(|next| next.begin > function.end) {
                let gone = Entry::default();
                gone.set(end, end, 0);
                entries.push(gone);
            }
        }
        let used = entries.len();
        entries.extend(std::iter::repeat_with(Entry::default).take(spare_entries));
        let table = Table::register(entries, used, &range, may_grow);
        Ok(Self { table, range, count: length })
    }

    pub(crate) fn range(&self) -> &Range<u64> {
        &self.range
    }

    /// Adds a function that overlaps with none, without a new table. `None` if there is no free entry for it.
    pub(crate) fn add(&mut self, function: &Function) -> Option<()> {
        let [begin, end, info] = distances(&self.range, function);
        if !self.table.reaches(begin, end) {
            return None;
        }
        let entries = self.table.entries();
        let behind = entries.partition_point(|entry| entry.begin() <= begin);
        let is_gone = |at: &usize| entries.get(*at).is_some_and(Entry::is_gone);
        let place = behind.checked_sub(1).filter(is_gone).or(Some(behind).filter(is_gone));
        if let Some(place) = place
            && let Some((entry, rest)) = entries.get(place..).and_then(<[Entry]>::split_first)
        {
            // A search that finds a free entry within the function would go on behind it. These entries are moved to
            // the function's end, the last one first, so that all ascend at every step.
            let within = rest.iter().take_while(|other| other.is_gone() && other.begin() < end);
            for other in rest.iter().take(within.count()).rev() {
                other.set(end, end, 0);
            }
            entry.set(begin, end, info);
        } else if behind == entries.len() {
            self.table.push(begin, end, info)?;
        } else {
            return None;
        }
        self.count = self.count.saturating_add(1);
        Some(())
    }

    /// Removes functions that overlap with this range, and passes them to `gone`.
    pub(crate) fn forget(&mut self, start: u64, end: u64, mut gone: impl FnMut(Function)) {
        let entries = self.table.entries();
        let last =
            entries.partition_point(|entry| self.range.start + u64::from(entry.begin()) < end);
        // They do not overlap, but removed ones may be anywhere in between.
        for entry in entries.iter().take(last).rev().filter(|entry| !entry.is_gone()) {
            let function = self.function(entry);
            if function.end <= start {
                break;
            }
            entry.clear();
            self.count = self.count.saturating_sub(1);
            gone(function);
        }
    }

    /// The functions, ascending.
    pub(crate) fn functions(&self) -> impl Iterator<Item = Function> {
        self.table.entries().iter().filter(|it| !it.is_gone()).map(|entry| self.function(entry))
    }

    fn function(&self, entry: &Entry) -> Function {
        let address = |distance: u32| self.range.start.saturating_add(distance.into());
        Function {
            begin: address(entry.begin()),
            end: address(entry.end()),
            info: address(entry.info()),
        }
    }

    pub(crate) fn retire(self, retired_memory: &mut RetiredMemory) {
        retired_memory.put(Retired::Entries(self.table.unregister()));
    }
}

fn distance(range: &Range<u64>, address: u64) -> u32 {
    u32::try_from(address.saturating_sub(range.start)).unwrap_or(u32::MAX)
}

fn distances(range: &Range<u64>, function: &Function) -> [u32; 3] {
    [function.begin, function.end, function.info].map(|address| distance(range, address))
}
