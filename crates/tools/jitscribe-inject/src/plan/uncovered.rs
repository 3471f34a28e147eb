//! The rest of a recording's own mappings, where images show their content.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use code_timeline::{AddressSpaceId, Inherited, ranges};

use super::extents::{Extent, within};
use crate::codes::code_table::CodeTable;
use crate::limits::{GENERATIONS, PARTS};
use crate::recording::address_space::{AddressSpaces, Runs};
use crate::recording::recording_index::{MapEvent, Ordinal, RecordingIndex};

/// The rest of each mapping that is cut.
#[derive(Debug, Default)]
pub struct UncoveredRanges {
    changed: HashMap<Ordinal, Vec<Range<u64>>>,
    /// Number of mappings that would have had too many parts, and were left out completely.
    pub crowded: usize,
}

impl UncoveredRanges {
    /// Checks all mappings. A mapping is kept unchanged if no image was mapped at its addresses, and left out if it
    /// only repeats an earlier mapping.
    ///
    /// A file's mapping is kept completely or left out: if it is new, it is above the images.
    pub fn compute(
        index: &RecordingIndex,
        spaces: &AddressSpaces,
        table: &CodeTable<'_>,
        extents: &BTreeMap<AddressSpaceId, Vec<Extent>>,
        runs: &mut Runs,
    ) -> Self {
        let mut uncovered = Self::default();
        if extents.is_empty() {
            return uncovered;
        }
        let inherited = index.processes.inherited(|space| extents.contains_key(&space));
        let covered = Coverage { index, table, extents, inherited };
        // Number of extents that may be checked: some for each mapping, and a total.
        let mut left = index.maps.len().saturating_mul(16).saturating_add(PARTS);
        for map in &index.maps {
            let mut holes = Vec::new();
            let is_told = covered.holes(map, &mut left, &mut holes);
            if holes.is_empty() {
                continue;
            }
            let parts = if spaces.repeats(index, map, runs) {
                Vec::new()
            } else if !map.anonymous {
                continue;
            } else if is_told {
                ranges::subtract(&map.range, &holes)
            } else {
                uncovered.crowded += 1;
                Vec::new()
            };
            if parts != [map.range.clone()] {
                uncovered.changed.insert(map.ordinal, parts);
            }
        }
        uncovered
    }

    /// The rest of the mapping of this event, if it is cut.
    pub fn parts(&self, ordinal: Ordinal) -> Option<&[Range<u64>]> {
        self.changed.get(&ordinal).map(Vec::as_slice)
    }
}

struct Coverage<'a> {
    index: &'a RecordingIndex,
    table: &'a CodeTable<'a>,
    extents: &'a BTreeMap<AddressSpaceId, Vec<Extent>>,
    /// By address space: where it inherited its images.
    inherited: Vec<Option<Inherited>>,
}

impl Coverage<'_> {
    /// The ranges of images at the time of `map`. Returns `false` if there are too many; `holes` has some of them then,
    /// if there are any.
    fn holes(&self, map: &MapEvent, left: &mut usize, holes: &mut Vec<Range<u64>>) -> bool {
        let (mut space, mut time) = (map.space, map.time);
        let mut generations = 0;
        let mut is_told = true;
        for _ in 0..GENERATIONS {
            if let Some(extents) = self.extents.get(&space) {
                let mut near = within(extents, &map.range);
                if near.len() <= *left {
                    *left -= near.len();
                } else {
                    near = near.get(..1).unwrap_or(&[]);
                    is_told = false;
                }
                let shown = near
                    .iter()
                    .filter(|extent| extent.place.precedes(map) && extent.place.time() <= time);
                holes.extend(shown.map(|extent| extent.range.clone()));
                generations += usize::from(!near.is_empty());
                if !self.table.history.is_sharing(space) {
                    break;
                }
            }
            // A child without code of its own has its parent's, through the mappings that it inherited.
            if self.index.processes.from(space) > time {
                break;
            }
            let Some(from) = self.inherited.get(space.index()).copied().flatten() else { break };
            (space, time) = (from.space, from.as_of);
        }
        if generations > 1 {
            holes.sort_by_key(|range| range.start);
            *holes = ranges::merge(std::mem::take(holes), |_| false);
        }
        is_told
    }
}
