//! What each process had mapped, apart from the code of a JIT.

use std::collections::BTreeMap;
use std::ops::Range;

use code_timeline::ranges::{self, intersection};
use code_timeline::{CodeId, LifeId, Timeline, TimelineBuilder, Who};

use super::survey::{MapEvent, Survey};

/// The memory of every process over time.
#[derive(Debug)]
pub struct AddressSpaces {
    spaces: BTreeMap<LifeId, AddressSpace>,
}

#[derive(Debug, Default)]
struct AddressSpace {
    /// Mappings by address and time; their numbers are those of [`Survey::maps`].
    mappings: Timeline,
    /// Where a file was ever mapped, ascending and disjoint.
    files: Vec<Range<u64>>,
    /// Where anything was ever mapped, ascending and disjoint.
    taken: Vec<Range<u64>>,
}

/// What is known of the memory at an address.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Whether it is no file's: jitted code, as far as anyone can tell.
    pub is_anonymous: bool,
    /// At which addresses, of those below `u64::MAX`, this is so.
    pub addresses: Range<u64>,
    /// At which times.
    pub times: Range<u64>,
}

impl AddressSpaces {
    /// The memory of every process that a recording tells of.
    pub fn of(survey: &Survey) -> Self {
        #[derive(Default)]
        struct Told {
            mappings: TimelineBuilder,
            files: Vec<Range<u64>>,
            taken: Vec<Range<u64>>,
        }
        let mut told: BTreeMap<LifeId, Told> = BTreeMap::new();
        for (number, map) in survey.maps.iter().enumerate() {
            let told = told.entry(map.life).or_default();
            let id = CodeId(u32::try_from(number).unwrap_or(u32::MAX));
            told.mappings.load(map.time, map.range.clone(), id);
            told.taken.push(map.range.clone());
            if !map.anonymous {
                told.files.push(map.range.clone());
            }
        }
        let union = |mut all: Vec<Range<u64>>| {
            all.sort_by_key(|range| range.start);
            ranges::merge(all, |_| false)
        };
        let spaces = told
            .into_iter()
            .map(|(life, told)| {
                let space = AddressSpace {
                    mappings: told.mappings.finish(),
                    files: union(told.files),
                    taken: union(told.taken),
                };
                (life, space)
            })
            .collect();
        Self { spaces }
    }

    /// Whether `address` belonged to a file at `time`.
    pub fn around(&self, survey: &Survey, life: LifeId, address: u64, time: u64) -> Memory {
        let (mut life, mut asked, mut inherited) = (life, time, false);
        let mut memory = Memory { is_anonymous: true, addresses: 0..u64::MAX, times: 0..u64::MAX };
        loop {
            if let Some(space) = self.spaces.get(&life) {
                let around = space.mappings.around(address, asked);
                memory.addresses = intersection(&memory.addresses, &around.addresses);
                if !inherited {
                    memory.times = intersection(&memory.times, &around.times);
                }
                if let Who::Here(piece) = around.who {
                    let map = survey.maps.get(piece.code.index());
                    memory.is_anonymous = map.is_none_or(|map| map.anonymous);
                    return memory;
                }
            }
            let Some((parent, forked)) = survey.processes.parent(life) else { return memory };
            // What a child inherited does not change any more.
            if !inherited {
                let times = if forked <= asked { forked..u64::MAX } else { 0..forked };
                memory.times = intersection(&memory.times, &times);
            }
            if forked > asked {
                return memory;
            }
            (life, asked, inherited) = (parent, forked.saturating_sub(1), true);
        }
    }

    /// What was mapped at `address` at `time`, by the process or by those it was forked from.
    pub fn mapping<'s>(
        &self,
        survey: &'s Survey,
        life: LifeId,
        address: u64,
        time: u64,
    ) -> Option<&'s MapEvent> {
        let (mut life, mut time) = (life, time);
        loop {
            let here = self.spaces.get(&life).and_then(|space| space.mappings.at(address, time));
            if let Some(piece) = here {
                return survey.maps.get(piece.code.index());
            }
            match survey.processes.parent(life) {
                Some((parent, forked)) if forked <= time => {
                    (life, time) = (parent, forked.saturating_sub(1));
                }
                _ => return None,
            }
        }
    }

    /// Whether `map` puts a file where it was not just before.
    pub fn brings_new_file(&self, survey: &Survey, map: &MapEvent) -> bool {
        let before = || {
            let space = self.spaces.get(&map.life)?;
            let piece = space.mappings.at(map.range.start, map.time.checked_sub(1)?)?;
            Some(survey.maps[piece.code.index()].name)
        };
        !map.anonymous && before() != Some(map.name)
    }

    /// Whether all of `map` was mapped just so before, and is only told of once more: something
    /// about it changed, its protection for one.
    pub fn repeats(&self, survey: &Survey, map: &MapEvent) -> bool {
        let (Some(space), Some(before)) = (self.spaces.get(&map.life), map.time.checked_sub(1))
        else {
            return false;
        };
        let mut at = map.range.start;
        while at < map.range.end {
            let Some(piece) = space.mappings.at(at, before) else { return false };
            let old = &survey.maps[piece.code.index()];
            let same_place = map.anonymous || old.above_offset == map.above_offset;
            if old.name != map.name || !same_place {
                return false;
            }
            at = piece.range.end;
        }
        true
    }

    /// Where a file was ever mapped in `life`, ascending and disjoint.
    pub fn files(&self, life: LifeId) -> &[Range<u64>] {
        self.spaces.get(&life).map_or(&[], |space| &space.files)
    }

    /// The first page at or above `from` with room for `size` bytes, where nothing was ever mapped
    /// and nothing of `also` lies (ascending and disjoint).
    pub fn free(&self, life: LifeId, from: u64, size: u64, also: &[Range<u64>]) -> Option<u64> {
        const PAGE: u64 = 4096;
        let taken = self.spaces.get(&life).map_or(&[][..], |space| &space.taken);
        let mut at = from.checked_next_multiple_of(PAGE)?;
        loop {
            let wanted = at..at.checked_add(size)?;
            let in_the_way = [taken, also]
                .into_iter()
                .filter_map(|ranges| ranges::overlapping(ranges, &wanted).last())
                .map(|range| range.end)
                .max();
            match in_the_way {
                Some(end) => at = end.checked_next_multiple_of(PAGE)?,
                None => return Some(at),
            }
        }
    }
}
