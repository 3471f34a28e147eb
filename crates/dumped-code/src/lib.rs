//! What a jitdump tells of a code, as those take it who make object files of code.
//!
//! [`Room::shown`] makes one [`code_image::Code`] of one [`CodeLoad`]; [`frames`] finds the unwind tables alone.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

mod frames;

use std::ops::Range;

use code_image::{Code, EhFrame, Endian, Inlined, Line};
use jitdump::CodeLoad;
use unwind_info::Machine;

pub use frames::{Frames, frame_pointer, frames};

/// The byte order of a dump's machine, for its image.
#[must_use]
pub fn endian(of_dump: jitdump::Endian) -> Endian {
    match of_dump {
        jitdump::Endian::Little => Endian::Little,
        jitdump::Endian::Big => Endian::Big,
    }
}

/// Which lines an image shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineTable {
    /// Those of the source, and the calls inlined.
    #[default]
    Source,
    /// Those of the bytecode or intermediate representation, where the dump has them.
    Ir,
}

/// Room that is used again for each code of an image.
#[derive(Debug)]
pub struct Room<'a> {
    machine: Option<Machine>,
    lines: Vec<Line<'a>>,
    ranges: Vec<Range<u64>>,
    frames: Vec<u8>,
}

impl<'a> Room<'a> {
    /// For code of the machine with this `e_machine`. On others no frames are made for code of which a dump says no more
    /// than that it keeps a frame pointer.
    #[must_use]
    pub fn new(elf_machine: u32) -> Self {
        let machine = Machine::from_elf(elf_machine);
        Self { machine, lines: Vec::new(), ranges: Vec::new(), frames: Vec::new() }
    }

    /// Gives `take` what an image shows of `load` when it begins at `start`, of which only `visible` is its own: code
    /// that moved takes its lines along.
    pub fn shown<T>(
        &mut self,
        load: &CodeLoad<'a>,
        start: u64,
        visible: Range<u64>,
        table: LineTable,
        take: impl FnOnce(&Code<'_>) -> T,
    ) -> T {
        let here = |address: u64| address.wrapping_sub(load.address).wrapping_add(start);
        let line = |line: jitdump::LineEntry<'a>| Line {
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
        // Lines of the IR tell no place in what was inlined.
        if self.lines.is_empty() {
            self.lines.extend(load.lines().map(line));
            for call in load.inlined() {
                self.ranges.extend(call.ranges.map(|range| here(range.start)..here(range.end)));
            }
            let mut rest = self.ranges.as_slice();
            for call in load.inlined() {
                // As many as were put there for it.
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
