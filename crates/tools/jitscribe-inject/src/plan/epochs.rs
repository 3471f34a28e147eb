//! An image for each span of time: for recordings whose stacks are unwound later.
//!
//! Unwinders look a whole image up by one base address, so all of it must lie in memory as it lies
//! in the file. Every epoch's image holds all code that was alive in it, for a stack passes through
//! code that no sample names.

use std::ops::Range;

use code_timeline::{CodeId, Timeline, Usage, epochs};

use super::arena::{Mapping, PlannedImage, Shown};
use super::extents::Extent;
use super::place::Place;

/// More epochs than this have no image each: together they would be as large as all code times all
/// epochs.
const MANY: usize = 256;

/// The images of an arena, in the order of time; `None` where they would be too many, or show and map
/// more than is `left`. What they do is taken off that.
pub fn images(
    timeline: &Timeline,
    span: &Range<u64>,
    extents: &[Extent],
    usage: impl Fn(CodeId) -> Option<Usage> + Copy,
    left: &mut usize,
) -> Option<Vec<PlannedImage>> {
    let epochs = epochs::cut(timeline, span, usage);
    if epochs.len() > MANY {
        return None;
    }
    let mut images: Vec<PlannedImage> = Vec::new();
    let mut still = *left;
    for epoch in epochs {
        let shown = epochs::visible(timeline, span, &epoch, true, usage);
        still = still.checked_sub(shown.len() + extents.len())?;
        let shown = shown.into_iter().map(|(visible, code)| Shown { visible, moved_by: 0, code });
        let mappings = extents.iter().filter_map(|extent| {
            let place = match extent.place {
                place if place.time() < epoch.from => Place::At(epoch.from),
                place => place,
            };
            let now = place.time() < epoch.until;
            now.then(|| Mapping { range: extent.range.clone(), moved_by: 0, place })
        });
        images.push(PlannedImage {
            span: span.clone(),
            shown: shown.collect(),
            mappings: mappings.collect(),
            until: epoch.until,
        });
    }
    *left = still;
    Some(images)
}
