//! One image for all time: code that followed other code at its address is relocated.
//!
//! The first sampled code at an address is shown at that address. Code that ran there later is shown behind the arena,
//! and mapped from there when it was loaded. So every piece of code has one place in one file, however often it was
//! replaced, and one row in a profile.

use std::ops::Range;

use code_timeline::ranges::Canvas;
use code_timeline::{CodeId, Epoch, Timeline, Usage, epochs, ranges};

use super::arena::{ImageCode, Mapping, PlannedImage};
use super::extents::{Extent, base_of};
use super::place::Place;
use crate::code_table::CodeTable;

/// Relocated code begins at multiples of this.
const ALIGNMENT: u64 = 16;

/// Code with samples.
struct SampledPiece {
    code: CodeId,
    range: Range<u64>,
    since: u64,
    usage: Usage,
    moved_by: u64,
}

/// The base layer of an image: all code of the arena, later code above earlier code, by address.
#[derive(Debug)]
pub enum BaseLayer {
    /// No address ever had two codes: nothing is relocated, whatever was sampled.
    All(Vec<ImageCode>),
    /// Sampled code is above.
    Some(Vec<(Range<u64>, CodeId)>),
}

/// Computes the base layer of the image of an arena.
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

/// The image of an arena with the base layer `base`.
pub fn image(
    timeline: &Timeline,
    table: &CodeTable<'_>,
    span: &Range<u64>,
    extents: &[Extent],
    base: BaseLayer,
    usage: impl Fn(CodeId) -> Option<Usage>,
) -> PlannedImage {
    let in_place = extents.iter().map(|extent| Mapping {
        range: extent.range.clone(),
        moved_by: 0,
        place: extent.place,
    });
    let mut mappings: Vec<Mapping> = in_place.collect();
    let base = match base {
        BaseLayer::All(shown) => {
            return PlannedImage { span: span.clone(), shown, mappings, until: u64::MAX };
        }
        BaseLayer::Some(base) => base,
    };
    let mut sampled = sampled_codes(timeline, table, span, usage);

    let mut end = span.end;
    let on_top = by_address(&sampled)
        .unwrap_or_else(|| relocate(&mut sampled, extents, &mut mappings, &mut end));

    let mut shown: Vec<ImageCode> = Vec::with_capacity(base.len());
    ranges::overlay(&base, on_top, |visible, code| match shown.last_mut() {
        Some(last) if last.code == code && last.visible.end == visible.start => {
            last.visible.end = visible.end;
        }
        _ => shown.push(ImageCode { visible, moved_by: 0, code }),
    });
    shown.extend(sampled.iter().filter(|sampled| sampled.moved_by != 0).map(|sampled| ImageCode {
        visible: sampled.range.start + sampled.moved_by..sampled.range.end + sampled.moved_by,
        moved_by: sampled.moved_by,
        code: sampled.code,
    }));
    PlannedImage { span: span.start..end, shown, mappings, until: u64::MAX }
}

/// The sampled codes by address, if no two share an address, which is the usual case.
fn by_address(sampled: &[SampledPiece]) -> Option<Vec<(Range<u64>, CodeId)>> {
    let mut placed: Vec<_> =
        sampled.iter().map(|sampled| (sampled.range.clone(), sampled.code)).collect();
    placed.sort_unstable_by_key(|(range, _)| range.start);
    placed.is_sorted_by(|(a, _), (b, _)| a.end <= b.start).then_some(placed)
}

/// Relocates code that replaced other code to addresses behind `end`, and maps it from there. Returns the code that
/// stays, by address.
fn relocate(
    sampled: &mut [SampledPiece],
    extents: &[Extent],
    mappings: &mut Vec<Mapping>,
    end: &mut u64,
) -> Vec<(Range<u64>, CodeId)> {
    // What is mapped where so far, and what was mapped there first.
    let mut mapped: Canvas<usize> = Canvas::new();
    let mut in_place: Canvas<usize> = Canvas::new();
    for number in 0..sampled.len() {
        let new = &sampled[number];
        let range = new.range.clone();
        let followed = mapped.under(&range).next().is_some();
        let gives_way = in_place.under(&range).next().is_some();
        if followed {
            let old = mapped.under(&range).map(|old| sampled[old].usage.last);
            let last_of_old = old.filter(|&last| last < new.usage.first).max();
            let from = epochs::between(last_of_old, new.since, new.usage.first);
            let place = match base_of(extents, &range) {
                // Not before the arena's first mapping.
                Some(base) if from <= base.time() => base,
                _ => Place::At(from),
            };
            if gives_way {
                // At the end of the address space, there may be no space.
                let place = end.checked_next_multiple_of(ALIGNMENT);
                let place = place.and_then(|at| Some(at..at.checked_add(range.end - range.start)?));
                let Some(new_range) = place else { continue };
                sampled[number].moved_by = new_range.start - range.start;
                *end = new_range.end;
            }
            let moved_by = sampled[number].moved_by;
            mappings.push(Mapping { range: range.clone(), moved_by, place });
        }
        if !gives_way {
            in_place.paint(range.clone(), number);
        }
        mapped.paint(range, number);
    }

    // Completely, so that offsets count from the code's beginning: code that replaces a part of it is mapped over it.
    let mut on_top = Canvas::new();
    for number in in_place.visible().map(|(_, number)| number) {
        on_top.paint(sampled[number].range.clone(), sampled[number].code);
    }
    on_top.visible().collect()
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
        sampled.push(SampledPiece { code, range, since, usage, moved_by: 0 });
    }
    // Of a code in several pieces, keep the earliest.
    sampled.sort_unstable_by_key(|sampled| (sampled.code, sampled.since));
    sampled.dedup_by_key(|sampled| sampled.code);
    sampled.sort_by_key(|sampled| (sampled.since, table.history.order(sampled.code)));
    sampled
}
