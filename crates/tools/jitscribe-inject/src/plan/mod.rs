//! What is mapped where and when: arenas, their images, and the mapping events.
//!
//! An **arena** is a range of one process's memory with its code. Within it, an **extent** is a run of code without
//! large gaps. Only extents are mapped, since the gaps may belong to others.
//!
//! An arena is shown by one image; code that replaced other code at its address is in images of its own, the further [layers](mod@layers).
//! If the recording has copies of stacks that are unwound later, there is one image per [epoch](mod@epochs), because unwinders want one
//! image for all of the memory.
//!
//! In come the code table with its timelines, the mappings of the recording, and when each code was seen. Out goes a [`Plan`]:
//! the codes of each image, and the place of each mapping event in the recording.

mod arena;
mod epochs;
mod extents;
mod layers;
mod mask;
pub mod output_limits;
mod place;
mod restore;
mod uncovered;

use std::collections::BTreeMap;
use std::ops::Range;

use code_timeline::AddressSpaceId;
use jit_code::Kind;

use crate::Warning;
use crate::attribution::SampleAttribution;
use crate::codes::code_table::CodeTable;
use crate::codes::sources::Codes;
use crate::limits::{IN_EPOCHS, RESTORED};
use crate::recording::Recording;
use crate::recording::address_space::{AddressSpaces, Runs};
use crate::recording::recording_index::RecordingIndex;
use output_limits::{PartFilter, parts_fit};

pub use arena::{Arena, ImageCode, Mapping, PlannedImage};
use extents::Extent;
pub(crate) use mask::Mask;
pub use place::Place;
use uncovered::UncoveredRanges;

/// Images begin at multiples of this.
const PAGE: u64 = 4096;

/// Everything that is added to a recording.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Plan {
    /// The arenas of all processes, by address space and address.
    pub arenas: Vec<Arena>,
    /// Mappings that hide code before it is loaded.
    pub(crate) masks: Vec<Mask>,
    /// Number of arenas with layers although their stacks are unwound later.
    pub crowded: usize,
    /// Number of codes that are split, because the code around them is too large for one image.
    pub torn: usize,
    /// Whether files were mapped over code more often than the limit allows.
    pub hidden: bool,
    /// Number of parts of code that are left out, because their descriptions take too much space.
    pub parts_left_out: usize,
    /// The rest of the recording's own mappings.
    pub(crate) uncovered: UncoveredRanges,
}

/// The layout of the code of each address space, regardless of which code was seen running.
#[derive(Debug)]
pub struct CodeLayout(Vec<SpaceLayout>);

#[derive(Debug)]
struct SpaceLayout {
    /// By address.
    extents: Vec<Extent>,
    /// Number of codes that the extents' ends cut.
    torn: usize,
    /// The base layer of each arena, where images are for all time.
    base_layers: Vec<layers::BaseLayer>,
}

impl CodeLayout {
    /// Computes the layout of the code in `table`.
    pub fn compute(index: &RecordingIndex, spaces: &AddressSpaces, table: &CodeTable<'_>) -> Self {
        let layout_of = |(space, timeline)| {
            let extents = extents::extents(index, spaces, table, space, timeline);
            let torn = extents::torn(&extents, timeline);
            let mut base_layers = Vec::new();
            if !index.stack_copies {
                let spans = extents::arenas(&extents).into_iter().map(span_of);
                base_layers.extend(spans.map(|span| layers::base_layer(timeline, table, &span)));
            }
            SpaceLayout { extents, torn, base_layers }
        };
        Self(table.history.timelines().map(layout_of).collect())
    }
}

