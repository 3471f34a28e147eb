//! The mappings of each process, without the code of a JIT.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use code_timeline::ranges::{self, intersection};
use code_timeline::{AddressSpaceId, CodeId, Inherited, Nearest, Timeline, TimelineBuilder};

use super::free::Free;
use super::recording_index::{MapEvent, RecordingIndex};
use crate::interner::NameId;
use crate::limits::GENERATIONS;

/// The memory of every process over time.
#[derive(Debug)]
pub struct AddressSpaces {
    spaces: BTreeMap<AddressSpaceId, AddressSpace>,
    /// By address space: where it inherited what it did not map itself.
    inherited: Vec<Option<Inherited>>,
}

#[derive(Debug, Default)]
struct AddressSpace {
    /// Mappings by address and time; their numbers are those of [`RecordingIndex::maps`].
    mappings: Timeline,
    /// Where a file was ever mapped, ascending and disjoint.
    files: Vec<Range<u64>>,
    /// Those of them that only show code of a JIT.
    jitted: Vec<Range<u64>>,
    /// Where anything was ever mapped, ascending and disjoint.
    taken: Vec<Range<u64>>,
}

/// The memory at an address.
#[derive(Clone, Debug)]
pub struct Memory {
    /// The mapping: its index in [`RecordingIndex::maps`].
    pub mapping: Option<usize>,
    /// Whether no file backs it: then it is probably jitted code.
    pub is_anonymous: bool,
    /// The addresses for which this is valid, without `u64::MAX`.
    pub addresses: Range<u64>,
    /// The times for which this is valid.
    pub times: Range<u64>,
}

impl AddressSpaces {
    /// Computes the memory of every process in a recording.
    pub fn build(index: &RecordingIndex) -> Self {
        #[derive(Default)]
        struct Builder {
            mappings: TimelineBuilder,
            files: Vec<Range<u64>>,
            jitted: Vec<Range<u64>>,
            taken: Vec<Range<u64>>,
        }
        let mut builders: BTreeMap<AddressSpaceId, Builder> = BTreeMap::new();
        for (number, map) in index.maps.iter().enumerate() {
            let builder = builders.entry(map.space).or_default();
            let id = CodeId(u32::try_from(number).unwrap_or(u32::MAX));
            builder.mappings.load(map.time, map.range.clone(), id);
            builder.taken.push(map.range.clone());
            if !map.anonymous {
                builder.files.push(map.range.clone());
            }
            if map.jitted {
                builder.jitted.push(map.range.clone());
            }
        }
        let union = |mut all: Vec<Range<u64>>| {
            all.sort_by_key(|range| range.start);
            ranges::merge(all, |_| false)
        };
        let spaces: BTreeMap<AddressSpaceId, AddressSpace> = builders
            .into_iter()
            .map(|(space, builder)| {
                let mapped = AddressSpace {
                    mappings: builder.mappings.finish(),
                    files: union(builder.files),
                    jitted: union(builder.jitted),
                    taken: union(builder.taken),
                };
                (space, mapped)
            })
            .collect();
        let inherited = index.processes.inherited(|space| spaces.contains_key(&space));
        Self { spaces, inherited }
    }

    fn inherited(&self, space: AddressSpaceId) -> Option<Inherited> {
        self.inherited.get(space.index()).copied().flatten()
    }

