//! What is left of a recording's own mappings where images show what they hold.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use code_timeline::{AddressSpaceId, Inherited, ranges};

use super::extents::{Extent, within};
use crate::address_space::{AddressSpaces, Runs};
use crate::code_table::CodeTable;
use crate::limits::{GENERATIONS, PARTS};
use crate::recording_index::{MapEvent, Ordinal, RecordingIndex};

/// What is left of each mapping of which something is taken out.
#[derive(Debug, Default)]
pub struct Uncovered {
    changed: HashMap<Ordinal, Vec<Range<u64>>>,
    /// How many mappings would have been left in too many parts, and were taken out whole.
    pub crowded: usize,
}

impl Uncovered {
    /// Looks at all mappings. What is left is all, if no image was mapped there when it came; and
    /// nothing, if it only says once more what was known.
    ///
    /// A file's mapping is left whole or taken out: where it says something new, it lies above the
    /// images.
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
        let covered = Covered { index, table, extents, inherited };
        // So many may be looked at, however they lie: some for each mapping, and in all.
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

    /// What is left of the mapping that was told by this event, if something is taken out of it.
    pub fn parts(&self, ordinal: Ordinal) -> Option<&[Range<u64>]> {
        self.changed.get(&ordinal).map(Vec::as_slice)
    }
}

struct Covered<'a> {
    index: &'a RecordingIndex,
    table: &'a CodeTable<'a>,
    extents: &'a BTreeMap<AddressSpaceId, Vec<Extent>>,
    /// By life: from whom it has its images, if not by itself.
    inherited: Vec<Option<Inherited>>,
}

impl Covered<'_> {
    /// Where images lay when `map` came. Gives `false` where there are too many to be told: `holes`
    /// has some of them then, if there are any.
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
            // A child without code of its own sees its parent's through the mappings it inherits.
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
