//! Hides code from whoever ran in its place long before it came.
//!
//! An image shows all its code from the beginning of its mapping, which serves samples that were
//! taken shortly before a LOAD. Where something else was seen running that no source knows, what
//! lay there before the image is mapped over it until the code comes. In a forked child, that is
//! code that its parent made after the fork, and it never comes.

use std::collections::BTreeMap;
use std::ops::Range;

use code_timeline::ranges::Canvas;
use code_timeline::{CodeId, LifeId, Timeline};

use super::extents::{Extent, base_of};
use super::{Arena, Mapping, Place};
use crate::inject::codes::CodeBook;
use crate::inject::survey::Survey;
use crate::inject::weigh::Weights;

/// What hides code.
#[derive(Debug)]
pub struct Veil {
    /// In whose memory.
    pub life: LifeId,
    /// Where.
    pub range: Range<u64>,
    /// From when on.
    pub place: Place,
}

/// Finds what must be hidden, and maps in `arenas` anew what comes into view later.
pub fn veils(
    survey: &Survey,
    book: &CodeBook<'_>,
    weights: &Weights,
    extents: &BTreeMap<LifeId, Vec<Extent>>,
    arenas: &mut [Arena],
) -> Vec<Veil> {
    let mut veils = Vec::new();
    for of_owner in weights.ahead().chunk_by(|a, b| a.owner == b.owner) {
        let owner = of_owner[0].owner;
        let (Some(timeline), Some(extents)) = (book.timeline(owner), extents.get(&owner)) else {
            continue;
        };
        let first = first_there(timeline);
        for ahead in of_owner {
            let range = book.code(ahead.code).range();
            // Where other code lay before, hiding would take more than it gives.
            if first.under(&range).any(|(_, code)| code != ahead.code) {
                continue;
            }
            let Some((came, _)) = first.under(&range).next() else { continue };
            if ahead.life != owner {
                let (forked, ordinal) = survey.begin(ahead.life);
                if let Some(ordinal) = ordinal.filter(|_| came > ahead.asked) {
                    let place = Place::After(ordinal, forked);
                    veils.push(Veil { life: ahead.life, range, place });
                }
                continue;
            }
            let usage = weights.usage(owner, ahead.code);
            let back = usage.map_or(came, |usage| usage.first.min(came));
            let mut images = arenas
                .iter_mut()
                .filter(|arena| arena.life == owner && arena.span.start <= range.start)
                .filter(|arena| range.end <= arena.span.end)
                .flat_map(|arena| &mut arena.images);
            let image = images.find(|image| back < image.until);
            if let (Some(image), Some(place)) = (image, base_of(extents, &range)) {
                let mapping = Mapping { range: range.clone(), moved_by: 0, place: Place::At(back) };
                image.mappings.push(mapping);
                veils.push(Veil { life: owner, range, place });
            }
        }
    }
    veils
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