/// From the first extent's start to the last one's end.
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

    /// Like [`Self::compute`], with a known layout.
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
        // Code that may have been a caller makes many epochs, and all of its neighbours are in the image of each.
        let mut in_epochs_of_callers = in_epochs / 4;
        let mut restored = index.maps.len().saturating_mul(16).saturating_add(RESTORED);
        let mut runs = Runs::default();
        for ((space, timeline), mut space_layout) in table.history.timelines().zip(layout.0) {
            let usage = |code| attribution.usage(space, code);
            if index.stack_copies {
                // Only stacks refer to methods of Java, and most of them were never seen there.
                let is_shown = |code| table.kind(code) != Kind::JavaMethod || usage(code).is_some();
                space_layout.extents.retain(|extent| {
                    let pieces = timeline.pieces_over(&extent.range);
                    pieces.iter().any(|piece| is_shown(piece.code))
                });
            }
            let arenas = extents::arenas(&space_layout.extents);
            let mut base_layers = space_layout.base_layers.into_iter();
            let first = plan.arenas.len();
            for extents in arenas {
                let span = span_of(extents);
                let by_epoch = index.stack_copies.then(|| {
                    let on_stacks = |code| attribution.usage_on_stacks(space, code);
                    let left = &mut in_epochs_of_callers;
                    epochs::images(timeline, &span, extents, on_stacks, left)
                        .or_else(|| epochs::images(timeline, &span, extents, usage, &mut in_epochs))
                });
                plan.crowded += usize::from(matches!(by_epoch, Some(None)));
                let mut images = by_epoch.flatten().unwrap_or_else(|| {
                    let base_layer = base_layers
                        .next()
                        .unwrap_or_else(|| layers::base_layer(timeline, table, &span));
                    layers::images(timeline, table, &span, extents, base_layer, usage)
                });
                // Each has its own distance between addresses and offsets in the file: hotspot's reader takes files at the same distance for one
                // (perfsymboltable.cpp, `module`).
                for (image, pages) in images.iter_mut().zip(0..) {
                    image.span.start = image.span.start.saturating_sub(pages * PAGE);
                }
                plan.arenas.push(Arena { space, span, images });
            }
            let limits = (&mut runs, &mut restored);
            let arenas = &mut plan.arenas[first..];
            plan.hidden |= restore::restore(
                index,
                spaces,
                timeline,
                &space_layout.extents,
                arenas,
                usage,
                limits,
            );
            plan.torn += space_layout.torn;
            extents_of.insert(space, space_layout.extents);
        }
        plan.masks = mask::masks(index, table, attribution, &extents_of, &mut plan.arenas);
        plan.uncovered = UncoveredRanges::compute(index, spaces, table, &extents_of, &mut runs);
        plan.limit_parts(table);
        plan
    }

    /// Leaves out parts of code if the descriptions of all parts would take too much space.
    fn limit_parts(&mut self, table: &CodeTable<'_>) {
        let images = || self.arenas.iter().flat_map(|arena| &arena.images);
        let shown = images().flat_map(|image| &image.shown);
        let parts = shown.map(|shown| table.weight(shown.code).0).fold(0, u64::saturating_add);
        if parts_fit(parts, table.bytes()) {
            return;
        }
        let mut filter = PartFilter::default();
        for image in self.arenas.iter_mut().flat_map(|arena| &mut arena.images) {
            image.shown.retain(|shown| {
                let (weight, number) = table.weight(shown.code);
                filter.is_shown(weight, number)
            });
        }
        self.parts_left_out = filter.left_out;
    }

    /// Warnings about what is not shown correctly.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if self.crowded > 0 {
            warnings.push(Warning::TooManyEpochs);
        }
        if self.parts_left_out > 0 {
            warnings.push(Warning::PartsLeftOut { parts: self.parts_left_out });
        }
        if self.hidden || self.uncovered.crowded > 0 {
            warnings.push(Warning::MappedOverTooOften);
        }
        if self.torn > 0 {
            warnings.push(Warning::Torn { codes: self.torn });
        }
        warnings
    }

    /// The arenas of one address space.
    pub(crate) fn arenas_of(&self, space: AddressSpaceId) -> &[Arena] {
        let first = self.arenas.partition_point(|arena| arena.space < space);
        let behind = &self.arenas[first..];
        &behind[..behind.partition_point(|arena| arena.space == space)]
    }
}
