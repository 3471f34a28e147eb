//! Registers FDEs in groups: for libgcc up to 12, whose walks search all registrations one by one.
//!
//! A registration covers everything from its first code to its last, so registrations with interleaved codes would hide one
//! another. Therefore the address space is divided into regions, each with its codes and one list of their FDEs. When a
//! region changes, its new list is registered before the old one is removed: code that is in both is known at every instant,
//! because libgcc finds the same FDE through either.
#![allow(unsafe_code)]

use fallible::{Map, Refused, Vec};

use crate::entries::{Entry, Frames};
use crate::functions::Functions;
use crate::list::Table;
use crate::section::Description;

/// A region has at least this many FDEs before it is divided.
const FEW: usize = 256;
/// And at most this many: when one changes, its list is copied, and sorted by the next walk.
const MANY: usize = 8192;
/// In between, the limit is chosen so that there are about this many regions, because each step of a walk checks them one by
/// one.
const REGIONS: usize = 24;

/// A code of a region.
#[derive(Debug)]
struct ListedCode {
    start: u64,
    end: u64,
    description: Description,
}

/// The codes of a range of the address space.
#[derive(Debug)]
struct Region {
    /// Contains exactly the FDEs of `codes`. Declared before them, so that it is dropped first.
    table: Option<Table>,
    /// By address.
    codes: Vec<ListedCode>,
}

/// All regions.
///
/// When an allocation fails, the values at hand are dropped, which deregisters them, and the caller drops the rest.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    /// By the address of their first code.
    regions: Map<u64, Region>,
    count: usize,
    /// The region that was last checked for joining.
    looked: u64,
}

impl Regions {
    pub(crate) fn add(&mut self, functions: Functions, entry: &Entry) -> Result<(), Refused> {
        let (start, end) = (entry.code.start, entry.code.end);
        self.forget(functions, start, end)?;
        let Some(description) = Description::new(entry)? else { return Ok(()) };
        let code = ListedCode { start, end, description };
        let most = self.most();
        self.count = self.count.saturating_add(1);
        let home = self.regions.last_up_to(&start).or_else(|| self.regions.first_key_value());
        let home = home.map(|(&key, _)| key).and_then(|key| self.regions.remove(&key));
        let Some(mut region) = home else { return self.keep(Region::of(functions, code)?) };
        if region.codes.len() < most {
            region.insert(functions, code)?;
            return self.keep(region);
        }
        // Code that is made in ascending order leaves full regions behind.
        let upper = if region.codes.last().is_some_and(|last| last.start < start) {
            Region::of(functions, code)?
        } else {
            region.divide(functions, code)?
        };
        self.keep(region)?;
        self.keep(upper)?;
        // Two for each division, so that their number decreases.
        self.join(functions, most)?;
        self.join(functions, most)
    }

    /// All registered frames.
    pub(crate) fn all(&self) -> impl Iterator<Item = Frames<'_>> {
        let codes = self.regions.values().flat_map(|region| &region.codes);
        codes.map(|code| code.description.frames(code.start, code.end))
    }

    pub(crate) fn forget(
        &mut self,
        functions: Functions,
        start: u64,
        end: u64,
    ) -> Result<(), Refused> {
        while let Some((key, first)) = self.lies_in(start, end) {
            let Some(mut region) = self.regions.remove(&key) else { return Ok(()) };
            self.count = self.count.saturating_sub(1);
            region.remove(functions, first)?;
            self.keep(region)?;
        }
        Ok(())
    }

    /// The region of the last code between two addresses, and its index there.
    fn lies_in(&self, start: u64, end: u64) -> Option<(u64, usize)> {
        let (&key, region) = self.regions.last_below(&end)?;
        let at = region.codes.partition_point(|code| code.start < end).checked_sub(1)?;
        (region.codes.get(at)?.end > start).then_some((key, at))
    }

    fn keep(&mut self, region: Region) -> Result<(), Refused> {
        let Some(key) = region.codes.first().map(|code| code.start) else { return Ok(()) };
        self.regions.try_insert(key, region).map(drop).map_err(|(refused, _)| refused)
    }

    /// Maximum number of codes in a region.
    fn most(&self) -> usize {
        (self.count / REGIONS).clamp(FEW, MANY)
    }

    /// Joins the next two small regions.
    fn join(&mut self, functions: Functions, most: usize) -> Result<(), Refused> {
        let mut next = self.regions.range(self.looked..).map(|(&key, region)| (key, region));
        let (Some((lower, one)), Some((upper, other))) = (next.next(), next.next()) else {
            drop(next);
            self.looked = 0;
            return Ok(());
        };
        let both = one.codes.len().saturating_add(other.codes.len());
        drop(next);
        self.looked = upper;
        if both > most / 8 * 7 {
            return Ok(());
        }
        let pair = (self.regions.remove(&lower), self.regions.remove(&upper));
        if let (Some(mut lower), Some(mut upper)) = pair {
            lower.codes.try_reserve(upper.codes.len())?;
            let table = table(functions, [&lower.codes, &upper.codes])?;
            // The capacity was reserved.
            lower.codes.append(&mut upper.codes);
            lower.table = table;
            self.looked = lower.codes.first().map_or(0, |first| first.start);
            self.keep(lower)?;
        }
        Ok(())
    }
}

