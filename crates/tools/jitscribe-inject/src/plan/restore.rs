//! Maps images again where a file's mapping hides code that was seen running after it.
//!
//! A runtime may map its own executable again, in another way, over code that the dump has there; and code may be
//! loaded where a library was. (Mappings that repeat an earlier one are left out of the recording, see
//! [`UncoveredRanges`](super::uncovered::UncoveredRanges).)

use std::cell::OnceCell;
use std::collections::HashMap;

use code_timeline::{CodeId, Timeline, Usage, ranges};

use super::arena::{Arena, PlannedImage};
use super::extents::{Extent, within};
use super::place::Place;
use crate::recording::address_space::{AddressSpaces, Runs};
use crate::recording::recording_index::{MapEvent, RecordingIndex};

/// Adds to the images of `arenas`, all of one address space, what mappings of files hide. Returns whether that exceeded
/// `left`: then the rest stays hidden.
pub fn restore(
    index: &RecordingIndex,
    spaces: &AddressSpaces,
    timeline: &Timeline,
    extents: &[Extent],
    arenas: &mut [Arena],
    usage: impl Fn(CodeId) -> Option<Usage>,
    (runs, left): (&mut Runs, &mut usize),
) -> bool {
    let Some(space) = arenas.first().map(|arena| arena.space) else { return false };
    let since = OnceCell::new();
    let mut moved: HashMap<(usize, usize), RelocatedCodes> = HashMap::new();
    for map in index.maps_of(space).filter(|map| !map.anonymous) {
        let hit = within(extents, &map.range);
        if hit.is_empty() {
            continue;
        }
        let first = arenas.partition_point(|arena| arena.span.end <= map.range.start);
        let count = arenas[first..].partition_point(|arena| arena.span.start < map.range.end);
        for (number, arena) in arenas.iter_mut().enumerate().skip(first).take(count) {
            let mut of_arena = within(hit, &arena.span).iter();
            let looked_at = of_arena.len() + 1;
            let is_hidden = of_arena.any(|extent| extent.place.precedes(map));
            let Some(still) = left.checked_sub(looked_at) else { return true };
            *left = still;
            if !is_hidden {
                continue;
            }
            if spaces.repeats(index, map, runs) {
                break;
            }
            let since = since.get_or_init(|| first_load(timeline));
            // Images of later epochs have their own mappings.
            for place in arena.images_at(map.time) {
                let image = &mut arena.images[place];
                let moved =
                    moved.entry((number, place)).or_insert_with(|| RelocatedCodes::collect(image));
                if !restore_in(image, moved, map, since, &usage, left) {
                    return true;
                }
            }
        }
    }
    false
}

/// The first load of each code.
fn first_load(timeline: &Timeline) -> HashMap<CodeId, u64> {
    let mut since: HashMap<CodeId, u64> = HashMap::new();
    for piece in timeline.pieces() {
        let first = since.entry(piece.code).or_insert(piece.since);
        *first = piece.since.min(*first);
    }
    since
}

/// The codes in an image that are relocated.
struct RelocatedCodes {
    /// Number of codes that are not: they come first, by address.
    in_place: usize,
    /// The indices of the others in the list, by their address in the process; with the largest end of all up to each.
    by_address: Vec<(u64, u64, usize)>,
}

impl RelocatedCodes {
    fn collect(image: &PlannedImage) -> Self {
        let in_place = image.shown.partition_point(|shown| shown.moved_by == 0);
        let behind = image.shown.iter().enumerate().skip(in_place);
        let mut by_address: Vec<_> = behind
            .map(|(number, shown)| (shown.range().start, shown.range().end, number))
            .collect();
        by_address.sort_unstable();
        let mut reach = 0;
        for (_, end, _) in &mut by_address {
            reach = reach.max(*end);
            *end = reach;
        }
        Self { in_place, by_address }
    }

    /// The indices in the list of codes that `map` may hide, ascending.
    fn near(&self, image: &PlannedImage, map: &MapEvent) -> Vec<usize> {
        let in_place = &image.shown[..self.in_place];
        let first = in_place.partition_point(|shown| shown.visible.end <= map.range.start);
        let count = in_place[first..].partition_point(|shown| shown.visible.start < map.range.end);
        let mut near: Vec<usize> = (first..first + count).collect();
        let first = self.by_address.partition_point(|&(_, reach, _)| reach <= map.range.start);
        let behind = &self.by_address[first..];
        let count = behind.partition_point(|&(start, ..)| start < map.range.end);
        near.extend(behind[..count].iter().map(|&(.., number)| number));
        near[..].sort_unstable();
        near
    }
}

/// Adds to `image` what `map` hides of it; `false` if that exceeded `left`.
fn restore_in(
    image: &mut PlannedImage,
    moved: &RelocatedCodes,
    map: &MapEvent,
    since: &HashMap<CodeId, u64>,
    usage: impl Fn(CodeId) -> Option<Usage>,
    left: &mut usize,
) -> bool {
    let near = moved.near(image, map);
    let Some(still) = left.checked_sub(near.len()) else { return false };
    *left = still;
    let mut hidden: Vec<(u64, _)> = Vec::new();
    for shown in near.into_iter().map(|number| &image.shown[number]) {
        let is_hit = ranges::overlap(&shown.range(), &map.range);
        if let Some(usage) = usage(shown.code).filter(|usage| is_hit && usage.last >= map.time) {
            let came = since.get(&shown.code).map_or(0, |&since| since.min(usage.first));
            let place = if came <= map.time { Place::behind(map) } else { Place::At(came) };
            hidden.push((came, shown.mapped(place)));
        }
    }
    hidden.sort_by_key(|(came, _)| *came);
    image.mappings.extend(hidden.into_iter().map(|(_, mapping)| mapping));
    true
}
