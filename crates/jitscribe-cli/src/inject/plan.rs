//! What is to be mapped where and when: arenas, their epochs, and the mapping events that show them.
//!
//! An **arena** is a stretch of one process's memory with its code; it is shown by one image an
//! epoch. Within it, an **extent** is a run of code without a gap to speak of: only extents are
//! mapped, since what lies between them is not ours.

use std::collections::BTreeMap;
use std::ops::Range;

use code_timeline::{CodeId, Epoch, LifeId, Timeline, epochs, ranges};

use super::address_space::AddressSpaces;
use super::codes::CodeBook;
use super::survey::{MapEvent, Ordinal, Survey};
use super::weigh::Weights;

/// Code that lies apart by less than this is one extent: alignment and constants between functions.
const EXTENT_GAP: u64 = 4096;

/// Extents that lie apart by less than this share an arena.
const ARENA_GAP: u64 = 16 << 20;

/// An arena is not larger than this: offsets within an image must fit into 31 bits, with room for
/// the unwind tables.
const ARENA_SPAN: u64 = 1 << 30;

/// Images of all epochs hold all code that was alive, as long as that takes no more than this many
/// times the memory of one; then each holds the code that was seen running in its epoch.
const GENEROUS_EPOCHS: usize = 4;

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
    /// The time that the event is given.
    pub fn time(self) -> u64 {
        match self {
            Self::After(_, time) | Self::At(time) => time,
            Self::First => 0,
        }
    }
}

/// A run of code.
#[derive(Clone, Debug)]
pub struct Extent {
    /// The addresses.
    pub range: Range<u64>,
    /// Where it is first mapped: behind what else was mapped there before its first code came.
    pub place: Place,
}

/// One image to be written, and where it is to be mapped.
#[derive(Debug)]
pub struct PlannedImage {
    /// The span of time that it shows.
    pub epoch: Epoch,
    /// Who is shown where, by address.
    pub visible: Vec<(Range<u64>, CodeId)>,
    /// Which addresses are mapped to it, and where in the stream.
    pub mappings: Vec<(Range<u64>, Place)>,
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
    /// The extents of each life, by address.
    extents: BTreeMap<LifeId, Vec<Extent>>,
}

impl Plan {
    /// Plans images for all code in `book`.
    pub fn of(
        survey: &Survey,
        spaces: &AddressSpaces,
        book: &CodeBook<'_>,
        weights: &Weights,
    ) -> Self {
        let mut plan = Self::default();
        for (life, timeline) in book.timelines() {
            let extents = extents(survey, spaces, life, timeline);
            let arenas = extents.chunk_by(|a, b| b.range.start - a.range.end < ARENA_GAP);
            for extents in arenas.flat_map(split_by_span) {
                plan.arenas.push(arena(survey, life, timeline, extents, weights));
            }
            plan.extents.insert(life, extents);
        }
        plan
    }

    /// What is left of an anonymous mapping where images show what it holds: all of it, if no
    /// image was mapped there when it came.
    pub fn uncovered(&self, survey: &Survey, map: &MapEvent) -> Vec<Range<u64>> {
        let mut holes = Vec::new();
        let (mut life, mut place) = (map.life, Place::After(map.ordinal, map.time));
        loop {
            if let Some(extents) = self.extents.get(&life) {
                let before =
                    |extent: &&Extent| extent.place < place && extent.place.time() <= place.time();
                let first = extents.partition_point(|extent| extent.range.end <= map.range.start);
                let behind = extents[first..].iter();
                let within = behind.take_while(|extent| extent.range.start < map.range.end);
                holes.extend(within.filter(before).map(|extent| extent.range.clone()));
                break;
            }
            // A child without code of its own sees its parent's through the mappings it inherits.
            match survey.processes.parent(life) {
                Some((parent, forked)) if forked <= place.time() => {
                    (life, place) = (parent, Place::At(forked.saturating_sub(1)));
                }
                _ => break,
            }
        }
        ranges::subtract(&map.range, &holes)
    }
}

