//! The code events of one address space, and the query that they serve.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Range;

use crate::index::StabbingIndex;
use crate::piece::{CodeId, Piece};

/// Collects code events, in the order of time.
#[derive(Debug, Default)]
pub struct TimelineBuilder {
    live: BTreeMap<u64, Live>,
    /// More live code, behind everything in `live` and sorted by address. Many JITs put new code behind old code, and
    /// need no tree for it.
    behind: Vec<(u64, Live)>,
    /// Where each code in `live` has its pieces. Created once an unload met too many pieces of other code.
    by_code: Option<BTreeSet<(CodeId, u64)>>,
    done: Vec<Piece>,
}

/// If an unload meets more pieces of other code than this, they are indexed by code. Otherwise a history in which
/// much code is unloaded under other code would take quadratic time.
const OTHERS: usize = if cfg!(test) { 1 } else { 32 };

#[derive(Clone, Copy, Debug)]
struct Live {
    end: u64,
    since: u64,
    code: CodeId,
}

impl TimelineBuilder {
    /// A builder without events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A builder with capacity for this many loads, provided that each is behind the previous one.
    #[must_use]
    pub fn with_capacity(loads: usize) -> Self {
        Self { behind: Vec::with_capacity(loads), ..Self::default() }
    }

    /// Adds `code`, which was written to `range` at `time`. Code that was there before is gone. Code that it overlaps
    /// only in part keeps the rest, as in perf's own maps. An empty range has no effect.
    pub fn load(&mut self, time: u64, range: Range<u64>, code: CodeId) {
        if range.is_empty() {
            return;
        }
        let live = Live { end: range.end, since: time, code };
        if self.is_behind_all(range.start) {
            self.behind.push((range.start, live));
            return;
        }
        self.end(time, range.clone(), None);
        self.put(range.start, live);
    }

    fn put(&mut self, start: u64, live: Live) {
        self.live.insert(start, live);
        if let Some(by_code) = &mut self.by_code {
            by_code.insert((live.code, start));
        }
    }

    fn take(&mut self, start: u64, live: &Live) {
        self.live.remove(&start);
        if let Some(by_code) = &mut self.by_code {
            by_code.remove(&(live.code, start));
        }
    }

    fn is_behind_all(&self, address: u64) -> bool {
        let last = self.behind.last().map(|(_, last)| last);
        let last = last.or_else(|| self.live.last_key_value().map(|(_, last)| last));
        last.is_none_or(|last| last.end <= address)
    }

    /// Records that `code` is no longer in `range` from `time` on. Parts of the range that other code has taken by
    /// then are not affected.
    pub fn unload(&mut self, time: u64, range: Range<u64>, code: CodeId) {
        if !range.is_empty() {
            self.end(time, range, Some(code));
        }
    }

    /// Records that all code in `range` is gone from `time` on, because something else was put there.
    pub fn clear(&mut self, time: u64, range: Range<u64>) {
        if !range.is_empty() {
            self.end(time, range, None);
        }
    }

    /// Ends at `time` all live code in `range`, or only that of `whose`.
    fn end(&mut self, time: u64, range: Range<u64>, whose: Option<CodeId>) {
        if self.is_behind_all(range.start) {
            return;
        }
        for (start, live) in core::mem::take(&mut self.behind) {
            self.put(start, live);
        }
        let first = match self.live.range(..range.start).next_back() {
            Some((&start, live)) if live.end > range.start => start,
            _ => range.start,
        };
        let hit = match whose {
            None => {
                self.live.range(first..range.end).map(|(&start, &live)| (start, live)).collect()
            }
            Some(code) => self.pieces_of(code, first..range.end),
        };
        for (start, live) in hit {
            self.take(start, &live);
            if start < range.start {
                self.put(start, Live { end: range.start, ..live });
            }
            if live.end > range.end {
                self.put(range.end, live);
            }
            if live.since < time {
                self.done.push(Piece {
                    range: start.max(range.start)..live.end.min(range.end),
                    since: live.since,
                    until: time,
                    code: live.code,
                });
            }
        }
    }

