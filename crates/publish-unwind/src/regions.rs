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

/// A region has at least so many descriptions before it is divided.
const FEW: usize = 256;
/// And at most so many: when one changes, its list is copied, and sorted by the next walk.
const MANY: usize = 8192;
/// Between the two, so many that there are about this many regions, as each step of a walk looks at them one by one.
const REGIONS: usize = 24;

#[derive(Debug, Default)]
struct Region {
    // Before what it refers to.
    table: Option<Table>,
    /// By the first byte of the code: where it ends, and its description.
    codes: BTreeMap<u64, (u64, Description)>,
    /// The first bytes, in the order of the table.
    starts: Vec<u64>,
}

/// By the first byte of the first code. All codes of a region lie below all of the next one.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    regions: BTreeMap<u64, Region>,
    /// Codes in all of them.
    count: usize,
    /// Up to here, regions were looked at whether they should be one with the next.
    looked: u64,
}

impl Regions {
    pub(crate) fn add(&mut self, found: Found, entry: &Entry) {
        let (start, end) = (entry.code.start, entry.code.end);
        self.forget(found, start, end);
        let Some(description) = Description::new(entry) else { return };
        let most = self.most();
        self.count = self.count.saturating_add(1);
        let home = self.regions.range(..=start).next_back().or_else(|| self.regions.iter().next());
        let home = home.map(|(&key, _)| key).and_then(|key| self.regions.remove(&key));
        let Some(mut region) = home else {
            return self.keep(Region::all(found, BTreeMap::from([(start, (end, description))])));
        };
        if region.starts.len() < most {
            region.insert(found, start, end, description);
            return self.keep(region);
        }
        // Code that is made in the order of its addresses leaves full regions behind it.
        let from = if region.starts.last().is_some_and(|last| *last < start) {
            start
        } else {
            region.starts.get(most / 2).copied().unwrap_or(start)
        };
        let mut upper = region.codes.split_off(&from);
        let half = if start < from { &mut region.codes } else { &mut upper };
        half.insert(start, (end, description));
        // Both parts before the whole goes.
        let upper = Region::all(found, upper);
        if region.starts.len() != region.codes.len() {
            let lower = std::mem::take(&mut region.codes);
            self.keep(Region::all(found, lower));
            self.keep(upper);
            drop(region);
        } else {
            self.keep(region);
            self.keep(upper);
        }
        // Two for each that is divided, so that they become fewer.
        self.join(found, most);
        self.join(found, most);
    }

    /// All that is known.
    pub(crate) fn all(&self) -> impl Iterator<Item = Frames<'_>> {
        let codes = self.regions.values().flat_map(|region| &region.codes);
        codes.map(|(&start, (end, description))| description.frames(start, *end))
    }

    /// Forgets what lies here, wholly or not.
    pub(crate) fn forget(&mut self, found: Found, start: u64, end: u64) {
        while let Some((key, first)) = self.lies_in(start, end) {
            let Some(mut region) = self.regions.remove(&key) else { return };
            self.count = self.count.saturating_sub(1);
            let gone = region.remove(found, first);
            self.keep(region);
            // Not before nothing leads there.
            drop(gone);
        }
    }

    /// A code that lies there, and its region.
    fn lies_in(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let (&key, region) = self.regions.range(..end).next_back()?;
        let (&first, (last, _)) = region.codes.range(..end).next_back()?;
        (*last > start).then_some((key, first))
    }

    fn keep(&mut self, region: Region) {
        if let Some(&key) = region.starts.first() {
            self.regions.insert(key, region);
        }
    }

    /// How many codes a region may have.
    fn most(&self) -> usize {
        (self.count / REGIONS).clamp(FEW, MANY)
    }

    /// Makes one of two neighbours that are small, if the next two are: there were fewer codes when they were made.
    fn join(&mut self, found: Found, most: usize) {
        let mut next = self.regions.range(self.looked..).map(|(&key, region)| (key, region));
        let (Some((lower, one)), Some((upper, other))) = (next.next(), next.next()) else {
            self.looked = 0;
            return;
        };
        self.looked = upper;
        if one.starts.len().saturating_add(other.starts.len()) > most / 8 * 7 {
            return;
        }
        let pair = (self.regions.remove(&lower), self.regions.remove(&upper));
        if let (Some(mut lower), Some(mut upper)) = pair {
            let mut codes = std::mem::take(&mut lower.codes);
            codes.append(&mut upper.codes);
            let both = Region::all(found, codes);
            self.looked = both.starts.first().copied().unwrap_or(0);
            self.keep(both);
        }
    }
}

