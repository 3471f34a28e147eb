//! A memory reservation with code, and its blocks.

use std::ops::Range;

use fallible::{Map, Refused, Vec};

use super::block::Block;
use super::infos::Infos;
use super::memory;
use super::retired::{Retired, RetiredMemory};
use super::table::Function;

/// Maximum number of functions in a block: a new table costs time for each of them.
const MOST: usize = 256;
/// Maximum size of a region. It begins at a multiple of this, or where its reservation begins, if that is later.
const LARGEST: u64 = 2 << 30;
/// The range of an offset.
const REACH: u64 = 1 << 32;

#[derive(Debug)]
pub(crate) struct Region {
    range: Range<u64>,
    infos: Infos,
    /// By their start: the first begins with the region, and each other one where the previous one ends.
    blocks: Map<u64, Block>,
    /// Number of functions in all of them.
    count: usize,
    may_grow: bool,
}

impl Region {
    /// The region around an address; `None` if there is no memory.
    pub(crate) fn around(address: u64, may_grow: bool) -> Option<Self> {
        let whole = memory::reservation(address)?;
        let part = address - address % LARGEST;
        let range = whole.start.max(part)..whole.end.min(part.checked_add(LARGEST)?);
        Some(Self { range, infos: Infos::default(), blocks: Map::new(), count: 0, may_grow })
    }

    pub(crate) fn range(&self) -> &Range<u64> {
        &self.range
    }

    /// The address of this UNWIND_INFO.
    pub(crate) fn place(&mut self, info: &[u8]) -> Option<u64> {
        let range = self.range.end..self.range.start.checked_add(REACH)?;
        self.infos.place(info, &range)
    }

    /// The UNWIND_INFO at an address.
    pub(crate) fn info(&self, place: u64) -> Option<&[u8]> {
        self.infos.at(place)
    }

    /// Adds a function that is in the region and overlaps with none.
    ///
    /// # Errors
    /// An allocation failed: functions of the region may have been lost.
    pub(crate) fn add(
        &mut self,
        function: Function,
        retired_memory: &mut RetiredMemory,
    ) -> Result<(), Refused> {
        self.count = self.count.saturating_add(1);
        let home = self.blocks.range_mut(..=function.begin).next_back();
        if let Some((_, block)) = home
            && function.end <= block.range().end
            && (block.count < MOST)
            && block.add(&function).is_some()
        {
            return Ok(());
        }
        // Create a new table, for the block and for those whose beginning the function covers.
        let start = self.blocks.last_up_to(&function.begin).map(|(&start, _)| start);
        let keys: Vec<u64> = match start {
            Some(start) => self.blocks.range(start..function.end).map(|(&key, _)| key).collect(),
            None => Vec::new(),
        };
        fallible::so_far()?;
        let mut old: Vec<Block> = Vec::new();
        old.try_reserve_exact(keys.len())?;
        old.extend(keys.into_iter().filter_map(|key| self.blocks.remove(&key)));
        let added = self.replace(&old, function, retired_memory);
        // Only after the new ones are registered.
        for block in old {
            block.retire(retired_memory);
        }
        added
    }

    /// Adds blocks with the functions of `old`, which have been removed, and this one.
    fn replace(
        &mut self,
        old: &[Block],
        function: Function,
        retired_memory: &mut RetiredMemory,
    ) -> Result<(), Refused> {
        let range = match (old.first(), old.last()) {
            (Some(first), Some(last)) => first.range().start..last.range().end,
            _ => self.range.clone(),
        };
        let mut functions: Vec<Function> = old.iter().flat_map(Block::functions).collect();
        let at = functions.partition_point(|other| other.begin < function.begin);
        functions.insert(at.min(functions.len()), function);
        fallible::so_far()?;

        let mut rest = functions.as_slice();
        let mut start = range.start;
        while !rest.is_empty() {
            // If functions are added in ascending order, one block is filled and the next begun; otherwise both
            // halves get free entries.
            let is_last = at.saturating_add(1) == functions.len();
            let count = if is_last { MOST } else { rest.len().div_ceil(2).min(MOST) };
            let (these, behind) = split(rest, if rest.len() > MOST { count } else { rest.len() });
            let end = behind.first().map_or(range.end, boundary);
            let block = Block::new(start..end, these, self.may_grow)?;
            if let Err((Refused, block)) = self.blocks.try_insert(start, block) {
                block.retire(retired_memory);
                return Err(Refused);
            }
            (start, rest) = (end, behind);
        }
        Ok(())
    }

    /// Removes all functions that overlap with this range.
    pub(crate) fn forget(&mut self, start: u64, end: u64, mut gone: impl FnMut(Function)) {
        let first = self.blocks.last_up_to(&start).map_or(start, |(&key, _)| key);
        for block in self.blocks.range_mut(first..end.max(first)).map(|(_, block)| block) {
            block.forget(start, end, |function| {
                self.count = self.count.saturating_sub(1);
                gone(function);
            });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn retire(self, retired_memory: &mut RetiredMemory) {
        for block in self.blocks.into_values() {
            block.retire(retired_memory);
        }
        retired_memory.put(Retired::Infos(self.infos.into_blocks()));
    }
}

/// The start of a block whose first function this is: offsets from there to UNWIND_INFO must be multiples of 4.
fn boundary(first: &Function) -> u64 {
    first.begin & !3
}

/// The first `count` functions if a block can begin behind them, else somewhat fewer; and the others.
fn split(functions: &[Function], count: usize) -> (&[Function], &[Function]) {
    let is_between = |at: &usize| {
        let before = functions.get(at.saturating_sub(1));
        before.zip(functions.get(*at)).is_none_or(|(before, next)| before.end <= boundary(next))
    };
    let count = (1..=count).rev().find(is_between).unwrap_or(functions.len());
    functions.split_at_checked(count).unwrap_or((functions, &[]))
}
