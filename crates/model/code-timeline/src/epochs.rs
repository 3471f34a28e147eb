//! Spans of time that one object file each can show.
//!
//! An object file has one owner per address. As long as no two pieces of code that were *seen running* share an
//! address, one file shows all of them. Where they do, time is cut between them and a new epoch begins. Code that was
//! never seen running never forces a cut.

use alloc::vec::Vec;
use core::ops::Range;

use crate::piece::{CodeId, Piece};
use crate::ranges::{Canvas, overlap};
use crate::timeline::Timeline;

/// When code was seen running: the first and the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Time of the first sample.
    pub first: u64,
    /// Time of the last sample.
    pub last: u64,
}

impl Usage {
    /// Seen once, at `time`.
    #[must_use]
    pub fn once(time: u64) -> Self {
        Self { first: time, last: time }
    }

    /// Records that it was also seen at `time`.
    pub fn again(&mut self, time: u64) {
        self.first = self.first.min(time);
        self.last = self.last.max(time);
    }

    /// Whether it may have been seen running in the epoch, from `epoch.from` until `epoch.until`.
    #[must_use]
    pub fn within(&self, epoch: &Epoch) -> bool {
        self.first < epoch.until && epoch.from <= self.last
    }
}

/// A span of time: from `from` until, not including, `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// 0 for the first epoch.
    pub from: u64,
    /// `u64::MAX` for the last.
    pub until: u64,
}

/// Cuts the history of `arena` where code seen running overlaps other code seen running.
///
/// A cut is after the last sample of the old code and not after the first of the new, see [`between`]. If the samples
/// of two pieces of code at one address interleave over time (one was overwritten in part and kept running), no cut
/// can separate them. [`visible`] handles these.
#[must_use]
pub fn cut(
    timeline: &Timeline,
    arena: &Range<u64>,
    usage: impl Fn(CodeId) -> Option<Usage>,
) -> Vec<Epoch> {
    struct UsedPiece {
        range: Range<u64>,
        since: u64,
        usage: Usage,
        code: CodeId,
    }
    let mut seen: Vec<UsedPiece> = timeline
        .pieces_over(arena)
        .iter()
        .filter(|piece| overlap(&piece.range, arena))
        .filter_map(|piece| {
            let usage = usage(piece.code)?;
            Some(UsedPiece {
                range: piece.range.clone(),
                since: piece.since,
                usage,
                code: piece.code,
            })
        })
        .collect();
    seen.sort_by_key(|seen| (seen.usage.first, seen.since));

    let mut starts = alloc::vec![0];
    let mut start = 0;
    // Code seen so far, newest on top. Code that was last seen before `start` is not shown by the current epoch any
    // more. It is skipped and not removed, because removing all of it at each cut would take quadratic time.
    let mut shown: Canvas<usize> = Canvas::new();
    for (number, new) in seen.iter().enumerate() {
        let last_of_old = shown
            .under(&new.range)
            .map(|old| &seen[old])
            .filter(|old| old.code != new.code)
            .map(|old| old.usage.last)
            .filter(|&last| start <= last && last < new.usage.first)
            .max();
        if let Some(last_of_old) = last_of_old {
            start = between(Some(last_of_old), new.since, new.usage.first);
            starts.push(start);
        }
        shown.paint(new.range.clone(), number);
    }
    let ends = starts[1..].iter().copied().chain([u64::MAX]);
    starts.iter().copied().zip(ends).map(|(from, until)| Epoch { from, until }).collect()
}

/// The time at which new code replaced old code. The old code was last seen at `last_of_old`; the new code was loaded
/// at `loaded` and first seen running at `first_of_new`. The result is `loaded` if it is in between.
#[must_use]
pub fn between(last_of_old: Option<u64>, loaded: u64, first_of_new: u64) -> u64 {
    let is_between = loaded <= first_of_new && last_of_old.is_none_or(|last| last < loaded);
    if is_between { loaded } else { first_of_new }
}