    /// Whether `address` belonged to a file at `time`.
    pub fn around(
        &self,
        index: &RecordingIndex,
        space: AddressSpaceId,
        address: u64,
        time: u64,
    ) -> Memory {
        let (mut space, mut as_of, mut inherited) = (space, time, false);
        let mut memory = Memory {
            mapping: None,
            is_anonymous: true,
            addresses: 0..u64::MAX,
            times: 0..u64::MAX,
        };
        for _ in 0..GENERATIONS {
            if let Some(mapped) = self.spaces.get(&space) {
                let around = mapped.mappings.around(address, as_of);
                memory.addresses = intersection(&memory.addresses, &around.addresses);
                if !inherited {
                    memory.times = intersection(&memory.times, &around.times);
                }
                if let Nearest::Current(piece) = around.nearest {
                    let map = index.maps.get(piece.code.index());
                    memory.is_anonymous = map.is_none_or(|map| map.anonymous);
                    memory.mapping = Some(piece.code.index());
                    return memory;
                }
            }
            let Some((_, forked)) = index.processes.parent(space) else { return memory };
            // Inherited memory does not change any more.
            if !inherited {
                let times = if forked <= as_of { forked..u64::MAX } else { 0..forked };
                memory.times = intersection(&memory.times, &times);
            }
            if forked > as_of {
                return memory;
            }
            let Some(from) = self.inherited(space) else { return memory };
            (space, as_of, inherited) = (from.space, from.as_of, true);
        }
        memory
    }

    /// The mapping at `address` at `time`, of the process or of one that it was forked from: its index in
    /// [`RecordingIndex::maps`].
    pub fn mapping(
        &self,
        index: &RecordingIndex,
        space: AddressSpaceId,
        address: u64,
        time: u64,
    ) -> Option<usize> {
        let (mut space, mut time) = (space, time);
        for _ in 0..GENERATIONS {
            let here = self.spaces.get(&space).and_then(|mapped| mapped.mappings.at(address, time));
            if let Some(piece) = here {
                return Some(piece.code.index());
            }
            if index.processes.from(space) > time {
                return None;
            }
            let from = self.inherited(space)?;
            (space, time) = (from.space, from.as_of);
        }
        None
    }

    /// Whether `map` maps a file where it was not mapped just before. What only shows code of a JIT is none: that code lives on.
    pub fn brings_new_file(&self, index: &RecordingIndex, map: &MapEvent) -> bool {
        let before = || {
            let mapped = self.spaces.get(&map.space)?;
            let piece = mapped.mappings.at(map.range.start, map.time.checked_sub(1)?)?;
            Some(index.maps[piece.code.index()].name)
        };
        !map.anonymous && !map.jitted && before() != Some(map.name)
    }

    /// Whether all of `map` was mapped in the same way before, so that the event only repeats it: for example, because
    /// its protection changed. `runs` caches what earlier calls have found.
    pub fn repeats(&self, index: &RecordingIndex, map: &MapEvent, runs: &mut Runs) -> bool {
        let (Some(mapped), Some(before)) = (self.spaces.get(&map.space), map.time.checked_sub(1))
        else {
            return false;
        };
        // The end of the mapping at `at`, if it was the same.
        let end_at = |at: u64| {
            let piece = mapped.mappings.at(at, before)?;
            let old = &index.maps[piece.code.index()];
            let same_place = map.anonymous || old.above_offset == map.above_offset;
            (old.name == map.name && same_place).then_some(piece.range.end)
        };
        let (start, end) = (map.range.start, map.range.end);
        if start >= end {
            return true;
        }
        let Some(mut at) = end_at(start) else { return false };
        if at >= end {
            return true;
        }
        let above_offset = (!map.anonymous).then_some(map.above_offset);
        let runs = runs.0.entry((map.space, before, map.name, above_offset)).or_default();
        while at < end {
            let known = runs.range(..=at).next_back().map(|(_, &known)| known);
            match known.filter(|&known| known > at).or_else(|| end_at(at)) {
                Some(next) => at = next,
                None => break,
            }
        }
        let repeats = at >= end;
        // Runs stay disjoint: runs that overlap are merged.
        let around = runs.range(..start).next_back().filter(|&(_, &ends)| ends >= start);
        let first = around.map_or(start, |(&first, &ends)| {
            at = at.max(ends);
            first
        });
        while let Some((&within, &ends)) = runs.range(first..=at).next() {
            runs.remove(&within);
            at = at.max(ends);
        }
        runs.insert(first, at);
        repeats
    }