    /// The live pieces of `code` that begin in `starts`.
    fn pieces_of(&mut self, code: CodeId, starts: Range<u64>) -> Vec<(u64, Live)> {
        if self.by_code.is_none() {
            let (mut found, mut others) = (Vec::new(), 0);
            for (&start, &live) in self.live.range(starts.clone()) {
                if live.code == code {
                    found.push((start, live));
                    continue;
                }
                others += 1;
                if others > OTHERS {
                    break;
                }
            }
            if others <= OTHERS {
                return found;
            }
        }
        let live = &self.live;
        let by_code = self
            .by_code
            .get_or_insert_with(|| live.iter().map(|(&start, live)| (live.code, start)).collect());
        by_code
            .range((code, starts.start)..(code, starts.end))
            .filter_map(|&(_, start)| Some((start, *live.get(&start)?)))
            .collect()
    }

    /// Completes the history, ready for queries.
    #[must_use]
    pub fn finish(self) -> Timeline {
        let mut pieces = self.done;
        pieces.extend(self.live.into_iter().chain(self.behind).map(|(start, live)| Piece {
            range: start..live.end,
            since: live.since,
            until: u64::MAX,
            code: live.code,
        }));
        Timeline::of(pieces)
    }
}

/// What was at an address, and the range for which this is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Around<'t> {
    /// What was there, or came there next.
    pub nearest: Nearest<'t>,
    /// The addresses for which this is valid. The range excludes the very last address, `u64::MAX`.
    pub addresses: Range<u64>,
    /// The times for which this is valid. The range excludes the very last time, `u64::MAX`.
    pub times: Range<u64>,
}

