//! Converts line entries to rows of a line table.

use fallible::Vec;

use crate::code::VisibleCode;

/// A row: from `address` on, up to the next row, the code belongs to `line`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    pub(crate) address: u64,
    /// Path; empty if there is no line.
    pub(crate) file: &'a [u8],
    /// 0: belongs to no line.
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Row<'_> {
    fn same_place(&self, other: &Row<'_>) -> bool {
        (self.line, self.column, self.file) == (other.line, other.column, other.file)
    }
}

/// The rows for the visible part of a code, with addresses mapped by `place`: sorted, each address once (the last
/// entry applies), clipped, without repetitions, beginning with a real line.
pub(crate) fn rows<'a>(code: &VisibleCode<'a>, place: impl Fn(u64) -> u64) -> Vec<Row<'a>> {
    let (visible, lines) = (&code.visible, code.code.lines);
    let whole = code.range();
    let size = whole.end.saturating_sub(whole.start);
    let mut sorted = Vec::new();
    let lines = if lines.is_sorted_by_key(|line| line.offset) {
        lines
    } else {
        sorted.extend_from_slice(lines);
        sorted.sort_by_key(|line| u64::from(line.offset)); // stable: equal entries keep their order
        &sorted
    };
    let mut rows: Vec<Row<'a>> = Vec::with_capacity(lines.len());
    for line in lines.iter().filter(|line| u64::from(line.offset) < size) {
        let address = whole.start.saturating_add(line.offset.into());
        if address >= visible.end {
            break;
        }
        // the entry that applies at the start of the visible part may be before it
        let address = place(address.max(visible.start));
        let row = if line.line == 0 || line.file.is_empty() {
            Row { address, file: b"", line: 0, column: 0 }
        } else {
            Row { address, file: line.file, line: line.line, column: line.column }
        };
        rows.pop_if(|previous| previous.address == address);
        let says_more = match rows.last() {
            Some(previous) => !row.same_place(previous),
            None => row.line != 0,
        };
        if says_more {
            rows.push(row);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use jit_code::{Code, Line};

    use super::rows as rows_of;
    use crate::code::VisibleCode;

    const START: u64 = 100;

    fn line(address: u64, line: u32) -> Line<'static> {
        // An address before the start wraps, and so is far behind the end.
        Line::new(address.wrapping_sub(START) as u32, "f", line).column(1)
    }

    fn rows(lines: &[Line<'static>], visible: Range<u64>) -> Vec<(u64, u32)> {
        let code = VisibleCode::whole(Code::at(START, 100).lines(lines)).visible(visible);
        rows_of(&code, |address| address).iter().map(|row| (row.address, row.line)).collect()
    }

    #[test]
    fn entries_are_sorted_and_the_last_of_an_address_wins() {
        let lines = [line(120, 3), line(100, 1), line(110, 2), line(110, 7), line(120, 4)];
        assert_eq!(rows(&lines, 100..200), [(100, 1), (110, 7), (120, 4)]);
    }

    #[test]
    fn entries_outside_of_the_code_are_dropped() {
        let lines = [line(99, 1), line(100, 2), line(199, 3), line(200, 4)];
        assert_eq!(rows(&lines, 100..200), [(100, 2), (199, 3)]);
    }

    #[test]
    fn the_entry_in_force_moves_to_the_start_of_the_visible_part() {
        let lines = [line(120, 3), line(100, 1), line(130, 4), line(160, 5)];
        assert_eq!(rows(&lines, 125..160), [(125, 3), (130, 4)]);
        assert_eq!(rows(&lines, 130..160), [(130, 4)]);
    }

    #[test]
    fn repetitions_vanish_and_gaps_stay() {
        let lines =
            [line(100, 0), line(110, 1), line(120, 1), line(130, 0), line(140, 0), line(150, 1)];
        assert_eq!(rows(&lines, 100..200), [(110, 1), (130, 0), (150, 1)]);
        assert_eq!(rows(&[line(100, 0)], 100..200), []);
    }

    #[test]
    fn an_entry_without_a_file_is_a_gap() {
        let nowhere = Line::new(10, "", 9).column(9);
        assert_eq!(rows(&[line(100, 1), nowhere], 100..200), [(100, 1), (110, 0)]);
    }
}
