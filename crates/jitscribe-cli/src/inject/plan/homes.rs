//! One image for all time: code that followed other code at its address gets a home of its own.
//!
//! The first code seen running at an address is shown there. What ran there later is shown behind
//! the arena, and mapped from there when its time comes. So every piece of code has one place in
//! one file, however often it came and went, and a profile has one row for it.

use std::ops::Range;

use code_timeline::ranges::Canvas;
use code_timeline::{CodeId, Epoch, Timeline, Usage, epochs, ranges};

use super::extents::{Extent, base_of};
use super::{Mapping, Place, PlannedImage, Shown};
use crate::inject::codes::CodeBook;

/// Homes begin at multiples of this.
const ALIGNMENT: u64 = 16;

/// Code that was seen running.
struct Seen {
    code: CodeId,
    range: Range<u64>,
    since: u64,
    usage: Usage,
    moved_by: u64,
}

/// What lies at the bottom of an image: all code of the arena, the later above the earlier, by
/// address.
#[derive(Debug)]
pub enum Below {
    /// No address ever had two codes: nothing will lie above, whatever was seen running.
    All(Vec<Shown>),
    /// Code seen running lies above.
    Some(Vec<(Range<u64>, CodeId)>),
}

/// What lies at the bottom of the image of an arena.
pub fn below(timeline: &Timeline, book: &CodeBook<'_>, span: &Range<u64>) -> Below {
    if timeline.is_flat()
        && let Some(all) = each_whole(timeline, book, span)
    {
        return Below::All(all);
    }
    let all_time = Epoch { from: 0, until: u64::MAX };
    Below::Some(epochs::visible(timeline, span, &all_time, true, |_| None))
}

/// The pieces of the arena, if each is all of a code.
fn each_whole(timeline: &Timeline, book: &CodeBook<'_>, span: &Range<u64>) -> Option<Vec<Shown>> {
    let pieces = timeline.pieces();
    let first = pieces.partition_point(|piece| piece.range.end <= span.start);
    let count = pieces[first..].partition_point(|piece| piece.range.start < span.end);
    let mut shown = Vec::with_capacity(count);
    for piece in &pieces[first..first + count] {
        let range = &piece.range;
        let is_whole = *range == book.code(piece.code).range();
        if !is_whole || range.start < span.start || range.end > span.end {
            return None;
        }
        shown.push(Shown { visible: range.clone(), moved_by: 0, code: piece.code });
    }
    Some(shown)
}

/// The image of an arena, with `below` at its bottom.
pub fn image(
    timeline: &Timeline,
    book: &CodeBook<'_>,
    span: &Range<u64>,
    extents: &[Extent],
    below: Below,
    usage: impl Fn(CodeId) -> Option<Usage>,
) -> PlannedImage {
    let base = extents.iter().map(|extent| Mapping {
        range: extent.range.clone(),
        moved_by: 0,
        place: extent.place,
    });
    let mut mappings: Vec<Mapping> = base.collect();
    let below = match below {
        Below::All(shown) => {
            return PlannedImage { span: span.clone(), shown, mappings, until: u64::MAX };
        }
        Below::Some(below) => below,
    };
    let mut seen = seen_running(timeline, book, span, usage);

    let mut end = span.end;
    let on_top = by_address(&seen)
        .unwrap_or_else(|| give_homes(&mut seen, extents, &mut mappings, &mut end));

    let mut shown: Vec<Shown> = Vec::with_capacity(below.len());
    ranges::overlay(&below, on_top, |visible, code| match shown.last_mut() {
        Some(last) if last.code == code && last.visible.end == visible.start => {
            last.visible.end = visible.end;
        }
        _ => shown.push(Shown { visible, moved_by: 0, code }),
    });
    shown.extend(seen.iter().filter(|seen| seen.moved_by != 0).map(|seen| Shown {
        visible: seen.range.start + seen.moved_by..seen.range.end + seen.moved_by,
        moved_by: seen.moved_by,
        code: seen.code,
    }));
    PlannedImage { span: span.start..end, shown, mappings, until: u64::MAX }
}

/// Who is where, by address, if no code shares an address with another: the usual case.
fn by_address(seen: &[Seen]) -> Option<Vec<(Range<u64>, CodeId)>> {
    let mut placed: Vec<_> = seen.iter().map(|seen| (seen.range.clone(), seen.code)).collect();
    placed.sort_unstable_by_key(|(range, _)| range.start);
    placed.is_sorted_by(|(a, _), (b, _)| a.end <= b.start).then_some(placed)
}

/// Gives code that ran where other code had run before a home behind `end`, and maps it from there.
/// Returns who stays where, by address.
fn give_homes(
    seen: &mut [Seen],
    extents: &[Extent],
    mappings: &mut Vec<Mapping>,
    end: &mut u64,
) -> Vec<(Range<u64>, CodeId)> {
    // Who is mapped where so far, and who was the first there.
    let mut mapped: Canvas<usize> = Canvas::new();
    let mut at_home: Canvas<usize> = Canvas::new();
    for number in 0..seen.len() {
        let new = &seen[number];
        let range = new.range.clone();
        let followed = mapped.under(&range).next().is_some();
        let gives_way = at_home.under(&range).next().is_some();
        if followed {
            let old = mapped.under(&range).map(|old| seen[old].usage.last);
            let last_of_old = old.filter(|&last| last < new.usage.first).max();
            let from = epochs::between(last_of_old, new.since, new.usage.first);
            let place = match base_of(extents, &range) {
                // Not below what the arena begins with.
                Some(base) if from <= base.time() => base,
                _ => Place::At(from),
            };
            if gives_way {
                // At the top of the address space there is no room.
                let home = end.checked_next_multiple_of(ALIGNMENT);
                let home =
                    home.and_then(|home| Some(home..home.checked_add(range.end - range.start)?));
                let Some(home) = home else { continue };
                seen[number].moved_by = home.start - range.start;
                *end = home.end;
            }
            let moved_by = seen[number].moved_by;
            mappings.push(Mapping { range: range.clone(), moved_by, place });
        }
        if !gives_way {
            at_home.paint(range.clone(), number);
        }
        mapped.paint(range, number);
    }

    // Whole, so that offsets count from the beginning: what covers a part of it is mapped over it.
    let mut on_top = Canvas::new();
    for number in at_home.visible().map(|(_, number)| number) {
        on_top.paint(seen[number].range.clone(), seen[number].code);
    }
    on_top.visible().collect()
}

/// The code seen running in the arena, the earlier first.
fn seen_running(
    timeline: &Timeline,
    book: &CodeBook<'_>,
    span: &Range<u64>,
    usage: impl Fn(CodeId) -> Option<Usage>,
) -> Vec<Seen> {
    let mut seen: Vec<Seen> = Vec::new();
    for piece in timeline.pieces().iter().filter(|piece| ranges::overlap(&piece.range, span)) {
        let Some(usage) = usage(piece.code) else { continue };
        let whole = book.code(piece.code).range();
        let range = whole.start.max(span.start)..whole.end.min(span.end);
        let (code, since) = (piece.code, piece.since);
        seen.push(Seen { code, range, since, usage, moved_by: 0 });
    }
    // Of a code in several pieces the earliest stays.
    seen.sort_unstable_by_key(|seen| (seen.code, seen.since));
    seen.dedup_by_key(|seen| seen.code);
    seen.sort_by_key(|seen| (seen.since, seen.code));
    seen
}
