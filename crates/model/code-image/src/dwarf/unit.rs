//! One compilation unit: `.debug_info`, `.debug_ranges`, `.debug_aranges`.

use std::ops::Range;

use fallible::Vec;

use super::abbreviations::{
    FUNCTION, FUNCTION_WITHOUT_LINES, UNIT_OF_ONE_RANGE, UNIT_OF_RANGES, with_calls,
};
use super::calls::Calls;
use super::constants::DW_LANG_C;
use super::inlining::Inlining;
use super::line_program::LineProgram;
use super::names::Names;
use super::rows::Row;
use super::sections::Sections;
use crate::encode::Encoder;
use crate::printable::{ascii, push_printable};
use crate::target::Target;

/// The name of a unit whose functions have no lines.
pub(super) const NO_SOURCE: &[u8] = b"<no source>";

const PRODUCER: &[u8] = concat!("code-image ", env!("CARGO_PKG_VERSION")).as_bytes();

/// Gaps up to this size between functions are treated as padding, and as part of the unit.
const PADDING: u64 = 64;

/// Number of functions in one compilation unit.
///
/// Readers find the unit through `.debug_aranges` and then read all of it. Some of them walk a list of functions or
/// line sequences from its start, so units must be small. Each unit costs about 150 bytes and has its own file table,
/// so they must not be tiny.
const FUNCTIONS_PER_UNIT: usize = 512;
/// Number of rows after which a unit ends, regardless of its number of functions.
const ROWS_PER_UNIT: usize = 1 << 16;
/// Number of inlined calls after which a unit ends, regardless of its number of functions.
const CALLS_PER_UNIT: usize = 1 << 10;

/// A unit being filled, with functions in ascending order of address.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    functions: usize,
    rows: usize,
    inlining: Inlining,
    /// The file of the first function with lines, which is the name of the unit.
    name: Vec<u8>,
    entries: Encoder,
    lines: LineProgram,
    ranges: Vec<Range<u64>>,
}

impl Unit {
    pub(crate) fn new(target: Target) -> Self {
        Unit {
            functions: 0,
            rows: 0,
            inlining: Inlining::default(),
            name: Vec::new(),
            entries: Encoder::new(target),
            lines: LineProgram::new(target),
            ranges: Vec::new(),
        }
    }

    /// Whether it has reached the intended size.
    pub(crate) fn is_full(&self) -> bool {
        self.functions >= FUNCTIONS_PER_UNIT
            || self.rows >= ROWS_PER_UNIT
            || self.inlining.calls >= CALLS_PER_UNIT
    }

    pub(super) fn is_empty(&self) -> bool {
        self.functions == 0
    }

    pub(super) fn has_lines(&self) -> bool {
        self.rows > 0
    }

    pub(super) fn has_calls(&self) -> bool {
        self.inlining.calls > 0
    }

    /// Removes everything, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.functions = 0;
        self.rows = 0;
        self.inlining.clear();
        self.name.clear();
        self.entries.bytes.clear();
        self.lines.clear();
        self.ranges.clear();
    }

    /// Adds the function at `start..end` with its rows and inlined calls, if it has any.
    ///
    /// A function without lines is included too: perf stops requesting lines for a file if it finds no function for
    /// the first 123 addresses that it requests.
    pub(crate) fn add(
        &mut self,
        name: &[u8],
        start: u64,
        end: u64,
        rows: &[Row<'_>],
        calls: &Calls<'_>,
    ) {
        self.functions += 1;
        self.rows += rows.len();

        let origins = self.inlining.origins(&mut self.entries, calls);
        let name = ascii(name);
        let out = &mut self.entries;
        match declaration(rows, calls) {
            Some((file, line)) => {
                if self.name.is_empty() {
                    push_printable(file, &mut self.name);
                }
                out.uleb(with_calls(FUNCTION, !calls.is_empty()));
                out.string(&name);
                out.uleb(self.lines.files().number(file));
                out.uleb(u64::from(line));
            }
            None => {
                out.uleb(with_calls(FUNCTION_WITHOUT_LINES, !calls.is_empty()));
                out.string(&name);
            }
        }
        out.word(start);
        out.uleb(end.saturating_sub(start));
        if !calls.is_empty() {
            self.inlining.tree(out, self.lines.files(), calls, &origins);
        }

        self.lines.function(rows, end);

        match self.ranges.last_mut() {
            Some(last) if start.saturating_sub(last.end) <= PADDING => last.end = end,
            _ => self.ranges.push(start..end),
        }
    }

    /// Writes the unit behind the content of the sections. After that it can only be cleared.
    pub(super) fn write(&mut self, target: Target, names: &mut Names, sections: &mut Sections) {
        let line_offset = self.lines.write(&mut sections.line);
        let info_offset = sections.info.len();

        let mut unit = Encoder::new(target);
        unit.u16(4); // DWARF version
        unit.u32(0); // offset in .debug_abbrev
        unit.u8(target.address_size());
        let one_range = match self.ranges.as_slice() {
            [range] => Some(range),
            _ => None,
        };
        unit.uleb(if one_range.is_some() { UNIT_OF_ONE_RANGE } else { UNIT_OF_RANGES });
        unit.string(PRODUCER);
        unit.u8(DW_LANG_C);
        unit.string(if self.name.is_empty() { NO_SOURCE } else { &self.name });
        unit.u32(line_offset as u32);
        if let Some(range) = one_range {
            unit.word(range.start);
            unit.uleb(range.end.saturating_sub(range.start));
        } else {
            unit.word(0); // ranges are relative to this
            unit.u32(sections.ranges.len() as u32);
            for range in &self.ranges {
                sections.ranges.word(range.start);
                sections.ranges.word(range.end);
            }
            sections.ranges.word(0);
            sections.ranges.word(0);
        }
        let end_of_children = 1;
        let length_field = 4;
        let base = one_range.map_or(0, |range| range.start);
        self.inlining.resolve(
            &mut self.entries,
            length_field + unit.len(),
            base,
            names,
            &mut sections.ranges,
        );
        let length = unit.len() + self.entries.len() + end_of_children;
        sections.info.u32(length as u32);
        sections.info.raw(&unit.bytes);
        sections.info.raw(&self.entries.bytes);
        sections.info.u8(0);

        address_ranges(target, info_offset, &self.ranges, &mut sections.aranges);
    }
}

/// File and line of a function: those of its first row or, if the code of that row was inlined, of the call, which is
/// in the function itself.
pub(super) fn declaration<'a>(
    rows: &'a [Row<'_>],
    calls: &'a Calls<'_>,
) -> Option<(&'a [u8], u32)> {
    let first = rows.first()?;
    match calls.outermost(first.address) {
        None => Some((first.file, first.line)),
        Some(call) => call.place().map(|(file, line, _)| (file, line)),
    }
}

/// One set of `.debug_aranges`: the unit at `info_offset` covers `ranges`.
fn address_ranges(target: Target, info_offset: u64, ranges: &[Range<u64>], out: &mut Encoder) {
    let address = u64::from(target.address_size());
    let after_length = 12 + 2 * address * (ranges.len() as u64 + 1);
    out.u32(after_length as u32);
    out.u16(2); // version of this section
    out.u32(info_offset as u32);
    out.u8(target.address_size());
    out.u8(0); // no segments
    out.u32(0); // tuples are aligned to their size
    for range in ranges {
        out.word(range.start);
        out.word(range.end.saturating_sub(range.start));
    }
    out.word(0);
    out.word(0);
}
