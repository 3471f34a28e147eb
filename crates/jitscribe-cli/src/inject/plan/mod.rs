//! What is to be mapped where and when: arenas, their images, and the mapping events that show them.
//!
//! An **arena** is a stretch of one process's memory with its code. Within it, an **extent** is a
//! run of code without a gap to speak of: only extents are mapped, since what lies between them is
//! not ours.
//!
//! An arena is shown by one image, in which code that followed other code at its address has a
//! place of its own ([`mod@homes`]). Where the recording holds copies of stacks, which are unwound
//! later, that will not do: unwinders want all of an image mapped by one rule. Then there is an
//! image for each span of time ([`mod@epochs`]).

mod epochs;
mod extents;
mod homes;
mod restore;
mod veil;

use std::collections::BTreeMap;
use std::ops::Range;

use code_timeline::{CodeId, LifeId, ranges};

use super::address_space::AddressSpaces;
use super::codes::CodeBook;
use super::survey::{MapEvent, Ordinal, Survey};
use super::weigh::Weights;

use extents::Extent;
pub use veil::Veil;

/// Where in the stream of events something is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Before the first event.
    First,
    /// Right behind this event, with its time.
    After(Ordinal, u64),
    /// In order of time.
    At(u64),
}

impl Place {
    /// Right behind the event of a mapping.
    fn behind(map: &MapEvent) -> Self {
        Self::After(map.ordinal, map.time)
    }

    /// From when on it holds.
    pub fn time(self) -> u64 {
        match self {
            Self::After(_, time) | Self::At(time) => time,
            Self::First => 0,
        }
    }

    /// The time that the event is given. Of events with one time, readers take that first which
    /// comes first in the file, and what goes by time is put behind the samples of its time.
    pub fn time_of_event(self) -> u64 {
        match self {
            Self::At(time) => time.saturating_sub(1),
            Self::First | Self::After(..) => self.time(),
        }
    }

    /// Whether readers see this before the mapping `map`. They go by time: the order of events in
    /// the file is that of the CPUs' buffers.
    fn precedes(self, map: &MapEvent) -> bool {
        let ordinal = match self {
            Self::After(ordinal, _) => ordinal,
            Self::First | Self::At(_) => 0,
        };
        (self.time(), ordinal) < (map.time, map.ordinal)
    }
}

/// Code, or a part of it, that an image shows.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The addresses in the image. They are the process's own, unless the code had to give way.
    pub visible: Range<u64>,
    /// How far from the process's own addresses that is.
    pub moved_by: u64,
    /// Whose code it is.
    pub code: CodeId,
}

impl Shown {
    /// The addresses in the process.
    fn range(&self) -> Range<u64> {
        self.visible.start - self.moved_by..self.visible.end - self.moved_by
    }

    /// Maps it at `place`.
    fn mapped(&self, place: Place) -> Mapping {
        Mapping { range: self.range(), moved_by: self.moved_by, place }
    }
}

/// A mapping of an image.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// The addresses in the process.
    pub range: Range<u64>,
    /// How far behind them those of the image are.
    pub moved_by: u64,
    /// Where in the stream.
    pub place: Place,
}

/// One image to be written, and where it is to be mapped.
#[derive(Debug)]
pub struct PlannedImage {
    /// The span of its addresses.
    pub span: Range<u64>,
    /// What it shows, by address.
    pub shown: Vec<Shown>,
    /// How it is mapped; those of one time in their order.
    pub mappings: Vec<Mapping>,
    /// Until when it is the one that shows its arena.
    until: u64,
}

/// A stretch of one process's memory with its code.
#[derive(Debug)]
pub struct Arena {
    /// Whose memory.
    pub life: LifeId,
    /// From the first code to the end of the last.
    pub span: Range<u64>,
    /// Its images, in the order of time.
    pub images: Vec<PlannedImage>,
}

/// All that is to be put into a recording.
#[derive(Debug, Default)]
pub struct Plan {
    /// The arenas of all processes.
    pub arenas: Vec<Arena>,
    /// What hides code before its time.
    pub veils: Vec<Veil>,
    /// How many arenas have one image though stacks in them are to be unwound later.
    pub crowded: usize,
    /// How many codes are shown in parts, as what is around them is too large for one image.
    pub torn: usize,
    /// The extents of each life, by address.
    extents: BTreeMap<LifeId, Vec<Extent>>,
}