/// The runs of code in one process, by address.
fn extents(
    survey: &Survey,
    spaces: &AddressSpaces,
    life: LifeId,
    timeline: &Timeline,
) -> Vec<Extent> {
    let files = spaces.files(life);
    let code = timeline.pieces().iter().map(|piece| piece.range.clone());
    // What lies between code inside a file's mapping (the builtins that V8 has in its own
    // executable) is that file's.
    let runs = ranges::merge(code, |gap| {
        gap.end - gap.start < EXTENT_GAP && ranges::overlapping(files, &gap).is_empty()
    });

    let mut first_load = vec![u64::MAX; runs.len()];
    for piece in timeline.pieces() {
        let run = runs.partition_point(|run| run.end <= piece.range.start);
        first_load[run] = first_load[run].min(piece.since);
    }
    let (began, ordinal) = survey.begin(life);
    let begin = ordinal.map_or(Place::First, |ordinal| Place::After(ordinal, began));
    let mut places = vec![begin; runs.len()];
    // In the order of time, so that the last one stays.
    for map in survey.maps_of(life) {
        let first = runs.partition_point(|run| run.end <= map.range.start);
        let count = runs[first..].partition_point(|run| run.start < map.range.end);
        for run in first..first + count {
            if map.time <= first_load[run] {
                places[run] = Place::After(map.ordinal, map.time);
            }
        }
    }
    let with_place = runs.into_iter().zip(places);
    with_place.map(|(range, place)| Extent { range, place }).collect()
}

/// Cuts a run of extents where it would span more than one image can.
fn split_by_span(extents: &[Extent]) -> Vec<&[Extent]> {
    let mut parts = Vec::new();
    let mut rest = extents;
    while let Some(first) = rest.first() {
        let limit = first.range.start.saturating_add(ARENA_SPAN);
        let count = rest.partition_point(|extent| extent.range.end <= limit).max(1);
        let (part, behind) = rest.split_at(count);
        parts.push(part);
        rest = behind;
    }
    parts
}

fn arena(
    survey: &Survey,
    life: LifeId,
    timeline: &Timeline,
    extents: &[Extent],
    weights: &Weights,
) -> Arena {
    let span = extents[0].range.start..extents[extents.len() - 1].range.end;
    let usage = |code| weights.usage(life, code);
    let cuts = epochs::cut(timeline, &span, usage);
    // Stacks that are unwound later pass through code that no sample names.
    let everything = survey.stack_copies || cuts.len() <= GENEROUS_EPOCHS;
    let mut images: Vec<PlannedImage> = Vec::with_capacity(cuts.len());
    for epoch in cuts {
        let visible = epochs::visible(timeline, &span, &epoch, everything, usage);
        let shows = |range: &Range<u64>| {
            let first = visible.partition_point(|(shown, _)| shown.end <= range.start);
            visible.get(first).is_some_and(|(shown, _)| shown.start < range.end)
        };
        let mapped = extents.iter().filter_map(|extent| {
            let place = if epoch.from <= extent.place.time() {
                extent.place
            } else {
                Place::At(epoch.from)
            };
            let now = images.is_empty() || shows(&extent.range);
            (now && place.time() < epoch.until).then(|| (extent.range.clone(), place))
        });
        let mappings = mapped.collect();
        images.push(PlannedImage { epoch, visible, mappings });
    }
    restore(survey, life, extents, &mut images, weights);
    Arena { life, span, images }
}

/// Maps anew what a file's mapping hides of code that was seen running after it.
///
/// A runtime that changes the protection of its own executable makes perf see it mapped once more,
/// over the code that the dump knows there; and code may come to where a library was.
fn restore(
    survey: &Survey,
    life: LifeId,
    extents: &[Extent],
    images: &mut [PlannedImage],
    weights: &Weights,
) {
    for map in survey.maps_of(life).filter(|map| !map.anonymous) {
        let first = extents.partition_point(|extent| extent.range.end <= map.range.start);
        let hit = extents[first..]
            .iter()
            .take_while(|extent| extent.range.start < map.range.end)
            .any(|extent| extent.place < Place::After(map.ordinal, map.time));
        if !hit {
            continue;
        }
        for image in images.iter_mut().filter(|image| map.time < image.epoch.until) {
            let place = if image.epoch.from <= map.time {
                Place::After(map.ordinal, map.time)
            } else {
                // Later epochs map all of their extents by themselves.
                break;
            };
            let first = image.visible.partition_point(|(shown, _)| shown.end <= map.range.start);
            let hidden = image.visible[first..]
                .iter()
                .take_while(|(shown, _)| shown.start < map.range.end)
                .filter(|(_, code)| weights.usage(life, *code).is_some_and(|u| u.last >= map.time));
            image.mappings.extend(hidden.map(|(shown, _)| (shown.clone(), place)));
        }
    }
}
