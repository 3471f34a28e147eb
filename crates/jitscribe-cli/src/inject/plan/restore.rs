//! Maps anew what a file's mapping hides of code that was seen running after it.
//!
//! A runtime may map its own executable once more, in another way, over the code that the dump knows
//! there; and code may come to where a library was. (What is mapped just as before is left out of the
//! recording, see [`Plan::uncovered`](super::Plan::uncovered).)

use std::collections::HashMap;

use code_timeline::{CodeId, LifeId, Timeline, Usage};

use super::extents::{Extent, within};
use super::{Place, PlannedImage};
use crate::inject::address_space::AddressSpaces;
use crate::inject::survey::{MapEvent, Survey};

/// Adds to `images` what files' mappings hide.
pub fn restore(
    survey: &Survey,
    spaces: &AddressSpaces,
    life: LifeId,
    timeline: &Timeline,
    extents: &[Extent],
    images: &mut [PlannedImage],
    usage: impl Fn(CodeId) -> Option<Usage>,
) {
    let hiding = |map: &&MapEvent| {
        let mut hit = within(extents, &map.range).iter();
        !map.anonymous
            && hit.any(|extent| extent.place.precedes(map))
            && !spaces.repeats(survey, map)
    };
    let mut maps = survey.maps_of(life).filter(hiding).peekable();
    if maps.peek().is_none() {
        return;
    }
    let mut since: HashMap<CodeId, u64> = HashMap::new();
    for piece in timeline.pieces() {
        let first = since.entry(piece.code).or_insert(piece.since);
        *first = piece.since.min(*first);
    }
    for map in maps {
        // Images of later epochs are mapped anew by themselves.
        let Some(image) = images.iter_mut().find(|image| map.time < image.until) else { continue };
        let mut hidden: Vec<(u64, _)> = Vec::new();
        for shown in &image.shown {
            let range = shown.range();
            let is_hit = range.start < map.range.end && map.range.start < range.end;
            if let Some(usage) = usage(shown.code).filter(|usage| is_hit && usage.last >= map.time)
            {
                let came = since.get(&shown.code).map_or(0, |&since| since.min(usage.first));
                let place = if came <= map.time { Place::behind(map) } else { Place::At(came) };
                hidden.push((came, shown.mapped(place)));
            }
        }
        hidden.sort_by_key(|(came, _)| *came);
        image.mappings.extend(hidden.into_iter().map(|(_, mapping)| mapping));
    }
}
