//! A position-independent compilation unit of one function: concatenated with others of this kind it forms sections
//! of debug info.
//!
//! Only these depend on its position: the offset of its line table, at a fixed place, and those of range lists, whose
//! places are listed. Names are inside it, and not in a separate section.

use fallible::Vec;

use super::abbreviations::{
    Attribute, CALL_PLACE, DECLARATION, EXTERNAL_NAME, FUNCTION, FUNCTION_WITHOUT_LINES,
    INLINED_FUNCTION, ONE_RANGE, ORIGIN, RANGES, call, declare, with_calls,
};
use super::calls::Calls;
use super::constants::*;
use super::line_program::LineProgram;
use super::numbers::Numbers;
use super::rows::Row;
use super::unit::{NO_SOURCE, declaration};
use crate::encode::Encoder;
use crate::printable::push_printable;
use crate::spare::Spare;
use crate::target::Target;

/// Offset of the kind of a unit's root, which takes one byte.
pub(crate) const UNIT_ROOT_AT: usize = 11;
/// Offset of the reference to the unit's line table.
pub(crate) const UNIT_LINES_AT: usize = 12;
/// The kind of root of an empty unit.
pub(crate) const EMPTY_UNIT: u8 = 2;

/// The kind of root that makes the whole unit meaningless bytes: their number follows.
pub(crate) const DEAD_UNIT: u8 = 16;
/// An entry of meaningless bytes, whose number follows, and an entry without such bytes.
pub(crate) const FILLER: u8 = 17;
pub(crate) const FILLER_BYTE: u8 = 18;

/// A size that a function's parts rarely exceed.
const USUAL: usize = 192;

/// The kind of root of all other units.
const UNIT: u64 = 1;

/// The debug info of one function.
#[derive(Debug)]
pub(crate) struct Single {
    /// Its unit; empty if there is no debug info.
    pub(crate) info: Encoder,
    pub(crate) line: Encoder,
    pub(crate) ranges: Encoder,
    /// Offsets in `info` of the references to lists in `ranges`.
    pub(crate) lists: Vec<u32>,
}

