//! Converts places with their frames to lines and inlined calls.

use std::iter::zip;
use std::ops::Range;

use jitscribe::{Inlined, Line};

use crate::compile_info::Frames;
use crate::jvmti::MethodId;
use crate::methods::{ById, MethodCache};

/// The lines and inlined calls of one code, with methods by their numbers in [`MethodCache`].
#[derive(Debug, Default)]
pub(crate) struct Table {
    lines: Vec<Place>,
    calls: Vec<Call>,
    /// Numbers of calls, by the number of the call around it plus 1 (0: none), the bytecode there, and the callee.
    numbers: ById<(u32, i32, MethodId), u32>,
    /// The ranges that have ended, each with its call.
    ended: Vec<(u32, Range<u32>)>,
    /// The same ranges, sorted by calls, once the table is finished.
    ranges: Vec<Range<u32>>,
    /// The frames that apply up to `end`, outermost first.
    stack: Vec<Frame>,
    end: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    offset: u32,
    method: u32,
    /// 0: no line, and no method.
    line: u32,
}

#[derive(Debug)]
struct Call {
    callee: u32,
    parent: Option<u32>,
    caller: u32,
    line: u32,
    /// Its part of the table's ranges.
    ranges: Range<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    id: MethodId,
    bci: i32,
    method: u32,
    call: Option<u32>,
    since: u32,
}

/// A table that is larger than this is freed.
const LARGE: usize = 4 << 10;

impl Table {
    /// Empties it for another code. Its memory is kept, to avoid an allocation for each code.
    pub(crate) fn clear(&mut self) {
        if self.numbers.capacity().max(self.ended.capacity()).max(self.lines.capacity()) > LARGE {
            *self = Self::default();
            return;
        }
        self.lines.clear();
        self.calls.clear();
        self.numbers.clear();
        self.ended.clear();
        self.ranges.clear();
        self.stack.clear();
        self.end = 0;
    }

    /// The code from the end of the previous part up to `end` belongs to these frames. `number` returns the number of a
    /// method.
    pub(crate) fn add(
        &mut self,
        end: u32,
        frames: Frames<'_>,
        cache: &mut MethodCache,
        mut number: impl FnMut(&mut MethodCache, MethodId) -> u32,
    ) {
        if end <= self.end {
            return;
        }
        let start = std::mem::replace(&mut self.end, end);
        let frames = || zip(frames.methods, frames.bcis).rev();
        let stays = zip(&self.stack, frames());
        let same =
            stays.take_while(|(frame, (id, bci))| frame.id == **id && frame.bci == **bci).count();
        let mut changed = frames().skip(same).peekable();
        let mut depth = same;
        if let (Some(frame), Some((id, bci))) = (self.stack.get_mut(same), changed.peek())
            && frame.id == **id
        {
            // The calls within this frame now have another call site.
            frame.bci = **bci;
            depth += 1;
            changed.next();
        }
        self.leave(depth, start);
        for (&id, &bci) in changed {
            let method = number(cache, id);
            let caller = self.stack.last().copied();
            let call = caller.map(|caller| self.call(caller, id, method, cache));
            self.stack.push(Frame { id, bci, method, call, since: start });
        }
        let line = self.stack.last().map_or(0, |frame| cache.method(frame.method).line(frame.bci));
        let method = self.stack.last().filter(|_| line != 0).map_or(0, |frame| frame.method);
        self.line(Place { offset: start, method, line });
    }

    /// Ends the code. The rest of it has no known frames.
    pub(crate) fn finish(&mut self, size: u32) {
        self.leave(0, self.end);
        if self.end < size && !self.lines.is_empty() {
            self.line(Place { offset: self.end, method: 0, line: 0 });
        }
        // A table that only says "no line" is no better than no table.
        if self.lines.iter().all(|place| place.line == 0) {
            self.lines.clear();
        }
        self.sort_ranges();
    }

    /// Collects the ranges of each call, in their order.
    fn sort_ranges(&mut self) {
        for (call, _) in &self.ended {
            self.calls[*call as usize].ranges.end += 1;
        }
        let mut behind = 0;
        for call in &mut self.calls {
            let count = call.ranges.end;
            // `end` advances as ranges are inserted.
            call.ranges = behind..behind;
            behind += count;
        }
        self.ranges.resize(behind, 0..0);
        for (call, range) in self.ended.drain(..) {
            let end = &mut self.calls[call as usize].ranges.end;
            self.ranges[*end] = range;
            *end += 1;
        }
    }

    fn line(&mut self, place: Place) {
        let same = |last: &Place| (last.method, last.line) == (place.method, place.line);
        if !self.lines.last().is_some_and(same) {
            self.lines.push(place);
        }
    }

    /// Ends the frames from a depth on.
    fn leave(&mut self, depth: usize, end: u32) {
        for frame in self.stack.drain(depth.min(self.stack.len())..) {
            if let Some(call) = frame.call.filter(|_| frame.since < end) {
                self.ended.push((call, frame.since..end));
            }
        }
    }

