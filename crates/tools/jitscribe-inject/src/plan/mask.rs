//! Hides code from whoever ran in its place long before it came.
//!
//! An image shows all its code from the beginning of its mapping, which serves samples that were
//! taken shortly before a LOAD. Where something else was seen running that no source knows, what
//! lay there before the image is mapped over it until the code comes. In a forked child, that is
//! code that its parent made after the fork, and it never comes.

use std::collections::BTreeMap;
use std::ops::Range;

use code_timeline::ranges::Canvas;
use code_timeline::{AddressSpaceId, CodeId, Timeline};

use super::extents::{Extent, base_of};
use super::{Arena, Mapping, Place};
use crate::attribution::SampleAttribution;
use crate::code_table::CodeTable;
use crate::recording_index::RecordingIndex;

/// What hides code.
#[derive(Debug)]
pub struct Mask {
    /// In whose memory.
    pub space: AddressSpaceId,
    /// Where.
    pub range: Range<u64>,
    /// From when on.
    pub place: Place,
}

/// Finds what must be hidden, and maps in `arenas` anew what comes into view later.
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
        // Those of one code follow one another, a life each.
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
            // Arenas stand by life and address.
            let behind = arenas
                .partition_point(|arena| (arena.space, arena.span.start) <= (owner, range.start));
            let arena = arenas[..behind].last_mut();
            let arena = arena.filter(|arena| arena.space == owner && range.end <= arena.span.end);
            let image = arena.and_then(|arena| arena.image_at(back));
            if let (Some(image), Some(place)) = (image, base_of(extents, &range)) {
                let mapping = Mapping { range: range.clone(), moved_by: 0, place: Place::At(back) };
                image.mappings.push(mapping);
                masks.push(Mask { space: owner, range, place });
            }
        }
    }
    masks
}

/// When `code` came to `range`; `None` if other code lay there before, as hiding would take more than
/// it gives then.
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

/// The first code at each address, and when it came.
fn first_there(timeline: &Timeline) -> Canvas<(u64, CodeId)> {
    let mut pieces: Vec<_> = timeline.pieces().iter().collect();
    pieces.sort_by_key(|piece| std::cmp::Reverse(piece.since));
    let mut first = Canvas::new();
    for piece in pieces {
        first.paint(piece.range.clone(), (piece.since, piece.code));
    }
    first
}
