//! What is to be mapped where and when: arenas, their images, and the mapping events that show them.
//!
//! An **arena** is a stretch of one process's memory with its code. Within it, an **extent** is a
//! run of code without a gap to speak of: only extents are mapped, since what lies between them is
//! not ours.
//!
//! An arena is shown by one image, in which code that followed other code at its address has a
//! place of its own ([`mod@relocated`]). Where the recording holds copies of stacks, which are unwound
//! later, that will not do: unwinders want all of an image mapped by one rule. Then there is an
//! image for each span of time ([`mod@epochs`]).

mod arena;
mod epochs;
mod extents;
mod mask;
mod place;
mod relocated;
mod restore;
mod uncovered;

use std::collections::BTreeMap;
use std::ops::Range;

use code_timeline::LifeId;

use super::address_space::{AddressSpaces, Runs};
use super::attribution::SampleAttribution;
use super::code_table::CodeTable;
use super::limits::{IN_EPOCHS, RESTORED};
use super::recording::Recording;
use super::recording_index::RecordingIndex;
use super::sources::Codes;
use crate::Warning;
use crate::heavy::{self, Heavy};

pub use arena::{Arena, Mapping, PlannedImage, Shown};
use extents::Extent;
pub(crate) use mask::Mask;
pub use place::Place;
use uncovered::Uncovered;

/// All that is to be put into a recording.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Plan {
    /// The arenas of all processes, by life and address.
    pub arenas: Vec<Arena>,
    /// What hides code before its time.
    pub(crate) masks: Vec<Mask>,
    /// How many arenas have one image though stacks in them are to be unwound later.
    pub crowded: usize,
    /// How many codes are shown in parts, as what is around them is too large for one image.
    pub torn: usize,
    /// Whether files were mapped over code more often than is followed.
    pub hidden: bool,
    /// How many parts of code are not shown, as there is too much to be said of each.
    pub heavy: usize,
    /// What is left of the recording's own mappings.
    pub(crate) uncovered: Uncovered,
}

/// How the code of each life lies, whatever was seen running: by life.
#[derive(Debug)]
pub struct CodeLayout(Vec<SpaceLayout>);

#[derive(Debug)]
struct SpaceLayout {
    /// By address.
    extents: Vec<Extent>,
    /// How many codes the extents' ends go through.
    torn: usize,
    /// What is at the bottom of each arena's image, where there is one for all time.
    base_layers: Vec<relocated::BaseLayer>,
}

impl CodeLayout {
    /// How the code in `table` lies.
    pub fn compute(index: &RecordingIndex, spaces: &AddressSpaces, table: &CodeTable<'_>) -> Self {
        let space = |(life, timeline)| {
            let extents = extents::extents(index, spaces, table, life, timeline);
            let torn = extents::torn(&extents, timeline);
            let mut base_layers = Vec::new();
            if !index.stack_copies {
                let spans = extents::arenas(&extents).into_iter().map(span_of);
                base_layers.extend(spans.map(|span| relocated::base_layer(timeline, table, &span)));
            }
            SpaceLayout { extents, torn, base_layers }
        };
        Self(table.history.timelines().map(space).collect())
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
    /// Plans images for all code that was found.
    #[must_use]
    pub fn compute(
        recording: &Recording,
        codes: &Codes<'_>,
        attribution: &SampleAttribution,
    ) -> Self {
        let Recording { index, spaces, .. } = recording;
        let layout = CodeLayout::compute(index, spaces, &codes.table);
        Self::with_layout(index, spaces, &codes.table, attribution, layout)
    }

    /// The same for code that lies as `layout` says.
    pub(crate) fn with_layout(
        index: &RecordingIndex,
        spaces: &AddressSpaces,
        table: &CodeTable<'_>,
        attribution: &SampleAttribution,
        layout: CodeLayout,
    ) -> Self {
        let mut plan = Self::default();
        let mut extents_of = BTreeMap::new();
        let mut in_epochs = table.history.len().saturating_mul(32).max(IN_EPOCHS);
        let mut restored = index.maps.len().saturating_mul(16).saturating_add(RESTORED);
        let mut runs = Runs::default();
        for ((life, timeline), space) in table.history.timelines().zip(layout.0) {
            let arenas = extents::arenas(&space.extents);
            let mut base_layers = space.base_layers.into_iter();
            let first = plan.arenas.len();
            let usage = |code| attribution.usage(life, code);
            for extents in arenas {
                let span = span_of(extents);
                let by_epoch = index
                    .stack_copies
                    .then(|| epochs::images(timeline, &span, extents, usage, &mut in_epochs));
                plan.crowded += usize::from(matches!(by_epoch, Some(None)));
                let images = by_epoch.flatten().unwrap_or_else(|| {
                    let base_layer = base_layers
                        .next()
                        .unwrap_or_else(|| relocated::base_layer(timeline, table, &span));
                    vec![relocated::image(timeline, table, &span, extents, base_layer, usage)]
                });
                plan.arenas.push(Arena { life, span, images });
            }
            let limits = (&mut runs, &mut restored);
            let arenas = &mut plan.arenas[first..];
            plan.hidden |=
                restore::restore(index, spaces, timeline, &space.extents, arenas, usage, limits);
            plan.torn += space.torn;
            extents_of.insert(life, space.extents);
        }
        plan.masks = mask::masks(index, table, attribution, &extents_of, &mut plan.arenas);
        plan.uncovered = Uncovered::compute(index, spaces, table, &extents_of, &mut runs);
        plan.leave_out_heavy(table);
        plan
    }

    /// Leaves out parts of code of which images would say too much.
    fn leave_out_heavy(&mut self, table: &CodeTable<'_>) {
        let images = || self.arenas.iter().flat_map(|arena| &arena.images);
        let shown = images().flat_map(|image| &image.shown);
        let parts = shown.map(|shown| table.weight(shown.code).0).fold(0, u64::saturating_add);
        if heavy::fits(parts, table.bytes()) {
            return;
        }
        let mut heavy = Heavy::default();
        for image in self.arenas.iter_mut().flat_map(|arena| &mut arena.images) {
            image.shown.retain(|shown| {
                let (weight, number) = table.weight(shown.code);
                heavy.is_shown(weight, number)
            });
        }
        self.heavy = heavy.left_out;
    }

    /// What is not shown as it should be.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if self.crowded > 0 {
            warnings.push(Warning::TooManyEpochs);
        }
        if self.heavy > 0 {
            warnings.push(Warning::PartsLeftOut { parts: self.heavy });
        }
        if self.hidden || self.uncovered.crowded > 0 {
            warnings.push(Warning::MappedOverTooOften);
        }
        if self.torn > 0 {
            warnings.push(Warning::Torn { codes: self.torn });
        }
        warnings
    }

    /// The arenas of one life.
    pub(crate) fn arenas_of(&self, life: LifeId) -> &[Arena] {
        let first = self.arenas.partition_point(|arena| arena.life < life);
        let behind = &self.arenas[first..];
        &behind[..behind.partition_point(|arena| arena.life == life)]
    }
}