impl Region {
    /// A region with one code.
    fn of(functions: Functions, code: ListedCode) -> Result<Self, Refused> {
        let mut codes = Vec::new();
        codes.try_push(code)?;
        let table = table(functions, [&codes, &[]])?;
        Ok(Self { table, codes })
    }

    fn insert(&mut self, functions: Functions, code: ListedCode) -> Result<(), Refused> {
        self.codes.try_reserve(1)?;
        let at = self.codes.partition_point(|other| other.start < code.start);
        let (before, behind) = self.pointers().split_at_checked(at).unwrap_or_default();
        let mut list = Table::list(self.codes.len().saturating_add(1))?;
        list.extend_from_slice(before);
        list.push(code.description.pointer());
        list.extend_from_slice(behind);
        self.codes.insert(at, code);
        // SAFETY: as in `table`.
        self.table = unsafe { Table::register(functions, list) }?;
        Ok(())
    }

    fn pointers(&self) -> &[*const u8] {
        self.table.as_ref().map_or(&[], Table::pointers)
    }

    /// Adds a code that is not in the table.
    fn hold(&mut self, code: ListedCode) -> Result<(), Refused> {
        self.codes.try_reserve(1)?;
        let at = self.codes.partition_point(|other| other.start < code.start);
        self.codes.insert(at, code);
        Ok(())
    }

    /// Adds a code, and returns the upper half of all codes as a new region.
    fn divide(&mut self, functions: Functions, code: ListedCode) -> Result<Self, Refused> {
        let half = self.codes.len() / 2;
        self.hold(code)?;
        let mut upper = Vec::new();
        upper.try_reserve(self.codes.len().saturating_sub(half))?;
        let (below, above) = self.codes.split_at_checked(half).unwrap_or_default();
        // Register both parts before the whole is removed.
        let of_upper = table(functions, [above, &[]])?;
        self.table = table(functions, [below, &[]])?;
        // The capacity was reserved.
        upper.extend(self.codes.drain(half..));
        Ok(Self { table: of_upper, codes: upper })
    }

    fn remove(&mut self, functions: Functions, at: usize) -> Result<(), Refused> {
        let (before, behind) = self.pointers().split_at_checked(at).unwrap_or_default();
        let mut list = Table::list(self.codes.len())?;
        list.extend_from_slice(before);
        list.extend_from_slice(behind.get(1..).unwrap_or_default());
        // SAFETY: as in `table`.
        self.table = unsafe { Table::register(functions, list) }?;
        // Only after no list refers to it.
        if at < self.codes.len() {
            drop(self.codes.remove(at));
        }
        Ok(())
    }
}

/// Registers the FDEs of codes.
///
/// The caller keeps them for as long as the table: they are among the region's codes, and removed ones are dropped after the
/// table has been replaced.
fn table(functions: Functions, codes: [&[ListedCode]; 2]) -> Result<Option<Table>, Refused> {
    let count = codes.iter().fold(0, |sum: usize, part| sum.saturating_add(part.len()));
    let mut list = Table::list(count)?;
    for part in codes {
        list.extend(part.iter().map(|code| code.description.pointer()));
    }
    // SAFETY: see above.
    unsafe { Table::register(functions, list) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::{MANY, REGIONS, Regions};
    use crate::entries::Entry;
    use crate::functions::Functions;
    use crate::list::LISTED;

    /// Whatever the number and order of codes, a walk searches few lists, and far less than everything is relisted for each
    /// code. Counted, not timed.
    #[test]
    fn there_are_few_lists_and_few_reregistrations() {
        const COUNT: usize = 40_000;
        let functions = Functions::look()[0].expect("libgcc");
        for scattered in [false, true] {
            let mut regions = Regions::default();
            let before = LISTED.load(Relaxed);
            for number in 0..COUNT {
                let place = if scattered { number * 7919 % COUNT } else { number };
                let start = (1 << 40) + place as u64 * 32;
                // A CIE of 20 bytes and an FDE of the same size, which nobody reads.
                let bytes = [&[16_u8, 0, 0, 0][..], &[0; 16], &[16, 0, 0, 0], &[0; 16]].concat();
                regions
                    .add(functions, &Entry { code: start..start + 32, bytes: bytes.into() })
                    .unwrap();
            }
            let listed = LISTED.load(Relaxed) - before;
            let lists = regions.regions.len();
            assert_eq!(regions.count, COUNT);
            assert!(lists < 3 * REGIONS, "{lists} lists");
            assert!(listed < COUNT * COUNT / REGIONS, "{listed}");
            assert!(regions.regions.values().all(|region| region.codes.len() <= MANY));
            let mut left = COUNT;
            for number in 0..COUNT {
                let start = (1 << 40) + (number * 31 % COUNT) as u64 * 32;
                regions.forget(functions, start, start + 1).unwrap();
                left -= 1;
                assert_eq!(regions.count, left);
            }
            assert!(regions.regions.is_empty());
        }
    }
}
