//! From a jitdump's code load to the [`Code`] of an object file: lines, inlined calls, unwind tables.
//!
//! [`Converter::convert`] does all of it; [`frames`] finds the unwind tables alone.

mod frames;

use std::ops::Range;

use fallible::Vec;

use ::jitdump::{CodeLoad, LineEntry};
use unwind_info::Machine;

use crate::{Code, EhFrame, Inlined, Line};

pub use frames::{Frames, frame_pointer, frames};

/// Which lines an image shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineTable {
    /// Those of the source, and the calls inlined.
    #[default]
    Source,
    /// Those of the bytecode or intermediate representation, where the dump has them.
    Ir,
}

/// Converts one code load after another, with the same memory for all.
#[derive(Debug)]
pub struct Converter<'a> {
    machine: Option<Machine>,
    lines: Vec<Line<'a>>,
    ranges: Vec<Range<u64>>,
    frames: Vec<u8>,
}

impl<'a> Converter<'a> {
    /// For code of the machine with this `e_machine`. Where the dump says only that code keeps a frame pointer, unwind tables are made
    /// for the machines that [`Machine`] has.
    #[must_use]
    pub fn new(elf_machine: u32) -> Self {
        let machine = Machine::from_elf(elf_machine);
        Self { machine, lines: Vec::new(), ranges: Vec::new(), frames: Vec::new() }
    }

    /// Passes `take` the code of `load` as it is when it begins at `start` (code that moved takes its lines along), and owns only the
    /// addresses `visible`.
    pub fn convert<T>(
        &mut self,
        load: &CodeLoad<'a>,
        start: u64,
        visible: Range<u64>,
        table: LineTable,
        take: impl FnOnce(&Code<'_>) -> T,
    ) -> T {
        let here = |address: u64| address.wrapping_sub(load.address).wrapping_add(start);
        let line = |line: LineEntry<'a>| Line {
            address: here(line.address),
            file: line.file,
            line: line.line,
            column: line.column,
        };
        self.lines.clear();
        self.ranges.clear();
        let mut inlined = Vec::new();
        if table == LineTable::Ir {
            self.lines.extend(load.ir_lines().map(line));
        }
        // Lines of the IR do not refer to inlined functions.
        if self.lines.is_empty() {
            self.lines.extend(load.lines().map(line));
            for call in load.inlined() {
                self.ranges.extend(call.ranges.map(|range| here(range.start)..here(range.end)));
            }
            let mut rest = self.ranges.as_slice();
            for call in load.inlined() {
                // As many as were collected for this call.
                let (ranges, behind) =
                    rest.split_at_checked(call.ranges.count()).unwrap_or_default();
                rest = behind;
                inlined.push(Inlined {
                    name: call.name,
                    parent: call.parent,
                    call_file: call.file,
                    call_line: call.line,
                    call_column: call.column,
                    ranges,
                });
            }
        }
        let frames = frames(load, self.machine, &mut self.frames);
        take(&Code {
            start,
            size: load.size,
            visible,
            name: load.name,
            bytes: load.bytes,
            lines: &self.lines,
            inlined: &inlined,
            unwind: frames.map(|frames| EhFrame { bytes: frames.bytes }),
            thumb: load.is_thumb,
        })
    }
}
