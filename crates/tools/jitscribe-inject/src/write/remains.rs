//! What is left of a mapping when another one is inserted over a part of it.
//!
//! The kernel, and perf, divide the old mapping. Other readers do not: samply drops a file's mapping completely when anything is mapped over a part
//! of it. So the parts that are left are mapped once more, behind the mapping that covers the rest.

use std::collections::BTreeMap;
use std::ops::Range;

use code_timeline::AddressSpaceId;

use crate::plan::{Place, Plan};
use crate::recording::recording_index::{MapEvent, RecordingIndex};

/// A mapping that is added to the recording.
#[derive(Clone, Debug)]
pub struct AddedMapping {
    /// The address space.
    pub space: AddressSpaceId,
    /// The addresses.
    pub range: Range<u64>,
    /// The place in the stream.
    pub place: Place,
    /// What is mapped there.
    pub content: Content,
}

/// What a mapping shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// An image, by its number; and by how much its addresses are behind those in the process.
    Image {
        /// The number among the images that are written.
        number: usize,
        /// The difference.
        moved_by: u64,
    },
    /// The unwind tables of an image.
    Tables {
        /// The number of the image.
        number: usize,
    },
    /// The file, or the anonymous memory, of a mapping in the recording: its index among them. `None` for anonymous memory that the recording
    /// does not have.
    Recorded(Option<usize>),
}

/// Adds to `added` what is left of the mappings that are covered in part, and sorts them by their places.
pub fn with_remains(
    mut added: Vec<AddedMapping>,
    index: &RecordingIndex,
    plan: &Plan,
) -> Vec<AddedMapping> {
    added.sort_by_key(|mapping| (mapping.space, order(mapping.place)));
    let mut all = Vec::with_capacity(added.len());
    for of_space in added.chunk_by(|a, b| a.space == b.space) {
        let space = of_space[0].space;
        let mut live = LiveMappings { index, space, pieces: BTreeMap::new() };
        let mut recorded = index.numbered_maps_of(space).peekable();
        for mapping in of_space {
            let before = order(mapping.place);
            while let Some((number, map)) =
                recorded.next_if(|(_, map)| (map.time, map.ordinal) <= before)
            {
                live.record(number, map, plan, &mut all);
            }
            all.push(mapping.clone());
            live.cut(&mapping.range, mapping.place, true, &mut all);
            live.pieces.insert(mapping.range.start, (mapping.range.end, mapping.content));
        }
        recorded.for_each(|(number, map)| live.record(number, map, plan, &mut all));
    }
    // The sort is stable: what is mapped at one place keeps its order.
    all.sort_by_key(|mapping| mapping.place);
    all
}

/// The position among the recorded mappings of what readers process at `place`.
fn order(place: Place) -> (u64, u64) {
    match place {
        Place::First => (0, 0),
        Place::After(ordinal, time) => (time, ordinal),
        Place::At(_) => (place.time_of_event(), u64::MAX),
    }
}

/// The mappings of one address space at a time.
struct LiveMappings<'a> {
    index: &'a RecordingIndex,
    space: AddressSpaceId,
    /// By start, disjoint: end and content.
    pieces: BTreeMap<u64, (u64, Content)>,
}

impl LiveMappings<'_> {
    /// Processes a mapping of the recording.
    fn record(&mut self, number: usize, map: &MapEvent, plan: &Plan, all: &mut Vec<AddedMapping>) {
        let whole = [map.range.clone()];
        for part in plan.uncovered.parts(map.ordinal).unwrap_or(&whole) {
            // What the recording itself does to files is the same for all readers as without images.
            self.cut(part, Place::behind(map), false, all);
            self.pieces.insert(part.start, (part.end, Content::Recorded(Some(number))));
        }
    }

    /// Removes `range`, and maps what is left of files and images; without `files`, of images only.
    fn cut(&mut self, range: &Range<u64>, place: Place, files: bool, all: &mut Vec<AddedMapping>) {
        let before = self.pieces.range(..range.start).next_back();
        let first = before.filter(|(_, (end, _))| *end > range.start).map(|(&start, _)| start);
        let mut from = first.unwrap_or(range.start);
        while let Some((&start, &(end, content))) = self.pieces.range(from..range.end).next() {
            self.pieces.remove(&start);
            from = range.start;
            for rest in [start..range.start.min(end), range.end.max(start)..end] {
                if rest.is_empty() {
                    continue;
                }
                self.pieces.insert(rest.start, (rest.end, content));
                let is_mapped_again = match content {
                    Content::Image { .. } | Content::Tables { .. } => true,
                    Content::Recorded(map) => {
                        let map = map.and_then(|map| self.index.maps.get(map));
                        files && map.is_some_and(|map| !map.anonymous)
                    }
                };
                if is_mapped_again {
                    all.push(AddedMapping { space: self.space, range: rest, place, content });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a reader shows that drops each mapping that a new one overlaps: 0 for none.
    fn shown(events: &[(Range<u64>, usize)], at: u64) -> usize {
        let mut live: Vec<(Range<u64>, usize)> = Vec::new();
        for (range, what) in events {
            live.retain(|(old, _)| old.end <= range.start || range.end <= old.start);
            live.push((range.clone(), *what));
        }
        live.iter().find(|(range, _)| range.contains(&at)).map_or(0, |(_, what)| *what)
    }

    proptest! {
        /// A reader that drops whole mappings ends with what a reader has that divides them, where images are mapped
        /// over a file.
        #[test]
        fn readers_that_drop_whole_mappings_see_the_same(
            images in prop::collection::vec((0u64..40, 1u64..12, 1u64..5), 0..12),
        ) {
            let file = MapEvent::made(1, 10..50, 0, 1, false);
            let space = file.space;
            let index = RecordingIndex::made(vec![file]);
            let added = images.iter().enumerate().map(|(number, &(start, len, time))| AddedMapping {
                space,
                range: 8 + start..8 + start + len,
                place: Place::At(time * 10),
                content: Content::Image { number, moved_by: 0 },
            });
            let added: Vec<AddedMapping> = added.collect();
            let mut divided = vec![0; 80];
            divided[10..50].fill(1);
            let mut by_time = added.clone();
            by_time.sort_by_key(|mapping| mapping.place);
            for mapping in &by_time {
                let Content::Image { number, .. } = mapping.content else { continue };
                divided[mapping.range.start as usize..mapping.range.end as usize].fill(number + 2);
            }
            let all = with_remains(added.clone(), &index, &Plan::default());
            prop_assert!(all.len() <= 3 * added.len());
            let events = all.iter().map(|mapping| {
                let what = match mapping.content {
                    Content::Image { number, .. } | Content::Tables { number } => number + 2,
                    Content::Recorded(_) => 1,
                };
                (mapping.range.clone(), what)
            });
            let events: Vec<_> = std::iter::once((10..50, 1)).chain(events).collect();
            for at in 0..80 {
                prop_assert_eq!(shown(&events, at), divided[at as usize], "at {}", at);
            }
        }
    }
}
