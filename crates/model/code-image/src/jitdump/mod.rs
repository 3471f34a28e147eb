//! From a jitdump's code load to the [`VisibleCode`] of an object file: lines, inlined calls, unwind tables.
//!
//! [`Converter::convert`] does all of it; [`frames`] finds the unwind tables alone.

mod frames;

use std::ops::Range;

use fallible::Vec;

use ::jitdump::extension::InlinedCall;
use ::jitdump::{CodeLoad, LineEntry};
use jit_code::{Code, Inlined, Line, Unwind};
use unwind_info::Machine;

use crate::VisibleCode;

pub use frames::{Frames, frame_pointer, frames};
pub use unwind_info::Reader;

/// Which lines an image shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineTable {
    /// Those of the source, and the calls inlined.
    #[default]
    Source,
    /// Those of the bytecode or intermediate representation, where the dump has them.
    Ir,
}

/// A position in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position<'a> {
    /// Path; empty for unknown.
    pub file: &'a [u8],
    /// Line from 1, or 0 if unknown.
    pub line: u32,
    /// Column from 1, or 0 if unknown.
    pub column: u32,
}

/// Converts one code load after another, with the same memory for all.
#[derive(Debug)]
pub struct Converter<'a> {
    machine: Option<Machine>,
    reader: Reader,
    lines: Vec<Line<'a>>,
    ranges: Vec<Range<u32>>,
    frames: Vec<u8>,
}

impl<'a> Converter<'a> {
    /// For code of the machine with this `e_machine`. Where the dump says only that code keeps a frame pointer, unwind tables are made
    /// for the machines that [`Machine`] has.
    #[must_use]
    pub fn new(elf_machine: u32) -> Self {
        let machine = Machine::from_elf(elf_machine);
        let (lines, ranges, frames) = (Vec::new(), Vec::new(), Vec::new());
        Self { machine, reader: Reader::Unwinder, lines, ranges, frames }
    }

    /// The same, with unwind tables for this reader.
    #[must_use]
    pub fn for_reader(self, reader: Reader) -> Self {
        Self { reader, ..self }
    }

    /// Passes `take` the code of `load` as it is when it begins at `start` (code that moved takes its lines along), and owns only the
    /// addresses `visible`.
    pub fn convert<T>(
        &mut self,
        load: &CodeLoad<'a>,
        start: u64,
        visible: Range<u64>,
        table: LineTable,
        take: impl FnOnce(&VisibleCode<'_>) -> T,
    ) -> T {
        self.convert_with(load, start, visible, table, None, |position| position, take)
    }

    /// The same with each position replaced by the one that `place` returns for it. Code without lines is at `whole`.
    #[expect(clippy::too_many_arguments, reason = "each says another thing of the one code")]
    pub fn convert_with<T>(
        &mut self,
        load: &CodeLoad<'a>,
        start: u64,
        visible: Range<u64>,
        table: LineTable,
        whole: Option<Position<'a>>,
        place: impl Fn(Position<'a>) -> Position<'a>,
        take: impl FnOnce(&VisibleCode<'_>) -> T,
    ) -> T {
        // A dump's lines and ranges are within the code, which is smaller than 4 GiB, as its records are.
        let offset = |address: u64| u32::try_from(address.wrapping_sub(load.address));
        let line = |entry: LineEntry<'a>| {
            let LineEntry { file, line, column, .. } = entry;
            let place = place(Position { file, line, column });
            let line = Line::new_bytes(offset(entry.address).ok()?, place.file, place.line);
            Some(line.column(place.column))
        };
        self.lines.clear();
        self.ranges.clear();
        let mut inlined = Vec::new();
        if table == LineTable::Ir {
            self.lines.extend(load.ir_lines().filter_map(line));
        }
        // Lines of the IR do not refer to inlined functions.
        if self.lines.is_empty() {
            self.lines.extend(load.lines().filter_map(line));
            for call in load.inlined() {
                let offset = |address| offset(address).unwrap_or(u32::MAX);
                self.ranges.extend(call.ranges.map(|range| offset(range.start)..offset(range.end)));
            }
            let mut rest = self.ranges.as_slice();
            for call in load.inlined() {
                // As many as were collected for this call.
                let (ranges, behind) =
                    rest.split_at_checked(call.ranges.count()).unwrap_or_default();
                rest = behind;
                let InlinedCall { file, line, column, .. } = call;
                let from = place(Position { file, line, column });
                inlined.push(
                    Inlined::new_bytes(call.name, ranges)
                        .called_from_bytes(from.file, from.line)
                        .column(from.column)
                        .within(call.parent),
                );
            }
        }
        if let (true, Some(whole)) = (self.lines.is_empty(), whole) {
            self.lines.push(Line::new_bytes(0, whole.file, whole.line).column(whole.column));
        }
        let frames = frames(load, self.machine, self.reader, &mut self.frames);
        let mut code =
            Code::at(start, load.size).named_bytes(load.name).lines(&self.lines).inlined(&inlined);
        code.bytes = Some(load.bytes);
        code.unwind = frames.map(|frames| Unwind::EhFrame(frames.bytes));
        take(&VisibleCode::whole(code).visible(visible).thumb(load.is_thumb))
    }
}