    /// The ranges in which a file was ever mapped in `space` itself, ascending and disjoint.
    fn files(&self, space: AddressSpaceId) -> &[Range<u64>] {
        self.spaces.get(&space).map_or(&[], |mapped| &mapped.files)
    }

    /// Where a file was ever mapped in `space` itself that only shows code of a JIT.
    pub fn jitted(&self, space: AddressSpaceId) -> &[Range<u64>] {
        self.spaces.get(&space).map_or(&[], |mapped| &mapped.jitted)
    }

    /// Where anything was ever mapped, in this address space or in one that it was forked from.
    pub fn mapped_with_inherited(&self, space: AddressSpaceId) -> Vec<Range<u64>> {
        let from = std::iter::successors(self.inherited(space), |from| self.inherited(from.space));
        let spaces = std::iter::once(space).chain(from.take(GENERATIONS).map(|from| from.space));
        let mapped = spaces.filter_map(|space| self.spaces.get(&space));
        let mut all: Vec<Range<u64>> =
            mapped.flat_map(|mapped| mapped.taken.iter().cloned()).collect();
        all.sort_by_key(|range| range.start);
        ranges::merge(all, |_| false)
    }

    /// The ranges in which a file was ever mapped in `space`, or in a process that it was forked from; ascending and disjoint.
    pub fn files_with_inherited(&self, space: AddressSpaceId) -> Vec<Range<u64>> {
        let mut all = self.files(space).to_vec();
        let from = std::iter::successors(self.inherited(space), |from| self.inherited(from.space));
        from.take(GENERATIONS).for_each(|from| all.extend_from_slice(self.files(from.space)));
        all.sort_by_key(|range| range.start);
        ranges::merge(all, |_| false)
    }

    /// The ranges in which nothing was ever mapped in `space`, and that are not in `also` (in any order).
    pub fn free(&self, space: AddressSpaceId, also: impl IntoIterator<Item = Range<u64>>) -> Free {
        let taken = self.spaces.get(&space).map_or(&[][..], |mapped| &mapped.taken);
        let mut taken: Vec<Range<u64>> = taken.iter().cloned().chain(also).collect();
        taken.sort_by_key(|range| range.start);
        Free::outside(&ranges::merge(taken, |_| false))
    }
}

/// Runs of mappings without a gap and with one name, just before a time: start and end. So each mapping is checked
/// once, however many events repeat it at that time.
#[derive(Debug, Default)]
pub struct Runs(HashMap<RunKey, BTreeMap<u64, u64>>);

/// The address space, the time, the name, and for a file by how much addresses are above its offsets.
type RunKey = (AddressSpaceId, u64, NameId, Option<u64>);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Piece by piece.
    fn repeats(spaces: &AddressSpaces, index: &RecordingIndex, map: &MapEvent) -> bool {
        let Some(before) = map.time.checked_sub(1) else { return false };
        (map.range.start..map.range.end).all(|at| {
            let old = spaces.mapping(index, map.space, at, before);
            old.is_some_and(|old| index.maps[old].name == map.name)
        })
    }

    proptest! {
        #[test]
        fn repeated_mappings_are_found_in_any_order(
            maps in prop::collection::vec((0u64..2, 0u64..24, 1u64..9, 0u32..2), 1..60),
        ) {
            let mut time = 0;
            let maps = (0..).zip(maps).map(|(ordinal, (step, start, len, name))| {
                time += step;
                MapEvent::made(name, start..start + len, time, ordinal, true)
            });
            let index = RecordingIndex::made(maps.collect());
            let spaces = AddressSpaces::build(&index);
            let mut runs = Runs::default();
            for map in index.maps.iter().chain(index.maps.iter().rev()) {
                let found = spaces.repeats(&index, map, &mut runs);
                prop_assert_eq!(found, repeats(&spaces, &index, map), "{:?}", map);
            }
        }
    }
}
