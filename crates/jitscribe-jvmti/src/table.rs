//! Places with their frames → lines and inlined calls.

use std::ops::Range;
use std::sync::Arc;

use jitscribe::{Inlined, Line};

use crate::jvmti::MethodId;
use crate::methods::{ById, Method};

/// The lines and inlined calls of one code.
#[derive(Debug, Default)]
pub(crate) struct Table {
    methods: Vec<Arc<Method>>,
    index: ById<MethodId, usize>,
    lines: Vec<Place>,
    calls: Vec<Call>,
    known: ById<(u32, i64, MethodId), u32>,
    /// The frames that hold at `end`, outermost first.
    stack: Vec<Frame>,
    end: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    offset: u32,
    /// `None`: of no line.
    at: Option<(usize, u32)>,
}

#[derive(Debug)]
struct Call {
    callee: usize,
    parent: Option<u32>,
    caller: usize,
    line: u32,
    ranges: Vec<Range<u32>>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    id: MethodId,
    bci: i64,
    method: usize,
    call: Option<u32>,
    since: u32,
}

impl Table {
    /// The code from the end of what was added last up to `end` is of these frames, outermost first.
    pub(crate) fn add(
        &mut self,
        end: u32,
        frames: impl Iterator<Item = (MethodId, i64)>,
        mut ask: impl FnMut(MethodId) -> Arc<Method>,
    ) {
        if end <= self.end {
            return;
        }
        let start = std::mem::replace(&mut self.end, end);
        let mut depth: usize = 0;
        for (id, bci) in frames {
            let caller = depth.checked_sub(1).and_then(|depth| self.stack.get(depth)).copied();
            if self.stack.get(depth).is_some_and(|frame| frame.id == id) {
                // Whatever this one calls is called from elsewhere now.
                if self.stack[depth].bci != bci {
                    self.leave(depth + 1, start);
                    self.stack[depth].bci = bci;
                }
            } else {
                self.leave(depth, start);
                let method = self.method(id, &mut ask);
                let call = caller.map(|caller| self.call(caller, id, method));
                self.stack.push(Frame { id, bci, method, call, since: start });
            }
            depth += 1;
        }
        self.leave(depth, start);
        let innermost = self.stack.last();
        let at = innermost.map(|frame| (frame.method, self.methods[frame.method].line(frame.bci)));
        self.line(start, at.filter(|(_, line)| *line != 0));
    }

    /// The code ends, with what nothing is known of.
    pub(crate) fn finish(&mut self, size: u32) {
        self.leave(0, self.end);
        if self.end < size && !self.lines.is_empty() {
            self.line(self.end, None);
        }
        // Without any line, a table that says "no line" is only longer.
        if self.lines.iter().all(|place| place.at.is_none()) {
            self.lines.clear();
        }
    }

    fn line(&mut self, offset: u32, at: Option<(usize, u32)>) {
        if self.lines.last().is_none_or(|last| last.at != at) {
            self.lines.push(Place { offset, at });
        }
    }

    /// The frames from a depth on are left.
    fn leave(&mut self, depth: usize, end: u32) {
        for frame in self.stack.drain(depth.min(self.stack.len())..) {
            if let Some(call) = frame.call.and_then(|call| self.calls.get_mut(call as usize))
                && frame.since < end
            {
                call.ranges.push(frame.since..end);
            }
        }
    }

    fn method(&mut self, id: MethodId, ask: &mut impl FnMut(MethodId) -> Arc<Method>) -> usize {
        *self.index.entry(id).or_insert_with(|| {
            self.methods.push(ask(id));
            self.methods.len() - 1
        })
    }

    fn call(&mut self, caller: Frame, id: MethodId, callee: usize) -> u32 {
        let key = (caller.call.map_or(0, |call| call + 1), caller.bci, id);
        *self.known.entry(key).or_insert_with(|| {
            let line = self.methods[caller.method].line(caller.bci);
            let parent = caller.call;
            self.calls.push(Call {
                callee,
                parent,
                caller: caller.method,
                line,
                ranges: Vec::new(),
            });
            (self.calls.len() - 1) as u32
        })
    }

    /// The lines.
    pub(crate) fn lines(&self) -> Vec<Line<'_>> {
        let places = self.lines.iter();
        places
            .map(|place| {
                let (file, line) =
                    place.at.map_or(("", 0), |(method, line)| (&*self.methods[method].file, line));
                Line { offset: place.offset, file, line, column: 0 }
            })
            .collect()
    }

    /// The inlined calls.
    pub(crate) fn inlined(&self) -> Vec<Inlined<'_>> {
        let calls = self.calls.iter();
        calls
            .map(|call| Inlined {
                name: &self.methods[call.callee].name,
                parent: call.parent,
                file: &self.methods[call.caller].file,
                line: call.line,
                column: 0,
                ranges: &call.ranges,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: char) -> MethodId {
        MethodId(name as usize)
    }

    fn table(size: u32, places: &[(u32, &[(char, i64)])]) -> Table {
        let mut table = Table::default();
        for (end, frames) in places {
            let frames = frames.iter().map(|(name, bci)| (id(*name), *bci));
            table.add(*end, frames, |id| {
                let name = char::from_u32(id.0 as u32).unwrap();
                Arc::new(Method::made(name, &[(0, 10), (5, 20)]))
            });
        }
        table.finish(size);
        table
    }

    fn pairs(ranges: &[Range<u32>]) -> Vec<(u32, u32)> {
        ranges.iter().map(|range| (range.start, range.end)).collect()
    }

    fn lines(table: &Table) -> Vec<(u32, &str, u32)> {
        table.lines().iter().map(|line| (line.offset, line.file, line.line)).collect()
    }

    #[test]
    fn a_place_is_of_the_code_before_it() {
        let table = table(30, &[(4, &[('a', 0)]), (9, &[('a', 3)]), (12, &[('a', 7)])]);
        assert_eq!(lines(&table), [(0, "a.java", 10), (9, "a.java", 20), (12, "", 0)]);
        assert!(table.inlined().is_empty());
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
            .inlined()
            .into_iter()
            .map(|call| (call.name, call.parent, call.file, call.line, pairs(call.ranges)))
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
    fn what_steps_back_or_is_of_nothing_is_left_out() {
        let table = table(8, &[(4, &[('a', 0)]), (4, &[('b', 0)]), (2, &[('c', 0)]), (8, &[])]);
        assert_eq!(lines(&table), [(0, "a.java", 10), (4, "", 0)]);
    }
}
