//! The line tables of a code and of its inlined calls.
//!
//! The code's lines are those of the innermost callee at each address. The API has a table for each frame instead. So a frame has
//! the code's lines where no call was inlined into it, and elsewhere the line of that call.
//!
//! Each line of the code's table applies from its offset on. In the API's tables, each applies up to its offset.

use std::ops::Range;

use fallible::Vec;
use jit_code::{Inlined, Line};

use crate::calls::{Calls, Frame, Part};
use crate::layout::TableLine;

/// The lines of a code.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    size: u32,
    /// Ascending by offset.
    lines: Vec<&'a Line<'a>>,
    inlined: &'a [Inlined<'a>],
}

/// A source position, and the offset where its code ends.
#[derive(Clone, Copy)]
struct Position<'a> {
    end: u32,
    file: &'a [u8],
    line: u32,
}

impl<'a> Lines<'a> {
    /// Those that ascend, of a code of this size.
    pub(crate) fn of(lines: &'a [Line<'a>], inlined: &'a [Inlined<'a>], size: u32) -> Self {
        let mut kept: Vec<&Line<'_>> = Vec::new();
        let mut from = 0;
        for line in lines {
            if line.offset >= from && line.offset < size {
                from = line.offset;
                kept.push(line);
            }
        }
        Self { size, lines: kept, inlined }
    }

    /// The source file of a frame: that of its first line. Empty if no line has a file.
    pub(crate) fn source(&self, calls: &Calls, frame: Frame) -> &'a [u8] {
        let mut source: &[u8] = b"";
        for part in calls.parts_of(frame) {
            self.walk(calls, frame, part, |position| {
                if position.line > 0 {
                    source = position.file;
                }
                source.is_empty()
            });
            if !source.is_empty() {
                break;
            }
        }
        source
    }

    /// Writes the table of a part of a frame. A table has no file names: code whose line is in another file than `source` has
    /// line 0, as has code without a line.
    pub(crate) fn table(
        &self,
        out: &mut Vec<TableLine>,
        calls: &Calls,
        frame: Frame,
        part: Part,
        source: &[u8],
    ) {
        out.clear();
        self.walk(calls, frame, part, |position| {
            // The file of a call may be unknown. It is the one of the code around it.
            let is_here = position.file.is_empty() || position.file == source;
            let line = if is_here { position.line } else { 0 };
            let end = position.end - part.start;
            match out.last_mut() {
                Some(last) if last.line == line => last.end = end,
                _ => out.push(TableLine { end, line }),
            }
            true
        });
        // Behind the end of a table there is no line, either.
        out.pop_if(|last| last.line == 0);
    }

    /// Passes on the positions of a part of a frame, ascending and without gaps, until `each` returns false.
    fn walk(
        &self,
        calls: &Calls,
        frame: Frame,
        part: Part,
        mut each: impl FnMut(Position<'a>) -> bool,
    ) {
        let mut at = part.start;
        for child in calls.inside(frame, part) {
            if !self.walk_own(at..child.start, &mut each) {
                return;
            }
            let call = self.inlined.get(child.call as usize).copied().unwrap_or_default();
            if !each(Position { end: child.end, file: call.file, line: call.line }) {
                return;
            }
            at = child.end;
        }
        self.walk_own(at..part.end, &mut each);
    }

    /// The same for addresses where no call was inlined into the frame.
    fn walk_own(&self, range: Range<u32>, each: &mut impl FnMut(Position<'a>) -> bool) -> bool {
        let mut at = range.start;
        let mut next = self.lines.partition_point(|line| line.offset <= at);
        while at < range.end {
            let behind = self.lines.get(next).map_or(self.size, |line| line.offset);
            let end = behind.min(range.end);
            let current = next.checked_sub(1).and_then(|current| self.lines.get(current));
            let (file, line) = current.map_or((&b""[..], 0), |line| (line.file, line.line));
            if at < end && !each(Position { end, file, line }) {
                return false;
            }
            // Of several lines at one offset, the last one applies.
            at = end;
            next += 1;
        }
        true
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)] // a list of one range is what is meant
mod tests {
    use super::*;

    const HERE: &str = "here.lang";

    fn source(lines: &[Line<'_>], inlined: &[Inlined<'_>], size: u32, frame: Frame) -> String {
        let calls = Calls::of(inlined, size);
        let lines = Lines::of(lines, inlined, size);
        String::from_utf8(lines.source(&calls, frame).to_vec()).unwrap()
    }

    /// End and line of each entry, for each part of a frame.
    fn tables(
        lines: &[Line<'_>],
        inlined: &[Inlined<'_>],
        size: u32,
        frame: Frame,
    ) -> std::vec::Vec<std::vec::Vec<(u32, u32)>> {
        let calls = Calls::of(inlined, size);
        let lines = Lines::of(lines, inlined, size);
        let source = lines.source(&calls, frame);
        let parts = calls.parts_of(frame).map(|part| {
            let mut table = Vec::new();
            lines.table(&mut table, &calls, frame, part, source);
            table.iter().map(|entry| (entry.end, entry.line)).collect()
        });
        parts.collect()
    }

    /// The example of `jitprofiling.h`: these ranges have these lines, and this is the table for them.
    #[test]
    fn the_example_of_the_header_gives_its_table() {
        let ranges = [(0, 2), (1, 4), (12, 2), (15, 1), (18, 30)];
        let lines = ranges.map(|(offset, line)| Line::new(offset, HERE, line));
        let table = [(1, 2), (12, 4), (15, 2), (18, 1), (21, 30)];
        assert_eq!(tables(&lines, &[], 21, None), [table]);
    }

    #[test]
    fn a_table_has_the_lines_of_one_file() {
        let lines = [
            Line::new(2, HERE, 7),
            Line::new(4, "other.lang", 8),
            Line::new(6, HERE, 9),
            Line::new(8, HERE, 9),
            Line::new(9, HERE, 0),
        ];
        assert_eq!(source(&lines, &[], 12, None), HERE);
        assert_eq!(tables(&lines, &[], 12, None), [[(2, 0), (4, 7), (6, 0), (9, 9)]]);
    }

    #[test]
    fn invalid_lines_are_left_out() {
        let lines = [
            Line::new(0, HERE, 1),
            Line::new(4, HERE, 2),
            Line::new(4, HERE, 3),
            Line::new(2, HERE, 4),
            Line::new(8, HERE, 5),
            Line::new(u32::MAX, HERE, 6),
        ];
        assert_eq!(tables(&lines, &[], 8, None), [[(4, 1), (8, 3)]]);
        assert_eq!(tables(&lines, &[], 9, None), [[(4, 1), (8, 3), (9, 5)]]);
        assert_eq!(tables(&[], &[], 9, None), [[]]);
        assert_eq!(source(&[], &[], 9, None), "");
        assert!(tables(&lines, &[], 0, None).is_empty());
    }

    /// The code itself, a call in two ranges, a call within that in another file, and one whose place is unknown.
    #[test]
    fn each_frame_has_its_own_lines_and_those_of_the_calls_in_it() {
        let lines = [
            Line::new(0, HERE, 1),
            Line::new(4, "lib.lang", 20),
            Line::new(8, "other.lang", 30),
            Line::new(12, "lib.lang", 21),
            Line::new(16, HERE, 2),
            Line::new(24, "lib.lang", 22),
            Line::new(28, HERE, 3),
            Line::new(32, "far.lang", 40),
        ];
        let calls = [
            Inlined::new("outer", &[4..16, 24..28]).called_from(HERE, 7),
            Inlined::new("inner", &[8..12]).called_from("lib.lang", 25).within(0),
            Inlined::new("far", &[32..36]),
        ];
        let expected = [(4, 1), (16, 7), (24, 2), (28, 7), (32, 3)];
        assert_eq!(tables(&lines, &calls, 40, None), [expected]);
        let outer = [&[(4, 20), (8, 25), (12, 21)][..], &[(4, 22)]];
        assert_eq!(tables(&lines, &calls, 40, Some(0)), outer);
        assert_eq!(tables(&lines, &calls, 40, Some(1)), [[(4, 30)]]);
        assert_eq!(tables(&lines, &calls, 40, Some(2)), [[(4, 40)]]);
        let sources = [None, Some(0), Some(1), Some(2), Some(3)];
        let sources = sources.map(|frame| source(&lines, &calls, 40, frame));
        assert_eq!(sources, [HERE, "lib.lang", "other.lang", "far.lang", ""]);
    }

    #[test]
    fn a_frame_without_lines_of_its_own_has_the_file_of_its_calls() {
        let lines = [Line::new(0, "lib.lang", 20)];
        let calls = [Inlined::new("all", &[0..8]).called_from(HERE, 7)];
        assert_eq!(source(&lines, &calls, 8, None), HERE);
        assert_eq!(tables(&lines, &calls, 8, None), [[(8, 7)]]);
    }
}
