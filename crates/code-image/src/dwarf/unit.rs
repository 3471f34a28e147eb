//! One compilation unit: `.debug_info`, `.debug_abbrev`, `.debug_ranges`, `.debug_aranges`.

use std::ops::Range;

use super::Sections;
use super::constants::*;
use super::line_program::LineProgram;
use super::rows::Row;
use crate::encode::Encoder;
use crate::printable::{ascii, push_printable};
use crate::target::Target;

const UNIT_OF_ONE_RANGE: u64 = 1;
const UNIT_OF_RANGES: u64 = 2;
const FUNCTION: u64 = 3;
const FUNCTION_WITHOUT_LINES: u64 = 4;

/// The name of a unit none of whose functions has lines.
const NO_SOURCE: &[u8] = b"<no source>";

const PRODUCER: &[u8] = concat!("code-image ", env!("CARGO_PKG_VERSION")).as_bytes();

/// Gaps up to this size between functions count as padding, and as part of the unit.
const PADDING: u64 = 64;

/// An abbreviation: code, tag, whether it has children, attributes with their forms.
type Abbreviation = (u64, u64, u8, &'static [(u64, u64)]);

/// The abbreviations that all units share.
pub(super) fn abbreviations(out: &mut Encoder) {
    const NO_CHILDREN: u8 = 0;
    const CHILDREN: u8 = 1;
    let declarations: [Abbreviation; 4] = [
        (
            UNIT_OF_ONE_RANGE,
            DW_TAG_COMPILE_UNIT,
            CHILDREN,
            &[
                (DW_AT_PRODUCER, DW_FORM_STRING),
                (DW_AT_LANGUAGE, DW_FORM_DATA1),
                (DW_AT_NAME, DW_FORM_STRING),
                (DW_AT_STMT_LIST, DW_FORM_SEC_OFFSET),
                (DW_AT_LOW_PC, DW_FORM_ADDR),
                (DW_AT_HIGH_PC, DW_FORM_UDATA),
            ],
        ),
        (
            UNIT_OF_RANGES,
            DW_TAG_COMPILE_UNIT,
            CHILDREN,
            &[
                (DW_AT_PRODUCER, DW_FORM_STRING),
                (DW_AT_LANGUAGE, DW_FORM_DATA1),
                (DW_AT_NAME, DW_FORM_STRING),
                (DW_AT_STMT_LIST, DW_FORM_SEC_OFFSET),
                (DW_AT_LOW_PC, DW_FORM_ADDR),
                (DW_AT_RANGES, DW_FORM_SEC_OFFSET),
            ],
        ),
        (
            FUNCTION,
            DW_TAG_SUBPROGRAM,
            NO_CHILDREN,
            &[
                (DW_AT_EXTERNAL, DW_FORM_FLAG_PRESENT),
                (DW_AT_NAME, DW_FORM_STRING),
                (DW_AT_DECL_FILE, DW_FORM_UDATA),
                (DW_AT_DECL_LINE, DW_FORM_UDATA),
                (DW_AT_LOW_PC, DW_FORM_ADDR),
                (DW_AT_HIGH_PC, DW_FORM_UDATA),
            ],
        ),
        (
            FUNCTION_WITHOUT_LINES,
            DW_TAG_SUBPROGRAM,
            NO_CHILDREN,
            &[
                (DW_AT_EXTERNAL, DW_FORM_FLAG_PRESENT),
                (DW_AT_NAME, DW_FORM_STRING),
                (DW_AT_LOW_PC, DW_FORM_ADDR),
                (DW_AT_HIGH_PC, DW_FORM_UDATA),
            ],
        ),
    ];
    for (code, tag, children, attributes) in declarations {
        out.uleb(code);
        out.uleb(tag);
        out.u8(children);
        for &(attribute, form) in attributes {
            out.uleb(attribute);
            out.uleb(form);
        }
        out.raw(&[0, 0]);
    }
    out.u8(0);
}

/// A unit that is being filled.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) functions: usize,
    pub(super) rows: usize,
    /// The file of the first function with lines stands for the unit.
    name: Vec<u8>,
    entries: Encoder,
    lines: LineProgram,
    ranges: Vec<Range<u64>>,
}

impl Unit {
    pub(super) fn new(target: Target) -> Self {
        Unit {
            functions: 0,
            rows: 0,
            name: Vec::new(),
            entries: Encoder::new(target),
            lines: LineProgram::new(target),
            ranges: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, name: &[u8], start: u64, end: u64, rows: &[Row<'_>]) {
        self.functions += 1;
        self.rows += rows.len();

        let name = ascii(name);
        let out = &mut self.entries;
        match rows.first() {
            Some(first) => {
                if self.name.is_empty() {
                    push_printable(first.file, &mut self.name);
                }
                out.uleb(FUNCTION);
                out.string(&name);
                out.uleb(self.lines.files().number(first.file));
                out.uleb(u64::from(first.line));
            }
            None => {
                out.uleb(FUNCTION_WITHOUT_LINES);
                out.string(&name);
            }
        }
        out.word(start);
        out.uleb(end.saturating_sub(start));

        self.lines.function(rows, end);

        match self.ranges.last_mut() {
            Some(last) if start.saturating_sub(last.end) <= PADDING => last.end = end,
            _ => self.ranges.push(start..end),
        }
    }

    pub(super) fn write(self, target: Target, sections: &mut Sections) {
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
        let length = unit.len() + self.entries.len() + end_of_children;
        sections.info.u32(length as u32);
        sections.info.raw(&unit.bytes);
        sections.info.raw(&self.entries.bytes);
        sections.info.u8(0);

        address_ranges(target, info_offset, &self.ranges, &mut sections.aranges);
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
