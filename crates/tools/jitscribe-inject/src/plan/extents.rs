//! The extents of code in a process, and where each is mapped first.

use std::collections::BTreeSet;
use std::ops::Range;

use code_timeline::ranges::Canvas;
use code_timeline::{AddressSpaceId, Piece, Timeline, ranges};

use super::output_limits::{ARENA_GAP, ARENA_SPAN, split_into_arenas};
use super::place::Place;
use crate::codes::code_table::CodeTable;
use crate::limits::GENERATIONS;
use crate::recording::address_space::AddressSpaces;
use crate::recording::recording_index::{MapEvent, RecordingIndex};

/// Functions are aligned to cache lines at most, and V8 leaves as much again between two builtins.
const LARGEST_ALIGNMENT: u64 = 128;

/// A run of code.
#[derive(Clone, Debug)]
pub struct Extent {
    /// The addresses.
    pub range: Range<u64>,
    /// Where it is first mapped: behind the last other mapping before its first code.
    pub place: Place,
}

/// The extents of one process, by address.
pub fn extents(
    index: &RecordingIndex,
    spaces: &AddressSpaces,
    table: &CodeTable<'_>,
    space: AddressSpaceId,
    timeline: &Timeline,
) -> Vec<Extent> {
    let (files, jitted) = (spaces.files_with_inherited(space), spaces.jitted(space));
    let code = timeline.pieces().iter().map(|piece| piece.range.clone());
    // The fewer mappings, the better: some readers (hotspot) are right only about the first mapping of a file. What is between code is
    // alignment, or free space of the runtime; but inside a file's mapping, all but alignment belongs to that file, and inside an image of an
    // earlier injection, anything may be a function. Code that the process shares with the one that it was forked from is shown by the image of that process.
    let runs = ranges::merge(code, |gap| {
        let size = gap.end - gap.start;
        size < ARENA_GAP
            && (size < LARGEST_ALIGNMENT || ranges::overlapping(&files, &gap).is_empty())
            && ranges::overlapping(jitted, &gap).is_empty()
            && !table.history.is_shared_within(space, &gap, GENERATIONS)
    });
    let runs = cut(runs, timeline.pieces());

    let mut first_load = vec![u64::MAX; runs.len()];
    // Both are sorted by address.
    let mut first = 0;
    for piece in timeline.pieces() {
        first += runs[first..].iter().take_while(|run| run.end <= piece.range.start).count();
        // More than one only where a run was cut.
        for (run, first_load) in runs.iter().zip(&mut first_load).skip(first) {
            if run.start >= piece.range.end {
                break;
            }
            *first_load = piece.since.min(*first_load);
        }
    }
    let (began, ordinal) = index.begin(space);
    let begin = ordinal.map_or(Place::First, |ordinal| Place::After(ordinal, began));
    let maps: Vec<&MapEvent> = index.maps_of(space).collect();
    let places = places(&runs, &first_load, &maps, begin);
    let with_place = runs.into_iter().zip(places);
    with_place.map(|(range, place)| Extent { range, place }).collect()
}

/// For each run, the event of `maps` (in the order of time) behind which it is mapped first: the last mapping at its
/// addresses at the time of its first code, or `begin`.
///
/// Runs are processed in the order of their first code, with the mappings up to that time laid over each other.
/// Checking all runs for each mapping would take quadratic time.
fn places(runs: &[Range<u64>], first_load: &[u64], maps: &[&MapEvent], begin: Place) -> Vec<Place> {
    let mut places = vec![begin; runs.len()];
    let mut by_first_load: Vec<usize> = (0..runs.len()).collect();
    by_first_load.sort_by_key(|&run| first_load[run]);
    let mut next = 0;
    let mut mapped: Canvas<usize> = Canvas::new();
    for run in by_first_load {
        while let Some(map) = maps.get(next).filter(|map| map.time <= first_load[run]) {
            mapped.paint(map.range.clone(), next);
            next += 1;
        }
        if let Some(last) = mapped.under(&runs[run]).max() {
            places[run] = Place::behind(maps[last]);
        }
    }
    places
}

/// The extents (by address) that overlap `range`.
pub fn within<'e>(extents: &'e [Extent], range: &Range<u64>) -> &'e [Extent] {
    let first = extents.partition_point(|extent| extent.range.end <= range.start);
    let behind = &extents[first..];
    &behind[..behind.partition_point(|extent| extent.range.start < range.end)]
}

/// The place where `range` is first mapped.
pub fn base_of(extents: &[Extent], range: &Range<u64>) -> Option<Place> {
    let first = extents.partition_point(|extent| extent.range.end <= range.start);
    extents.get(first).map(|extent| extent.place)
}

/// Groups extents into arenas.
pub fn arenas(extents: &[Extent]) -> Vec<&[Extent]> {
    split_into_arenas(extents, |extent| extent.range.clone())
}