/// The code to show in `epoch`, by address and without overlap. Code that extends past an end of `arena` is clipped
/// to it.
///
/// Code seen running is on top. If `everything` is requested, all code that existed at some time in the epoch is
/// under it, later code above earlier code.
#[must_use]
pub fn visible(
    timeline: &Timeline,
    arena: &Range<u64>,
    epoch: &Epoch,
    everything: bool,
    usage: impl Fn(CodeId) -> Option<Usage>,
) -> Vec<(Range<u64>, CodeId)> {
    let mut strokes: Vec<(bool, u64, &Piece)> = Vec::new();
    for piece in timeline.pieces_over(arena) {
        if !overlap(&piece.range, arena) {
            continue;
        }
        let used = usage(piece.code).is_some_and(|usage| usage.within(epoch));
        let lived = piece.since < epoch.until && epoch.from < piece.until;
        if used || (everything && lived) {
            strokes.push((used, piece.since, piece));
        }
    }
    let inside = |range: &Range<u64>| range.start.max(arena.start)..range.end.min(arena.end);
    // Pieces are sorted by address. In most cases none covers another, and no painting is needed.
    if strokes.is_sorted_by(|(.., a), (.., b)| a.range.end <= b.range.start) {
        return joined(strokes.iter().map(|(.., piece)| (inside(&piece.range), piece.code)));
    }
    strokes.sort_by_key(|&(used, since, _)| (used, since));
    let mut canvas = Canvas::new();
    for (.., piece) in strokes {
        canvas.paint(inside(&piece.range), piece.code);
    }
    joined(canvas.visible())
}

