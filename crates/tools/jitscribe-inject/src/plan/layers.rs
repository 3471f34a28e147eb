//! Images for all time, in layers: code that followed other code at its address is in another image.
//!
//! The first sampled code at an address is in the first image, the next one there in the second, and so on; each is mapped when it was
//! loaded. So every piece of code has one place in one file, however often it was replaced, and one row in a profile. In all images,
//! addresses are those in the process: some readers (hotspot) know one base address for each file.

use std::ops::Range;

use code_timeline::ranges::Canvas;
use code_timeline::{CodeId, Epoch, Timeline, Usage, epochs, ranges};

use super::arena::{ImageCode, Mapping, PlannedImage};
use super::extents::{Extent, base_of};
use super::place::Place;
use crate::codes::code_table::CodeTable;

/// Number of layers. Code that would need another one is relocated: it is in the last layer, behind the arena, and mapped from there.
/// perf reads that rightly.
const MOST: usize = 16;
/// Relocated code begins at multiples of this.
const ALIGNMENT: u64 = 16;

/// Code with samples.
struct SampledPiece {
    code: CodeId,
    range: Range<u64>,
    since: u64,
    usage: Usage,
    layer: usize,
    /// The time from which on it is mapped, if it is not in the first layer.
    from: u64,
    moved_by: u64,
}

/// What is below the sampled code in the first layer: all code of the arena, later code above earlier code, by address.
#[derive(Debug)]
pub enum BaseLayer {
    /// No address ever had two codes: one layer is enough, whatever was sampled.
    All(Vec<ImageCode>),
    /// Sampled code is above.
    Some(Vec<(Range<u64>, CodeId)>),
}

/// Computes the base layer of an arena.
pub fn base_layer(timeline: &Timeline, table: &CodeTable<'_>, span: &Range<u64>) -> BaseLayer {
    if timeline.is_flat()
        && let Some(all) = each_whole(timeline, table, span)
    {
        return BaseLayer::All(all);
    }
    let all_time = Epoch { from: 0, until: u64::MAX };
    BaseLayer::Some(epochs::visible(timeline, span, &all_time, true, |_| None))
}

/// The pieces of the arena, if each is a whole code.
fn each_whole(
    timeline: &Timeline,
    table: &CodeTable<'_>,
    span: &Range<u64>,
) -> Option<Vec<ImageCode>> {
    let pieces = timeline.pieces();
    let first = pieces.partition_point(|piece| piece.range.end <= span.start);
    let count = pieces[first..].partition_point(|piece| piece.range.start < span.end);
    let mut shown = Vec::with_capacity(count);
    for piece in &pieces[first..first + count] {
        let range = &piece.range;
        let is_whole = *range == table.history.code(piece.code).range();
        if !is_whole || range.start < span.start || range.end > span.end {
            return None;
        }
        shown.push(ImageCode { visible: range.clone(), moved_by: 0, code: piece.code });
    }
    Some(shown)
}

/// The images of an arena with the base layer `base`.
pub fn images(
    timeline: &Timeline,
    table: &CodeTable<'_>,
    span: &Range<u64>,
    extents: &[Extent],
    base: BaseLayer,
    usage: impl Fn(CodeId) -> Option<Usage>,
) -> Vec<PlannedImage> {
    let image =
        |shown, mappings| PlannedImage { span: span.clone(), shown, mappings, until: u64::MAX };
    let in_place = extents.iter().map(|extent| Mapping {
        range: extent.range.clone(),
        moved_by: 0,
        place: extent.place,
    });
    let base = match base {
        BaseLayer::All(shown) => return vec![image(shown, in_place.collect())],
        BaseLayer::Some(base) => base,
    };
    let mut sampled = sampled_codes(timeline, table, span, usage);
    let mut end = span.end;
    let later = match by_address(&sampled) {
        Some(on_top) => return vec![image(shown_over(&base, on_top), in_place.collect())],
        None => assign_layers(&mut sampled, extents, &mut end),
    };

    // Completely, so that offsets count from the code's beginning: code that replaces a part of it is mapped over it.
    let mut on_top = Canvas::new();
    for first in sampled.iter().filter(|sampled| sampled.layer == 0) {
        on_top.paint(first.range.clone(), first.code);
    }
    let first = image(shown_over(&base, on_top.visible()), in_place.collect());
    let mut layers = vec![first];
    for (number, place) in later {
        let SampledPiece { code, ref range, layer, moved_by, .. } = sampled[number];
        if layers.len() <= layer {
            layers.resize_with(layer + 1, || image(Vec::new(), Vec::new()));
        }
        let visible = range.start + moved_by..range.end + moved_by;
        let shown = ImageCode { visible, moved_by, code };
        layers[layer].mappings.push(shown.mapped(place));
        layers[layer].shown.push(shown);
    }
    for layer in &mut layers[1..] {
        layer.shown.sort_unstable_by_key(|shown| shown.visible.start);
        let ends = layer.shown.iter().map(|shown| shown.visible.end);
        layer.span.end = ends.max().unwrap_or(0).max(span.end);
    }
    layers
}

