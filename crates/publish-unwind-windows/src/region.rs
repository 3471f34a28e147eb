//! A reservation of memory with code in it, and its stretches.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::infos::Infos;
use crate::memory;
use crate::rest::{Over, Resting};
use crate::stretch::Stretch;
use crate::table::Function;

/// A stretch has at most so many functions: a new table costs time for each of them.
const MOST: usize = 256;
/// A region is at most so large, and begins at a multiple of it if its reservation does not begin later.
const LARGEST: u64 = 2 << 30;
/// How far distances reach.
const REACH: u64 = 1 << 32;

#[derive(Debug)]
pub(crate) struct Region {
    range: Range<u64>,
    infos: Infos,
    /// By where they begin: the first with the region, and each where the one before ends.
    stretches: BTreeMap<u64, Stretch>,
    /// Functions in all of them.
    count: usize,
    may_grow: bool,
}

impl Region {
    /// The region of an address; `None` if there is no memory.
    pub(crate) fn around(address: u64, may_grow: bool) -> Option<Self> {
        let whole = memory::reservation(address)?;
        let part = address - address % LARGEST;
        let range = whole.start.max(part)..whole.end.min(part.checked_add(LARGEST)?);
        Some(Self {
            range,
            infos: Infos::default(),
            stretches: BTreeMap::new(),
            count: 0,
            may_grow,
        })
    }

    pub(crate) fn range(&self) -> &Range<u64> {
        &self.range
    }

    /// The address of this UNWIND_INFO.
    pub(crate) fn place(&mut self, info: &[u8]) -> Option<u64> {
        let room = self.range.end..self.range.start.checked_add(REACH)?;
        self.infos.place(info, &room)
    }

    /// The UNWIND_INFO at an address.
    pub(crate) fn info(&self, place: u64) -> Option<&[u8]> {
        self.infos.at(place)
    }

    /// Adds a function that lies in the region and overlaps with none.
    pub(crate) fn add(&mut self, function: Function, resting: &mut Resting) {
        self.count = self.count.saturating_add(1);
        let home = self.stretches.range_mut(..=function.begin).next_back();
        if let Some((_, stretch)) = home
            && function.end <= stretch.range().end
            && (stretch.count < MOST)
            && stretch.add(&function).is_some()
        {
            return;
        }
        // A new table, for the stretch and for those of which the function covers the beginning.
        let start = self.stretches.range(..=function.begin).next_back().map(|(&start, _)| start);
        let old: Vec<u64> = match start {
            Some(start) => self.stretches.range(start..function.end).map(|(&key, _)| key).collect(),
            None => Vec::new(),
        };
        let old: Vec<Stretch> =
            old.into_iter().filter_map(|key| self.stretches.remove(&key)).collect();
        let range = match (old.first(), old.last()) {
            (Some(first), Some(last)) => first.range().start..last.range().end,
            _ => self.range.clone(),
        };
        let mut functions: Vec<Function> = old.iter().flat_map(Stretch::functions).collect();
        let at = functions.partition_point(|other| other.begin < function.begin);
        functions.insert(at.min(functions.len()), function);

        let mut rest = functions.as_slice();
        let mut start = range.start;
        while !rest.is_empty() {
            // What comes in order fills one and begins the next; else both halves get room.
            let is_last = at.saturating_add(1) == functions.len();
            let count = if is_last { MOST } else { rest.len().div_ceil(2).min(MOST) };
            let (these, behind) = split(rest, if rest.len() > MOST { count } else { rest.len() });
            let end = behind.first().map_or(range.end, boundary);
            let stretch = Stretch::new(start..end, these, self.may_grow);
            self.stretches.insert(start, stretch);
            (start, rest) = (end, behind);
        }
        // Not before the new ones are known.
        for stretch in old {
            stretch.retire(resting);
        }
    }

    /// Forgets functions that lie there, wholly or not.
    pub(crate) fn forget(&mut self, start: u64, end: u64, mut gone: impl FnMut(Function)) {
        let first = self.stretches.range(..=start).next_back().map_or(start, |(&key, _)| key);
        for stretch in self.stretches.range_mut(first..end.max(first)).map(|(_, stretch)| stretch) {
            stretch.forget(start, end, |function| {
                self.count = self.count.saturating_sub(1);
                gone(function);
            });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn retire(self, resting: &mut Resting) {
        for stretch in self.stretches.into_values() {
            stretch.retire(resting);
        }
        resting.put(Over::Infos(self.infos.into_blocks()));
    }
}

/// Where a stretch begins whose first function this is: distances from there to UNWIND_INFO are to be multiples of 4.
fn boundary(first: &Function) -> u64 {
    first.begin & !3
}

/// The first functions, `count` of them if a stretch can begin behind, else somewhat fewer, and the others.
fn split(functions: &[Function], count: usize) -> (&[Function], &[Function]) {
    let is_between = |at: &usize| {
        let before = functions.get(at.saturating_sub(1));
        before.zip(functions.get(*at)).is_none_or(|(before, next)| before.end <= boundary(next))
    };
    let count = (1..=count).rev().find(is_between).unwrap_or(functions.len());
    functions.split_at_checked(count).unwrap_or((functions, &[]))
}