    fn call(&mut self, caller: Frame, id: MethodId, callee: u32, cache: &MethodCache) -> u32 {
        let key = (caller.call.map_or(0, |call| call + 1), caller.bci, id);
        *self.numbers.entry(key).or_insert_with(|| {
            let line = cache.method(caller.method).line(caller.bci);
            let parent = caller.call;
            self.calls.push(Call { callee, parent, caller: caller.method, line, ranges: 0..0 });
            (self.calls.len() - 1) as u32
        })
    }

    /// The lines.
    pub(crate) fn lines<'a>(&self, cache: &'a MethodCache) -> Vec<Line<'a>> {
        let places = self.lines.iter();
        places
            .map(|place| {
                let file = if place.line == 0 { "" } else { &*cache.method(place.method).file };
                Line::new(place.offset, file, place.line)
            })
            .collect()
    }

    /// The inlined calls.
    pub(crate) fn inlined<'a>(&'a self, cache: &'a MethodCache) -> Vec<Inlined<'a>> {
        let calls = self.calls.iter();
        calls
            .map(|call| {
                let (callee, caller) = (cache.method(call.callee), cache.method(call.caller));
                let ranges = &self.ranges[call.ranges.clone()];
                Inlined::new(&callee.name, ranges)
                    .called_from(&caller.file, call.line)
                    .within(call.parent)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::Method;

    fn id(name: char) -> MethodId {
        MethodId(name as usize)
    }

    /// Frames outermost first.
    fn table(size: u32, places: &[(u32, &[(char, i32)])]) -> (Table, MethodCache) {
        let (mut table, mut cache) = (Table::default(), MethodCache::default());
        // A reused table must give the same result as a new one.
        for _ in 0..2 {
            table.clear();
            for (end, frames) in places {
                let (methods, bcis): (Vec<_>, Vec<_>) =
                    frames.iter().rev().map(|(name, bci)| (id(*name), *bci)).unzip();
                let frames = Frames { methods: &methods, bcis: &bcis };
                table.add(*end, frames, &mut cache, |cache, id| {
                    let name = char::from_u32(id.0 as u32).unwrap();
                    cache.number(id, |_| Method::for_test(name, &[(0, 10), (5, 20)]))
                });
            }
            table.finish(size);
        }
        (table, cache)
    }

    fn pairs(ranges: &[Range<u32>]) -> Vec<(u32, u32)> {
        ranges.iter().map(|range| (range.start, range.end)).collect()
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    fn lines((table, cache): &(Table, MethodCache)) -> Vec<(u32, &str, u32)> {
        table.lines(cache).iter().map(|line| (line.offset, text(line.file), line.line)).collect()
    }

    #[test]
    fn a_place_ends_the_code_before_it() {
        let table = table(30, &[(4, &[('a', 0)]), (9, &[('a', 3)]), (12, &[('a', 7)])]);
        assert_eq!(lines(&table), [(0, "a.java", 10), (9, "a.java", 20), (12, "", 0)]);
        assert!(table.0.inlined(&table.1).is_empty());
    }

    #[test]
    fn calls_within_calls_have_their_ranges() {
        let table = table(
            30,
            &[
                (4, &[('a', 0)]),
                (8, &[('a', 5), ('b', 0)]),
                (12, &[('a', 5), ('b', 1), ('c', 5)]),
                (16, &[('a', 5), ('b', 1)]),
                // The same callee from another place, and from the first one again.
                (20, &[('a', 6), ('b', 0)]),
                (24, &[('a', 5), ('b', 2), ('c', 0)]),
                (30, &[('a', 5), ('b', 1), ('c', 0)]),
            ],
        );
        let calls: Vec<_> = table
            .0
            .inlined(&table.1)
            .into_iter()
            .map(|call| {
                (text(call.name), call.parent, text(call.file), call.line, pairs(call.ranges))
            })
            .collect();
        assert_eq!(
            calls,
            [
                ("b", None, "a.java", 20, vec![(4, 16), (20, 30)]),
                ("c", Some(0), "b.java", 10, vec![(8, 12), (24, 30)]),
                ("b", None, "a.java", 20, vec![(16, 20)]),
                ("c", Some(0), "b.java", 10, vec![(20, 24)]),
            ]
        );
        assert_eq!(lines(&table)[..3], [(0, "a.java", 10), (4, "b.java", 10), (8, "c.java", 20)]);
    }

    #[test]
    fn ranges_that_step_back_or_have_no_frames_are_left_out() {
        let table = table(8, &[(4, &[('a', 0)]), (4, &[('b', 0)]), (2, &[('c', 0)]), (8, &[])]);
        assert_eq!(lines(&table), [(0, "a.java", 10), (4, "", 0)]);
    }
}