/// What was at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nearest<'t> {
    /// This piece.
    Current(&'t Piece),
    /// Nothing; this piece came next.
    Next(&'t Piece),
    /// Nothing, then or later.
    Never,
}

/// The finished history of one address space.
#[derive(Debug, Default)]
pub struct Timeline {
    pieces: Vec<Piece>,
    /// For each piece, the largest end of all pieces up to it. Empty if no two pieces share an address: then each
    /// piece begins behind the previous one.
    reach: Vec<u64>,
    index: StabbingIndex,
}

impl Timeline {
    /// The timeline of these pieces, none of which overlaps another in address and time.
    pub(crate) fn of(mut pieces: Vec<Piece>) -> Self {
        pieces.sort_unstable_by_key(|piece| (piece.range.start, piece.since));
        let index = StabbingIndex::new(&pieces);
        let mut reach = Vec::new();
        if !index.is_flat() {
            let mut end = 0;
            reach.extend(pieces.iter().map(|piece| {
                end = piece.range.end.max(end);
                end
            }));
        }
        Self { pieces, reach, index }
    }

    /// The piece at `address` at `time`.
    #[must_use]
    pub fn at(&self, address: u64, time: u64) -> Option<&Piece> {
        self.index
            .nodes(address)
            .find_map(|node| {
                let later = node.partition_point(|&piece| self.since(piece) <= time);
                node.get(later.checked_sub(1)?).filter(|&&piece| time < self.piece(piece).until)
            })
            .map(|&piece| self.piece(piece))
    }

    /// The first piece that came to `address` after `time`, and by `time + within` at the latest.
    #[must_use]
    pub fn next(&self, address: u64, time: u64, within: u64) -> Option<&Piece> {
        self.index
            .nodes(address)
            .filter_map(|node| node.get(node.partition_point(|&piece| self.since(piece) <= time)))
            .map(|&piece| self.piece(piece))
            .min_by_key(|piece| piece.since)
            .filter(|piece| piece.since - time <= within)
    }

    /// The result of [`Self::at`] or, if that is `None`, of [`Self::next`], and the addresses and times for which it
    /// is valid. Callers with many queries can cache it.
    #[must_use]
    pub fn around(&self, address: u64, time: u64) -> Around<'_> {
        let (nodes, addresses) = self.index.nodes_and_range(address);
        let mut vacant = Around { nearest: Nearest::Never, addresses, times: 0..u64::MAX };
        for node in nodes {
            let later = node.partition_point(|&piece| self.since(piece) <= time);
            if let Some(&last) = later.checked_sub(1).and_then(|last| node.get(last)) {
                let last = self.piece(last);
                if time < last.until {
                    let (addresses, times) = (last.range.clone(), last.since..last.until);
                    return Around { nearest: Nearest::Current(last), addresses, times };
                }
                vacant.times.start = vacant.times.start.max(last.until);
            }
            if let Some(&next) = node.get(later)
                && self.since(next) < vacant.times.end
            {
                let next = self.piece(next);
                vacant.nearest = Nearest::Next(next);
                vacant.times.end = next.since;
            }
        }
        vacant
    }

    /// The first piece that came to `address` after `time`, as in [`Self::next`], and the addresses for which it is
    /// valid.
    #[must_use]
    pub fn next_around(&self, address: u64, time: u64) -> (Option<&Piece>, Range<u64>) {
        let (_, addresses) = self.index.nodes_and_range(address);
        (self.next(address, time, u64::MAX), addresses)
    }

    /// Whether no address ever had two codes.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        self.index.is_flat()
    }

    /// Every piece, by address and, at one address, by time.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The pieces that are still there at the end, by address.
    pub fn alive(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().filter(|piece| piece.until == u64::MAX)
    }

    /// The pieces from the first to the last that share an address with `range`, in the order of [`Self::pieces`].
    /// Some pieces in between may share none.
    #[must_use]
    pub fn pieces_over(&self, range: &Range<u64>) -> &[Piece] {
        let first = match self.is_flat() {
            true => self.pieces.partition_point(|piece| piece.range.end <= range.start),
            false => self.reach.partition_point(|&end| end <= range.start),
        };
        let from_first = self.pieces.get(first..).unwrap_or(&[]);
        &from_first[..from_first.partition_point(|piece| piece.range.start < range.end)]
    }

    fn piece(&self, number: u32) -> &Piece {
        &self.pieces[number as usize]
    }

    fn since(&self, number: u32) -> u64 {
        self.piece(number).since
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: CodeId = CodeId(0);
    const B: CodeId = CodeId(1);

    fn code_at(timeline: &Timeline, address: u64, time: u64) -> Option<CodeId> {
        timeline.at(address, time).map(|piece| piece.code)
    }

    #[test]
    fn codes_at_one_address_are_distinguished_by_time() {
        let mut builder = TimelineBuilder::new();
        builder.load(10, 0x100..0x200, A);
        builder.load(20, 0x100..0x180, B);
        let timeline = builder.finish();
        assert_eq!(code_at(&timeline, 0x100, 9), None);
        assert_eq!(code_at(&timeline, 0x100, 10), Some(A));
        assert_eq!(code_at(&timeline, 0x17f, 19), Some(A));
        assert_eq!(code_at(&timeline, 0x17f, 20), Some(B));
        assert_eq!(
            code_at(&timeline, 0x180, 20),
            Some(A),
            "the tail that was not overwritten stays"
        );
        assert_eq!(code_at(&timeline, 0x200, 20), None);
    }

    #[test]
    fn next_finds_code_that_is_loaded_later() {
        let mut builder = TimelineBuilder::new();
        builder.load(100, 0..8, A);
        builder.load(200, 0..16, B);
        let timeline = builder.finish();
        assert_eq!(timeline.next(4, 90, 10).map(|piece| piece.code), Some(A));
        assert_eq!(timeline.next(4, 89, 10), None);
        assert_eq!(timeline.next(4, 100, 100).map(|piece| piece.code), Some(B));
        assert_eq!(timeline.next(12, 0, 1000).map(|piece| piece.code), Some(B));
    }

    #[test]
    fn each_of_many_pieces_is_found() {
        let mut builder = TimelineBuilder::new();
        for number in 0..1000 {
            let start = u64::from(number) * 7 + 10;
            builder.load(1, start..start + 2 + u64::from(number % 6), CodeId(number));
        }
        let timeline = builder.finish();
        for address in 0..7100 {
            let number = (address >= 10).then(|| (address - 10) / 7).filter(|&n| n < 1000);
            let code = number.filter(|n| (address - 10) % 7 < 2 + n % 6);
            assert_eq!(code_at(&timeline, address, 1), code.map(|n| CodeId(n as u32)), "{address}");
        }
    }

    #[test]
    fn unload_keeps_code_that_was_loaded_over_it() {
        let mut builder = TimelineBuilder::new();
        builder.load(1, 0..100, A);
        builder.load(2, 40..60, B);
        builder.unload(3, 0..100, A);
        let timeline = builder.finish();
        assert_eq!(code_at(&timeline, 10, 2), Some(A));
        assert_eq!(code_at(&timeline, 10, 3), None);
        assert_eq!(code_at(&timeline, 50, 3), Some(B));
        assert_eq!(code_at(&timeline, 90, 3), None);
    }

    proptest! {
        /// Every query agrees with a table that holds each address at each time.
        #[test]
        fn agrees_with_the_table(events in prop::collection::vec((0u64..3, 0u64..40, 0u64..12, prop::option::of(0u32..4)), 0..40)) {
            let mut builder = TimelineBuilder::new();
            let mut table: Vec<[Option<CodeId>; 64]> = Vec::new();
            let mut now = [None; 64];
            let mut time = 0;
            for (number, (step, start, len, unload)) in events.into_iter().enumerate() {
                while table.len() < (time + step) as usize { table.push(now); }
                time += step;
                let range = start..start + len;
                match unload {
                    Some(code) => {
                        builder.unload(time, range.clone(), CodeId(code));
                        for slot in &mut now[start as usize..(start + len) as usize] {
                            if *slot == Some(CodeId(code)) { *slot = None; }
                        }
                    }
                    None => {
                        let code = CodeId(number as u32 % 5);
                        builder.load(time, range, code);
                        now[start as usize..(start + len) as usize].fill(Some(code));
                    }
                }
            }
            table.push(now);
            let timeline = builder.finish();
            for (time, row) in table.iter().enumerate() {
                for (address, expected) in row.iter().enumerate() {
                    prop_assert_eq!(code_at(&timeline, address as u64, time as u64), *expected);
                    let around = timeline.around(address as u64, time as u64);
                    let next = timeline.next(address as u64, time as u64, u64::MAX);
                    let nearest = match (timeline.at(address as u64, time as u64), next) {
                        (Some(here), _) => Nearest::Current(here),
                        (None, Some(next)) => Nearest::Next(next),
                        (None, None) => Nearest::Never,
                    };
                    prop_assert_eq!(around.nearest, nearest);
                    let (found, addresses) = timeline.next_around(address as u64, time as u64);
                    prop_assert_eq!(found, next);
                    prop_assert!(addresses.contains(&(address as u64)));
                    prop_assert!(around.addresses.contains(&(address as u64)));
                    let range = address as u64..address as u64 + time as u64 % 9;
                    let shares = |piece: &&Piece| {
                        piece.range.start < range.end && range.start < piece.range.end
                    };
                    let over = timeline.pieces_over(&range).iter().filter(shares);
                    prop_assert!(over.eq(timeline.pieces().iter().filter(shares)));
                    // The first piece always shares an address.
                    let first = timeline.pieces_over(&range).first();
                    prop_assert!(first.is_none_or(|piece| shares(&piece)));
                    prop_assert!(around.times.contains(&(time as u64)));
                    // The same result is valid for the next address and the next time, up to the ends.
                    for (address, time) in [(address as u64 + 1, time as u64), (address as u64, time as u64 + 1)] {
                        if around.addresses.contains(&address) && around.times.contains(&time) {
                            prop_assert_eq!(&timeline.around(address, time), &around);
                        }
                        if addresses.contains(&address) {
                            let there = timeline.next_around(address, time);
                            prop_assert!(there.0 == next || next.is_some_and(|next| next.since <= time));
                            prop_assert_eq!(&there.1, &addresses);
                        }
                    }
                    let ahead = table[time + 1..].iter().enumerate()
                        .find(|(_, later)| later[address].is_some());
                    if expected.is_none() {
                        let next = timeline.next(address as u64, time as u64, u64::MAX);
                        prop_assert_eq!(next.map(|p| (p.since, p.code)),
                            ahead.map(|(i, row)| ((time + 1 + i) as u64, row[address].unwrap())));
                    }
                }
            }
        }
    }
}