/// The base layer, with sampled code above.
fn shown_over(
    base: &[(Range<u64>, CodeId)],
    on_top: impl IntoIterator<Item = (Range<u64>, CodeId)>,
) -> Vec<ImageCode> {
    let mut shown: Vec<ImageCode> = Vec::with_capacity(base.len());
    ranges::overlay(base, on_top, |visible, code| match shown.last_mut() {
        Some(last) if last.code == code && last.visible.end == visible.start => {
            last.visible.end = visible.end;
        }
        _ => shown.push(ImageCode { visible, moved_by: 0, code }),
    });
    shown
}

/// The sampled codes by address, if no two share an address, which is the usual case.
fn by_address(sampled: &[SampledPiece]) -> Option<Vec<(Range<u64>, CodeId)>> {
    let mut placed: Vec<_> =
        sampled.iter().map(|sampled| (sampled.range.clone(), sampled.code)).collect();
    placed.sort_unstable_by_key(|(range, _)| range.start);
    placed.is_sorted_by(|(a, _), (b, _)| a.end <= b.start).then_some(placed)
}

/// Assigns each code to the layer above all code that ran at its addresses before. Returns the numbers of those that are not in the
/// first layer, and where each is mapped. Code that would need too many layers is relocated to addresses behind `end`.
fn assign_layers(
    sampled: &mut [SampledPiece],
    extents: &[Extent],
    end: &mut u64,
) -> Vec<(usize, Place)> {
    let mut later = Vec::new();
    // The last code at each address so far. Its layer is the highest there.
    let mut latest: Canvas<usize> = Canvas::new();
    for number in 0..sampled.len() {
        let new = &sampled[number];
        let range = new.range.clone();
        let below = latest.under(&range).map(|old| sampled[old].layer).max();
        if let Some(below) = below {
            let old = latest.under(&range).map(|old| sampled[old].usage.last);
            let last_of_old = old.filter(|&last| last < new.usage.first).max();
            let from = epochs::between(last_of_old, new.since, new.usage.first);
            // What is mapped over something must be mapped later: the other may have been delayed by a third code's samples.
            let below_from = latest.under(&range).map(|old| sampled[old].from).max().unwrap_or(0);
            let from = from.max(below_from.min(new.usage.first));
            let place = match base_of(extents, &range) {
                // Not before the arena's first mapping.
                Some(base) if from <= base.time() => base,
                _ => Place::At(from),
            };
            let new = &mut sampled[number];
            new.from = place.time();
            new.layer = below + 1;
            if new.layer >= MOST {
                // At the end of the address space, there may be no space.
                let place = end.checked_next_multiple_of(ALIGNMENT);
                let place = place.and_then(|at| Some(at..at.checked_add(range.end - range.start)?));
                let Some(new_range) = place else { continue };
                new.layer = MOST - 1;
                new.moved_by = new_range.start - range.start;
                *end = new_range.end;
            }
            later.push((number, place));
        }
        latest.paint(range, number);
    }
    later
}

/// The sampled codes in the arena, in the order of time.
fn sampled_codes(
    timeline: &Timeline,
    table: &CodeTable<'_>,
    span: &Range<u64>,
    usage: impl Fn(CodeId) -> Option<Usage>,
) -> Vec<SampledPiece> {
    let mut sampled: Vec<SampledPiece> = Vec::new();
    let pieces = timeline.pieces_over(span).iter();
    for piece in pieces.filter(|piece| ranges::overlap(&piece.range, span)) {
        let Some(usage) = usage(piece.code) else { continue };
        let whole = table.history.code(piece.code).range();
        let range = whole.start.max(span.start)..whole.end.min(span.end);
        let (code, since) = (piece.code, piece.since);
        sampled.push(SampledPiece { code, range, since, usage, layer: 0, from: 0, moved_by: 0 });
    }
    // Of a code in several pieces, keep the earliest.
    sampled.sort_unstable_by_key(|sampled| (sampled.code, sampled.since));
    sampled.dedup_by_key(|sampled| sampled.code);
    sampled.sort_by_key(|sampled| (sampled.since, table.history.order(sampled.code)));
    sampled
}