/// Joins the parts of one code that a short-lived neighbour had split.
fn joined(parts: impl Iterator<Item = (Range<u64>, CodeId)>) -> Vec<(Range<u64>, CodeId)> {
    let mut joined: Vec<(Range<u64>, CodeId)> = Vec::with_capacity(parts.size_hint().0);
    for (range, code) in parts {
        match joined.last_mut() {
            Some((last, owner)) if *owner == code && last.end == range.start => {
                last.end = range.end;
            }
            _ => joined.push((range, code)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::TimelineBuilder;
    use alloc::{vec, vec::Vec};
    use proptest::prelude::*;

    const ALL: Range<u64> = 0..1000;

    #[test]
    fn one_epoch_where_nothing_seen_running_conflicts() {
        let mut builder = TimelineBuilder::new();
        for time in 0..50 {
            builder.load(time, 0..10, CodeId(time as u32));
        }
        let timeline = builder.finish();
        let usage = |code: CodeId| (code.0 == 7).then(|| Usage::once(7));
        let epochs = cut(&timeline, &ALL, usage);
        assert_eq!(epochs, [Epoch { from: 0, until: u64::MAX }]);
        assert_eq!(visible(&timeline, &ALL, &epochs[0], true, usage), [(0..10, CodeId(7))]);
    }

    #[test]
    fn a_cut_lies_at_the_load_that_replaced_running_code() {
        let mut builder = TimelineBuilder::new();
        builder.load(10, 0..10, CodeId(0));
        builder.load(10, 20..30, CodeId(1));
        builder.load(50, 0..10, CodeId(2));
        let timeline = builder.finish();
        let usage = |code: CodeId| {
            Some([(12, 40), (15, 90), (60, 80)][code.index()])
                .map(|(first, last)| Usage { first, last })
        };
        let epochs = cut(&timeline, &ALL, usage);
        assert_eq!(epochs, [Epoch { from: 0, until: 50 }, Epoch { from: 50, until: u64::MAX }]);
        let shown = |epoch| visible(&timeline, &ALL, &epochs[epoch], false, usage);
        assert_eq!(shown(0), [(0..10, CodeId(0)), (20..30, CodeId(1))]);
        assert_eq!(shown(1), [(0..10, CodeId(2)), (20..30, CodeId(1))]);
    }

    #[test]
    fn code_across_an_end_of_the_arena_is_clipped() {
        let mut builder = TimelineBuilder::new();
        builder.load(10, 0..10, CodeId(0));
        builder.load(10, 10..20, CodeId(1));
        let epoch = Epoch { from: 0, until: u64::MAX };
        let timeline = builder.finish();
        let shown = visible(&timeline, &(4..16), &epoch, true, |_| None);
        assert_eq!(shown, [(4..10, CodeId(0)), (10..16, CodeId(1))]);
        let usage = |code: CodeId| (code.0 == 0).then(|| Usage::once(15));
        let shown = visible(&timeline, &(4..16), &epoch, true, usage);
        assert_eq!(shown, [(4..10, CodeId(0)), (10..16, CodeId(1))]);
    }

    /// An earlier algorithm, for comparison: at each cut it removes what is no longer shown.
    fn cut_by_wiping(timeline: &Timeline, usage: impl Fn(CodeId) -> Option<Usage>) -> Vec<u64> {
        let seen = timeline.pieces().iter().filter_map(|piece| Some((piece, usage(piece.code)?)));
        let mut seen: Vec<_> = seen.collect();
        seen.sort_by_key(|(piece, usage)| (usage.first, piece.since));
        let (mut starts, mut shown) = (vec![0], Vec::<(Range<u64>, usize)>::new());
        for (number, (new, usage)) in seen.iter().enumerate() {
            let under = shown.iter().filter(|(range, _)| overlap(range, &new.range));
            let last_of_old = under
                .map(|&(_, old)| &seen[old])
                .filter(|(old, _)| old.code != new.code)
                .map(|(_, old)| old.last)
                .filter(|&last| last < usage.first)
                .max();
            if let Some(last_of_old) = last_of_old {
                let at = between(Some(last_of_old), new.since, usage.first);
                starts.push(at);
                shown.retain(|&(_, old)| seen[old].1.last >= at);
            }
            let rest = shown.into_iter().flat_map(|(range, old)| {
                let left = crate::ranges::subtract(&range, core::slice::from_ref(&new.range));
                left.into_iter().map(move |range| (range, old))
            });
            shown = rest.chain([(new.range.clone(), number)]).collect();
        }
        starts
    }

    proptest! {
        /// Code that partially overlaps other code, and ran at arbitrary times.
        #[test]
        fn cuts_agree_with_a_model_that_wipes(
            loads in prop::collection::vec((0u64..5, 0u64..40, 1u64..20, 0u64..60, 0u64..20), 1..40),
        ) {
            let mut builder = TimelineBuilder::new();
            let (mut time, mut usage) = (0, Vec::new());
            for (number, (step, start, len, first, lasts)) in loads.into_iter().enumerate() {
                time += step;
                builder.load(time, start..start + len, CodeId(number as u32));
                usage.push((lasts > 2).then_some(Usage { first, last: first + lasts }));
            }
            let (timeline, usage) = (builder.finish(), |code: CodeId| usage[code.index()]);
            let epochs = cut(&timeline, &ALL, usage);
            let starts: Vec<_> = epochs.iter().map(|epoch| epoch.from).collect();
            prop_assert_eq!(starts, cut_by_wiping(&timeline, usage));
        }

        /// For any loads and samples, the epoch of a sample shows its code there. (Without partial overlap, which no
        /// cut can separate.)
        #[test]
        fn every_sample_is_shown_by_its_epoch(
            loads in prop::collection::vec((0u64..5, 0u64..6), 1..30),
            samples in prop::collection::vec((0u64..100, 0u64..60), 0..60),
        ) {
            let mut builder = TimelineBuilder::new();
            let mut time = 0;
            for (number, (step, slot)) in loads.into_iter().enumerate() {
                time += step;
                builder.load(time, slot * 10..slot * 10 + 10, CodeId(number as u32));
            }
            let timeline = builder.finish();
            let mut usage: Vec<Option<Usage>> = vec![None; 30];
            let mut hits = Vec::new();
            for (time, address) in samples {
                let Some(piece) = timeline.at(address, time).or_else(|| timeline.next(address, time, 100)) else { continue };
                usage[piece.code.index()].get_or_insert(Usage::once(time)).again(time);
                hits.push((time, address, piece.code));
            }
            let usage = |code: CodeId| usage[code.index()];
            let epochs = cut(&timeline, &ALL, usage);
            prop_assert!(epochs.windows(2).all(|pair| pair[0].until == pair[1].from && pair[0].from < pair[1].from));
            for everything in [false, true] {
                for &(time, address, code) in &hits {
                    let epoch = epochs.iter().find(|epoch| epoch.from <= time && time < epoch.until).unwrap();
                    let shown = visible(&timeline, &ALL, epoch, everything, usage);
                    let owner = shown.iter().find(|(range, _)| range.contains(&address)).map(|(_, code)| *code);
                    prop_assert_eq!(owner, Some(code));
                }
            }
        }
    }
}