/// How the code of each life lies, whatever was seen running: by life.
#[derive(Debug)]
pub struct Grounds(Vec<Ground>);

#[derive(Debug)]
struct Ground {
    /// By address.
    extents: Vec<Extent>,
    /// How many codes the extents' ends go through.
    torn: usize,
    /// What is at the bottom of each arena's image, where there is one for all time.
    below: Vec<homes::Below>,
}

impl Grounds {
    /// How the code in `book` lies.
    pub fn of(survey: &Survey, spaces: &AddressSpaces, book: &CodeBook<'_>) -> Self {
        let ground = |(life, timeline)| {
            let extents = extents::extents(survey, spaces, life, timeline);
            let torn = extents::torn(&extents, timeline);
            let mut below = Vec::new();
            if !survey.stack_copies {
                let spans = extents::arenas(&extents).into_iter().map(span_of);
                below.extend(spans.map(|span| homes::below(timeline, book, &span)));
            }
            Ground { extents, torn, below }
        };
        Self(book.timelines().map(ground).collect())
    }
}

/// From the first of some extents to the end of the last.
fn span_of(extents: &[Extent]) -> Range<u64> {
    match extents {
        [] => 0..0,
        [first, ..] => first.range.start..extents[extents.len() - 1].range.end,
    }
}

impl Plan {
    /// Plans images for all code in `book`, which lies as `grounds` say.
    pub fn of(
        survey: &Survey,
        spaces: &AddressSpaces,
        book: &CodeBook<'_>,
        weights: &Weights,
        grounds: Grounds,
    ) -> Self {
        let mut plan = Self::default();
        for ((life, timeline), ground) in book.timelines().zip(grounds.0) {
            let arenas = extents::arenas(&ground.extents);
            let mut below = ground.below.into_iter();
            for extents in arenas {
                let span = span_of(extents);
                let usage = |code| weights.usage(life, code);
                let by_epoch =
                    survey.stack_copies.then(|| epochs::images(timeline, &span, extents, usage));
                plan.crowded += usize::from(matches!(by_epoch, Some(None)));
                let mut images = by_epoch.flatten().unwrap_or_else(|| {
                    let below = below.next().unwrap_or_else(|| homes::below(timeline, book, &span));
                    vec![homes::image(timeline, book, &span, extents, below, usage)]
                });
                restore::restore(survey, spaces, life, timeline, extents, &mut images, usage);
                plan.arenas.push(Arena { life, span, images });
            }
            plan.torn += ground.torn;
            plan.extents.insert(life, ground.extents);
        }
        plan.veils = veil::veils(survey, book, weights, &plan.extents, &mut plan.arenas);
        plan
    }

    /// What is left of a mapping where images show what it holds: all of it, if no image was
    /// mapped there when it came; nothing, if it only says once more what was known.
    ///
    /// A file's mapping is left whole or taken out: where it says something new, it lies above the
    /// images.
    pub fn uncovered(
        &self,
        survey: &Survey,
        spaces: &AddressSpaces,
        map: &MapEvent,
    ) -> Vec<Range<u64>> {
        let mut holes = Vec::new();
        let (mut life, mut time) = (map.life, map.time);
        loop {
            if let Some(extents) = self.extents.get(&life) {
                let shown = extents::within(extents, &map.range)
                    .iter()
                    .filter(|extent| extent.place.precedes(map) && extent.place.time() <= time);
                holes.extend(shown.map(|extent| extent.range.clone()));
                break;
            }
            // A child without code of its own sees its parent's through the mappings it inherits.
            match survey.processes.parent(life) {
                Some((parent, forked)) if forked <= time => {
                    (life, time) = (parent, forked.saturating_sub(1));
                }
                _ => break,
            }
        }
        if !holes.is_empty() && spaces.repeats(survey, map) {
            Vec::new()
        } else if map.anonymous {
            ranges::subtract(&map.range, &holes)
        } else {
            vec![map.range.clone()]
        }
    }
}
