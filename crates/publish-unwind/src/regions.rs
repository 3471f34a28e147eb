//! Descriptions by the hundred: for libgcc up to 12, whose walks go through all registrations one by one.
//!
//! A registration counts for all from its first code to its last, so those of code that lies between one another's would
//! hide one another. So address space is divided into regions, each with its codes and one list of their
//! descriptions. When a region changes, its new list is registered before the old one goes: code that is in both is
//! known at every instant, as libgcc finds the same description through either.
#![allow(unsafe_code)]

use std::collections::BTreeMap;

use crate::entries::{Entry, Frames};
use crate::found::Found;
use crate::section::{Description, Table};

/// A region has at most so many descriptions. An announcement costs time for each of them, a walk for each
/// region.
const MOST: usize = 256;

#[derive(Debug, Default)]
struct Region {
    // Before what it refers to.
    table: Option<Table>,
    /// By the first byte of the code: where it ends, and its description.
    codes: BTreeMap<u64, (u64, Description)>,
}

/// By the first byte of the first code. All codes of a region lie below all of the next one.
#[derive(Debug, Default)]
pub(crate) struct Regions(BTreeMap<u64, Region>);

impl Regions {
    pub(crate) fn add(&mut self, found: Found, entry: &Entry) {
        let (start, end) = (entry.code.start, entry.code.end);
        self.forget(found, start, end);
        let Some(description) = Description::new(entry) else { return };
        let home = self.0.range(..=start).next_back().or_else(|| self.0.iter().next());
        let home = home.map(|(&key, _)| key).and_then(|key| self.0.remove(&key));
        let mut region = home.unwrap_or_default();
        region.codes.insert(start, (end, description));
        if region.codes.len() <= MOST {
            return self.put(found, region);
        }
        let middle = region.codes.keys().nth(MOST / 2).copied().unwrap_or(start);
        let upper = Region { codes: region.codes.split_off(&middle), table: None };
        // Both halves before the whole goes.
        let whole = region.table.take();
        self.put(found, region);
        self.put(found, upper);
        drop(whole);
    }

    /// All that is known.
    pub(crate) fn all(&self) -> impl Iterator<Item = Frames<'_>> {
        let codes = self.0.values().flat_map(|region| &region.codes);
        codes.map(|(&start, (end, description))| description.frames(start, *end))
    }

    /// Forgets what lies here, wholly or not.
    pub(crate) fn forget(&mut self, found: Found, start: u64, end: u64) {
        while let Some((key, first)) = self.lies_in(start, end) {
            let Some(mut region) = self.0.remove(&key) else { return };
            let gone = region.codes.remove(&first);
            self.put(found, region);
            // Not before nothing leads there.
            drop(gone);
        }
    }

    /// A code that lies there, and its region.
    fn lies_in(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let (&key, region) = self.0.range(..end).next_back()?;
        let (&first, (last, _)) = region.codes.range(..end).next_back()?;
        (*last > start).then_some((key, first))
    }

    /// Registers a region as it is now, if it has any code.
    fn put(&mut self, found: Found, mut region: Region) {
        // SAFETY: descriptions stay where they are as long as they are among the region's codes, and those that are
        // taken out are dropped when this list has been replaced.
        let new = unsafe {
            Table::register(found, region.codes.values().map(|(_, description)| description))
        };
        drop(std::mem::replace(&mut region.table, new));
        if let Some((&key, _)) = region.codes.first_key_value() {
            self.0.insert(key, region);
        }
    }
}