/// Cuts runs that are larger than an arena: between two codes if possible.
fn cut(runs: Vec<Range<u64>>, pieces: &[Piece]) -> Vec<Range<u64>> {
    let mut parts = Vec::with_capacity(runs.len());
    for run in runs {
        if run.end - run.start <= ARENA_SPAN {
            parts.push(run);
            continue;
        }
        let first = pieces.partition_point(|piece| piece.range.start < run.start);
        let of_run = pieces[first..].iter().take_while(|piece| piece.range.start < run.end);
        // The start of the rest, the end of the code so far, and the last position between two codes.
        let (mut start, mut end, mut between) = (run.start, run.start, run.start);
        for piece in of_run {
            if piece.range.start >= end {
                between = piece.range.start;
            }
            end = end.max(piece.range.end);
            while end - start > ARENA_SPAN {
                let at = if between > start { between } else { start + ARENA_SPAN };
                parts.push(start..at);
                start = at;
            }
        }
        parts.push(start..run.end);
    }
    parts
}

/// Number of codes that are cut.
pub fn torn(extents: &[Extent], timeline: &Timeline) -> usize {
    // Adjacent extents were one before. There is at most one cut per gigabyte of code.
    let cuts = extents.windows(2).filter(|pair| pair[0].range.end == pair[1].range.start);
    let across = |at: u64| {
        let codes = |lies: fn(&Range<u64>, u64) -> bool| {
            let near = timeline.pieces_over(&(at.saturating_sub(1)..at.saturating_add(1)));
            let pieces = near.iter().filter(move |piece| lies(&piece.range, at));
            pieces.map(|piece| piece.code).collect::<BTreeSet<_>>()
        };
        let before = codes(|range, at| range.start < at && at <= range.end);
        let behind = codes(|range, at| range.start <= at && at < range.end);
        before.intersection(&behind).count()
    };
    cuts.map(|pair| across(pair[0].range.end)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use code_timeline::{CodeId, TimelineBuilder};
    use proptest::prelude::*;

    const QUARTER: u64 = ARENA_SPAN / 4;

    fn timeline(loads: &[(u64, Range<u64>)]) -> Timeline {
        let mut builder = TimelineBuilder::new();
        for (number, (time, range)) in loads.iter().enumerate() {
            builder.load(*time, range.clone(), CodeId(number as u32));
        }
        builder.finish()
    }

    fn parts(loads: &[(u64, Range<u64>)]) -> Vec<Range<u64>> {
        let timeline = timeline(loads);
        let ranges = timeline.pieces().iter().map(|piece| piece.range.clone());
        cut(ranges::merge(ranges, |_| true), timeline.pieces())
    }

    #[test]
    fn a_small_extent_is_not_cut() {
        assert_eq!(parts(&[(1, 8..16), (1, 16..8 + ARENA_SPAN)]).len(), 1);
    }

    #[test]
    fn a_cut_goes_between_codes() {
        let loads: Vec<_> =
            (0..9).map(|n| (1, n * QUARTER + 8 * n..(n + 1) * QUARTER + 8 * n)).collect();
        let (a, b) = (3 * QUARTER + 24, 6 * QUARTER + 48);
        assert_eq!(parts(&loads), [0..a, a..b, b..9 * QUARTER + 64]);
    }

    #[test]
    fn overlapping_codes_are_cut() {
        // Each is replaced in part by the next one.
        let loads: Vec<_> =
            (0..10).map(|n| (n + 1, n * QUARTER / 2..n * QUARTER / 2 + QUARTER)).collect();
        let end = 11 * QUARTER / 2;
        let both = parts(&loads);
        assert_eq!(both, [0..ARENA_SPAN, ARENA_SPAN..end]);
        let extents = both.into_iter().map(|range| Extent { range, place: Place::First });
        assert_eq!(torn(&extents.collect::<Vec<_>>(), &timeline(&loads)), 1);
        assert_eq!(parts(&[(1, 5..5 + 9 * QUARTER)]).len(), 3);
    }

    proptest! {
        /// Compares every mapping with every run.
        #[test]
        fn the_last_mapping_before_the_first_code_counts(
            steps in prop::collection::vec((1u64..5, 1u64..9, 0u64..20), 1..12),
            maps in prop::collection::vec((0u64..3, 0u64..60, 1u64..30), 0..30),
        ) {
            let mut at = 0;
            let (runs, first_load): (Vec<_>, Vec<_>) = steps
                .into_iter()
                .map(|(gap, len, first)| {
                    let start = at + gap;
                    at = start + len;
                    (start..at, first)
                })
                .unzip();
            let maps = map_events(&maps);
            let maps: Vec<&MapEvent> = maps.iter().collect();
            let mut naive = vec![Place::First; runs.len()];
            for map in &maps {
                for (run, place) in naive.iter_mut().enumerate() {
                    let hit = runs[run].start < map.range.end && map.range.start < runs[run].end;
                    if hit && map.time <= first_load[run] {
                        *place = Place::behind(map);
                    }
                }
            }
            prop_assert_eq!(places(&runs, &first_load, &maps, Place::First), naive);
        }
    }

    fn map_events(maps: &[(u64, u64, u64)]) -> Vec<MapEvent> {
        let mut time = 0;
        let events = (0..).zip(maps).map(|(ordinal, &(step, start, len))| {
            time += step;
            MapEvent::made(1, start..start + len, time, ordinal, true)
        });
        events.collect()
    }
}