impl Single {
    /// Encodes the debug info of the function at `start..end`. `name` must be printable.
    pub(crate) fn new(
        target: Target,
        name: &[u8],
        start: u64,
        end: u64,
        rows: &[Row<'_>],
        calls: &Calls<'_>,
    ) -> Self {
        let [info, line] =
            SPARE.take().unwrap_or_default().map(|bytes| Encoder::with_room(target, bytes));
        let mut single = Single { info, line, ranges: Encoder::new(target), lists: Vec::new() };
        if !rows.is_empty() || !calls.is_empty() {
            let mut lines = lines_of(target);
            single.info.bytes.reserve(USUAL.saturating_add(name.len()));
            single.line.bytes.reserve(USUAL);
            single.write(target, &mut lines, name, (start, end), rows, calls);
            LINES.keep((target, lines));
        }
        single
    }

    /// Keeps its memory for the next one.
    pub(crate) fn give_back(self) {
        let room = [self.info.bytes, self.line.bytes];
        if room.iter().all(|bytes| bytes.capacity() <= SPARE_ROOM) {
            SPARE.keep(room);
        }
    }

    fn write(
        &mut self,
        target: Target,
        lines: &mut LineProgram,
        name: &[u8],
        (start, end): (u64, u64),
        rows: &[Row<'_>],
        calls: &Calls<'_>,
    ) {
        let declaration = declaration(rows, calls);
        let size = end.saturating_sub(start);

        let out = &mut self.info;
        out.u32(0); // length, filled in below
        out.u16(4); // DWARF version
        out.u32(0); // offset in .debug_abbrev
        out.u8(target.address_size());
        out.uleb(UNIT);
        out.u32(0); // in .debug_line
        out.u8(DW_LANG_C);
        match declaration {
            Some((file, _)) => push_printable(file, &mut out.bytes),
            None => out.raw(NO_SOURCE),
        }
        out.u8(0);
        out.word(start);
        out.uleb(size);

        let origins = origins(out, calls);
        let has_calls = !calls.is_empty();
        if let Some((file, line)) = declaration {
            out.uleb(with_calls(FUNCTION, has_calls));
            out.string(name);
            out.uleb(lines.files().number(file));
            out.uleb(u64::from(line));
        } else {
            out.uleb(with_calls(FUNCTION_WITHOUT_LINES, has_calls));
            out.string(name);
        }
        out.word(start);
        out.uleb(size);
        if has_calls {
            self.tree(lines, calls, &origins, start);
        }
        self.info.u8(0);
        let length = self.info.len().saturating_sub(4);
        self.info.set_u32(0, length as u32);

        lines.function(rows, end);
        lines.write(&mut self.line);
    }

    /// Writes the entries of the calls, up to the end of the function's children.
    fn tree(
        &mut self,
        lines: &mut LineProgram,
        calls: &Calls<'_>,
        origins: &[u32],
        base_of_ranges: u64,
    ) {
        let depths = calls.iter().map(|call| call.depth);
        // after the last call comes the next sibling of the function
        let next_depths = depths.skip(1).map(Some).chain([None]);
        for ((inlined, next_depth), &origin) in calls.iter().zip(next_depths).zip(origins) {
            let parts = calls.parts(inlined);
            let place = inlined.place();
            let has_calls = next_depth > Some(inlined.depth);
            let out = &mut self.info;
            out.uleb(call(has_calls, parts.len() != 1, place.is_some()));
            out.u32(origin);
            if let Some((file, line, column)) = place {
                out.uleb(lines.files().number(file));
                out.uleb(u64::from(line));
                out.uleb(u64::from(column));
            }
            if let [part] = parts {
                out.word(part.start);
                out.uleb(part.end.saturating_sub(part.start));
            } else {
                self.lists.push(out.len() as u32);
                out.u32(self.ranges.len() as u32);
                for part in parts {
                    self.ranges.word(part.start.saturating_sub(base_of_ranges));
                    self.ranges.word(part.end.saturating_sub(base_of_ranges));
                }
                self.ranges.word(0);
                self.ranges.word(0);
            }
            // the ends of the calls around this one that do not contain the next call
            for _ in next_depth.unwrap_or(0)..inlined.depth {
                out.u8(0);
            }
        }
        self.info.u8(0);
    }
}

/// Maximum capacity of a buffer that is kept.
const SPARE_ROOM: usize = 16 << 10;

/// Buffers for the debug info of one function.
static SPARE: Spare<[Vec<u8>; 2]> = Spare::new();
/// Buffers for line tables.
static LINES: Spare<(Target, LineProgram)> = Spare::new();

fn lines_of(target: Target) -> LineProgram {
    match LINES.take() {
        Some((of, mut lines)) if of == target => {
            lines.clear();
            lines
        }
        _ => LineProgram::new(target),
    }
}

/// The offsets in the unit of the called functions, in the order of the calls.
fn origins(out: &mut Encoder, calls: &Calls<'_>) -> Vec<u32> {
    let mut names = Numbers::default();
    // By the number of the function's name, from 1.
    let mut of_names: Vec<u32> = Vec::from_array([0]);
    let mut origins = Vec::with_capacity(calls.iter().len());
    for call in calls.iter() {
        let name = call.inlined.name;
        let number = names.get(name).unwrap_or_else(|| {
            of_names.push(out.len() as u32);
            out.uleb(INLINED_FUNCTION);
            push_printable(if name.is_empty() { b"<unnamed>" } else { name }, &mut out.bytes);
            out.u8(0);
            out.u8(DW_INL_INLINED);
            names.insert(name)
        });
        origins.push(of_names.get(number as usize).copied().unwrap_or_default());
    }
    origins
}

/// The abbreviations that all units of one function share.
pub(crate) fn single_abbreviations(out: &mut Encoder) {
    declare_singles(out);
    out.u8(0);
}

/// Writes [`single_abbreviations`], and those of empty and meaningless entries.
pub(crate) fn entry_abbreviations(out: &mut Encoder) {
    const BYTES: &[Attribute] = &[(DW_AT_LO_USER, DW_FORM_BLOCK)];
    declare_singles(out);
    declare(out, DEAD_UNIT.into(), DW_TAG_COMPILE_UNIT, false, &[BYTES]);
    declare(out, FILLER.into(), DW_TAG_LO_USER, false, &[BYTES]);
    declare(out, FILLER_BYTE.into(), DW_TAG_LO_USER, false, &[]);
    out.u8(0);
}

fn declare_singles(out: &mut Encoder) {
    const ATTRIBUTES: &[Attribute] = &[
        (DW_AT_STMT_LIST, DW_FORM_SEC_OFFSET),
        (DW_AT_LANGUAGE, DW_FORM_DATA1),
        (DW_AT_NAME, DW_FORM_STRING),
    ];
    const ABSTRACT: &[Attribute] = &[(DW_AT_NAME, DW_FORM_STRING), (DW_AT_INLINE, DW_FORM_DATA1)];
    declare(out, UNIT, DW_TAG_COMPILE_UNIT, true, &[ATTRIBUTES, ONE_RANGE]);
    declare(out, u64::from(EMPTY_UNIT), DW_TAG_COMPILE_UNIT, false, &[]);
    for has_calls in [false, true] {
        for (code, attributes) in [
            (FUNCTION, &[EXTERNAL_NAME, DECLARATION, ONE_RANGE][..]),
            (FUNCTION_WITHOUT_LINES, &[EXTERNAL_NAME, ONE_RANGE]),
        ] {
            declare(out, with_calls(code, has_calls), DW_TAG_SUBPROGRAM, has_calls, attributes);
        }
    }
    declare(out, INLINED_FUNCTION, DW_TAG_SUBPROGRAM, false, &[ABSTRACT]);
    for kind in 0..8 {
        let [has_calls, has_ranges, has_place] = [1, 2, 4].map(|bit| kind & bit != 0);
        let place = if has_place { CALL_PLACE } else { &[] };
        let extent = if has_ranges { RANGES } else { ONE_RANGE };
        let attributes = [ORIGIN, place, extent];
        let code = call(has_calls, has_ranges, has_place);
        declare(out, code, DW_TAG_INLINED_SUBROUTINE, has_calls, &attributes);
    }
}
