//! One image per span of time, for recordings whose stacks are unwound later.
//!
//! Unwinders use one base address per image, so memory must have the same layout as the file. The image of an epoch has
//! all code that was alive in it, because call stacks contain code without samples.

use std::ops::Range;

use code_timeline::{CodeId, Timeline, Usage, epochs};

use super::arena::{ImageCode, Mapping, PlannedImage};
use super::extents::Extent;
use super::place::Place;

/// With more epochs than this, there is one image for all time: the size of the images would be all code times all
/// epochs.
const MANY: usize = 256;

/// The images of an arena, in the order of time; `None` if there would be too many, or if they would show and map more
/// than is `left`. Their size is subtracted from `left`.
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
        let shown =
            shown.into_iter().map(|(visible, code)| ImageCode { visible, moved_by: 0, code });
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
