//! The runs of code in a process, and where each comes into being.

use std::ops::Range;

use code_timeline::{LifeId, Timeline, ranges};

use super::Place;
use crate::inject::address_space::AddressSpaces;
use crate::inject::survey::Survey;

/// Code that lies apart by less than this is one extent: alignment and constants between functions.
const EXTENT_GAP: u64 = 4096;

/// An arena is not larger than this: offsets within an image must fit into 31 bits, with room for
/// the unwind tables.
const ARENA_SPAN: u64 = 1 << 30;

/// Extents that lie apart by less than this share an arena.
const ARENA_GAP: u64 = 16 << 20;

/// A run of code.
#[derive(Clone, Debug)]
pub struct Extent {
    /// The addresses.
    pub range: Range<u64>,
    /// Where it is first mapped: behind what else was mapped there before its first code came.
    pub place: Place,
}

/// The runs of code in one process, by address.
pub fn extents(
    survey: &Survey,
    spaces: &AddressSpaces,
    life: LifeId,
    timeline: &Timeline,
) -> Vec<Extent> {
    let files = spaces.files(life);
    let code = timeline.pieces().iter().map(|piece| piece.range.clone());
    // What lies between code inside a file's mapping (the builtins that V8 has in its own
    // executable) is that file's.
    let runs = ranges::merge(code, |gap| {
        gap.end - gap.start < EXTENT_GAP && ranges::overlapping(files, &gap).is_empty()
    });

    let mut first_load = vec![u64::MAX; runs.len()];
    for piece in timeline.pieces() {
        let run = runs.partition_point(|run| run.end <= piece.range.start);
        first_load[run] = first_load[run].min(piece.since);
    }
    let (began, ordinal) = survey.begin(life);
    let begin = ordinal.map_or(Place::First, |ordinal| Place::After(ordinal, began));
    let mut places = vec![begin; runs.len()];
    // In the order of time, so that the last one stays.
    for map in survey.maps_of(life) {
        let first = runs.partition_point(|run| run.end <= map.range.start);
        let count = runs[first..].partition_point(|run| run.start < map.range.end);
        for run in first..first + count {
            if map.time <= first_load[run] {
                places[run] = Place::After(map.ordinal, map.time);
            }
        }
    }
    let with_place = runs.into_iter().zip(places);
    with_place.map(|(range, place)| Extent { range, place }).collect()
}

/// The extents (by address) that reach into `range`.
pub fn within<'e>(extents: &'e [Extent], range: &Range<u64>) -> &'e [Extent] {
    let first = extents.partition_point(|extent| extent.range.end <= range.start);
    let behind = &extents[first..];
    &behind[..behind.partition_point(|extent| extent.range.start < range.end)]
}

/// Where what lies in `range` is first mapped.
pub fn base_of(extents: &[Extent], range: &Range<u64>) -> Option<Place> {
    let first = extents.partition_point(|extent| extent.range.end <= range.start);
    extents.get(first).map(|extent| extent.place)
}

/// Which extents share an arena.
pub fn arenas(extents: &[Extent]) -> impl Iterator<Item = &[Extent]> {
    let near = extents.chunk_by(|a, b| b.range.start - a.range.end < ARENA_GAP);
    near.flat_map(split_by_span)
}

/// Cuts a run of extents where it would span more than one image can.
fn split_by_span(extents: &[Extent]) -> Vec<&[Extent]> {
    let mut parts = Vec::new();
    let mut rest = extents;
    while let Some(first) = rest.first() {
        let limit = first.range.start.saturating_add(ARENA_SPAN);
        let count = rest.partition_point(|extent| extent.range.end <= limit).max(1);
        let (part, behind) = rest.split_at(count);
        parts.push(part);
        rest = behind;
    }
    parts
}