impl Region {
    /// Registers all these.
    fn all(found: Found, codes: BTreeMap<u64, (u64, Description)>) -> Self {
        let mut list = Table::list(codes.len());
        list.extend(codes.values().map(|(_, description)| description.pointer()));
        // SAFETY: descriptions stay where they are as long as they are among the region's codes, and those that are
        // taken out are dropped when this list has been replaced.
        let table = unsafe { Table::register(found, list) };
        Self { table, starts: codes.keys().copied().collect(), codes }
    }

    fn insert(&mut self, found: Found, start: u64, end: u64, description: Description) {
        let at = self.starts.partition_point(|other| *other < start);
        let (before, behind) = self.pointers().split_at_checked(at).unwrap_or_default();
        let mut list = Table::list(self.starts.len().saturating_add(1));
        list.extend_from_slice(before);
        list.push(description.pointer());
        list.extend_from_slice(behind);
        self.starts.insert(at, start);
        self.codes.insert(start, (end, description));
        self.register(found, list);
    }

    fn remove(&mut self, found: Found, start: u64) -> Option<(u64, Description)> {
        let gone = self.codes.remove(&start);
        let at = self.starts.partition_point(|other| *other < start);
        let (before, behind) = self.pointers().split_at_checked(at).unwrap_or_default();
        let mut list = Table::list(self.starts.len());
        list.extend_from_slice(before);
        list.extend_from_slice(behind.get(1..).unwrap_or_default());
        self.starts.remove(at);
        self.register(found, list);
        gone
    }

    fn pointers(&self) -> &[*const u8] {
        self.table.as_ref().map_or(&[], Table::pointers)
    }

    fn register(&mut self, found: Found, list: Vec<*const u8>) {
        // SAFETY: as in `all`.
        let new = unsafe { Table::register(found, list) };
        drop(std::mem::replace(&mut self.table, new));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::{MANY, REGIONS, Regions};
    use crate::entries::Entry;
    use crate::found::Found;
    use crate::section::LISTED;

    /// However many codes there are and however they come, a walk goes through few lists, and what is listed anew for
    /// each is far less than all. Counted, and not timed.
    #[test]
    fn lists_are_few_and_what_is_listed_anew_is_little() {
        const COUNT: usize = 40_000;
        let found = Found::look().expect("libgcc");
        for scattered in [false, true] {
            let mut regions = Regions::default();
            let before = LISTED.load(Relaxed);
            for number in 0..COUNT {
                let place = if scattered { number * 7919 % COUNT } else { number };
                let start = (1 << 40) + place as u64 * 32;
                // A common part of 20 bytes and a description of as many, which nobody reads.
                let bytes = [&[16_u8, 0, 0, 0][..], &[0; 16], &[16, 0, 0, 0], &[0; 16]].concat();
                regions.add(found, &Entry { code: start..start + 32, bytes });
            }
            let listed = LISTED.load(Relaxed) - before;
            let lists = regions.regions.len();
            assert_eq!(regions.count, COUNT);
            assert!(lists < 3 * REGIONS, "{lists} lists");
            assert!(listed < COUNT * COUNT / REGIONS, "{listed}");
            assert!(regions.regions.values().all(|region| region.starts.len() <= MANY));
            let mut left = COUNT;
            for number in 0..COUNT {
                let start = (1 << 40) + (number * 31 % COUNT) as u64 * 32;
                regions.forget(found, start, start + 1);
                left -= 1;
                assert_eq!(regions.count, left);
            }
            assert!(regions.regions.is_empty());
        }
    }
}
