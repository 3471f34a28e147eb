//! Hides code from samples of other code that ran at its address long before it was loaded.
//!
//! An image shows all its code from the beginning of its mapping, which is correct for samples shortly before a LOAD.
//! If unknown code was seen running at its address before, the previous mapping is mapped over the image until the code
//! is loaded. In a forked child, this applies to code that its parent loaded after the fork; in the child, it is never
//! loaded.

use std::collections::BTreeMap;
use std::ops::Range;

use code_timeline::ranges::Canvas;
use code_timeline::{AddressSpaceId, CodeId, Timeline};

use super::arena::{Arena, Mapping};
use super::extents::{Extent, base_of};
use super::place::Place;
use crate::attribution::SampleAttribution;
use crate::codes::code_table::CodeTable;
use crate::recording::recording_index::RecordingIndex;

/// A mapping that hides code.
#[derive(Debug)]
pub struct Mask {
    /// The address space.
    pub space: AddressSpaceId,
    /// The addresses.
    pub range: Range<u64>,
    /// Where it begins.
    pub place: Place,
}

/// Determines what must be hidden, and maps in `arenas` what becomes visible later.
pub fn masks(
    index: &RecordingIndex,
    table: &CodeTable<'_>,
    attribution: &SampleAttribution,
    extents: &BTreeMap<AddressSpaceId, Vec<Extent>>,
    arenas: &mut [Arena],
) -> Vec<Mask> {
    let mut masks = Vec::new();
    for of_owner in attribution.late().chunk_by(|a, b| a.owner == b.owner) {
        let owner = of_owner[0].owner;
        let (Some(timeline), Some(extents)) = (table.history.timeline(owner), extents.get(&owner))
        else {
            continue;
        };
        let first = first_there(timeline);
        // The entries of one code are adjacent, one for each address space.
        let mut latest: Option<(CodeId, Option<u64>)> = None;
        for late in of_owner {
            let range = table.history.code(late.code).range();
            let came = match latest.filter(|(code, _)| *code == late.code) {
                Some((_, came)) => came,
                None => came_first(&first, &range, late.code),
            };
            latest = Some((late.code, came));
            let Some(came) = came else { continue };
            if late.space != owner {
                let (forked, ordinal) = index.begin(late.space);
                if let Some(ordinal) = ordinal.filter(|_| came > late.as_of) {
                    let place = Place::After(ordinal, forked);
                    masks.push(Mask { space: late.space, range, place });
                }
                continue;
            }
            let usage = attribution.usage(owner, late.code);
            let back = usage.map_or(came, |usage| usage.first.min(came));
            // Arenas are sorted by address space and address.
            let behind = arenas
                .partition_point(|arena| (arena.space, arena.span.start) <= (owner, range.start));
            let arena = arenas[..behind].last_mut();
            let arena = arena.filter(|arena| arena.space == owner && range.end <= arena.span.end);
            let image = arena.and_then(|arena| {
                let first = arena.images_at(back).start;
                arena.images.get_mut(first)
            });
            if let (Some(image), Some(place)) = (image, base_of(extents, &range)) {
                let mapping = Mapping { range: range.clone(), moved_by: 0, place: Place::At(back) };
                image.mappings.push(mapping);
                masks.push(Mask { space: owner, range, place });
            }
        }
    }
    masks
}

/// When `code` was loaded at `range`; `None` if other code was there before, as hiding would then hide that code, too.
fn came_first(first: &Canvas<(u64, CodeId)>, range: &Range<u64>, code: CodeId) -> Option<u64> {
    let mut came = None;
    for (since, other) in first.under(range) {
        if other != code {
            return None;
        }
        came = came.or(Some(since));
    }
    came
}

/// The first code at each address, and when it was loaded.
fn first_there(timeline: &Timeline) -> Canvas<(u64, CodeId)> {
    let mut pieces: Vec<_> = timeline.pieces().iter().collect();
    pieces.sort_by_key(|piece| std::cmp::Reverse(piece.since));
    let mut first = Canvas::new();
    for piece in pieces {
        first.paint(piece.range.clone(), (piece.since, piece.code));
    }
    first
}
