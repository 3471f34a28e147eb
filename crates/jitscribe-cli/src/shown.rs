//! What an image takes from a jitdump.

use std::ops::Range;

use code_image::{Code, EhFrame, Endian, Inlined, Line, Target};
use jitdump::CodeLoad;
use jitdump::extension::code::FramePointer;
use unwind_info::{Machine, Unwind};

/// The byte order of a dump's machine, for its image.
pub fn endian(of_dump: jitdump::Endian) -> Endian {
    match of_dump {
        jitdump::Endian::Little => Endian::Little,
        jitdump::Endian::Big => Endian::Big,
    }
}

/// Which lines an image shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LineTable {
    /// Lines of the source, and the calls inlined
    #[default]
    Source,
    /// Lines of the bytecode or intermediate representation, where the dump has them
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

impl Room<'_> {
    /// For an image of this machine's code.
    pub fn new(target: Target) -> Self {
        let machine = Machine::from_elf(target.machine.into());
        Self { machine, lines: Vec::new(), ranges: Vec::new(), frames: Vec::new() }
    }
}

/// Gives `take` what an image shows of `load` when it begins at `start`: code that moved takes its
/// lines along.
pub fn shown<'a, T>(
    load: &CodeLoad<'a>,
    start: u64,
    visible: Range<u64>,
    table: LineTable,
    room: &mut Room<'a>,
    take: impl FnOnce(&Code<'_>) -> T,
) -> T {
    let here = |address: u64| address.wrapping_sub(load.address).wrapping_add(start);
    let line = |line: jitdump::LineEntry<'a>| Line {
        address: here(line.address),
        file: line.file,
        line: line.line,
        column: line.column,
    };
    room.lines.clear();
    room.ranges.clear();
    let mut inlined = Vec::new();
    if table == LineTable::Ir {
        room.lines.extend(load.ir_lines().map(line));
    }
    // Lines of the IR tell no place in what was inlined.
    if room.lines.is_empty() {
        room.lines.extend(load.lines().map(line));
        for call in load.inlined() {
            room.ranges.extend(call.ranges.map(|range| here(range.start)..here(range.end)));
        }
        let mut rest = room.ranges.as_slice();
        for call in load.inlined() {
            let (ranges, behind) = rest.split_at(call.ranges.count());
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
    room.frames.clear();
    if load.unwind().is_none() {
        frame_pointer_tables(load, room.machine, &mut room.frames);
    }
    let tables = load.unwind().map(|unwind| unwind.eh_frame);
    let frames = tables.or((!room.frames.is_empty()).then_some(room.frames.as_slice()));
    take(&Code {
        start,
        size: load.size,
        visible,
        name: load.name,
        bytes: load.bytes,
        lines: &room.lines,
        inlined: &inlined,
        unwind: frames.map(|bytes| EhFrame { bytes }),
        thumb: load.is_thumb,
    })
}

/// The tables of code of which is only told that it keeps a frame pointer.
fn frame_pointer_tables(load: &CodeLoad<'_>, machine: Option<Machine>, out: &mut Vec<u8>) {
    let unwind = match load.frame_pointer() {
        Some(FramePointer::Prologue) => Unwind::FRAME_POINTER,
        Some(FramePointer::Throughout) => Unwind::FramePointerAlways { signed: false },
        None => return,
    };
    let Some((machine, distance)) = machine.zip(unwind_info::offset_behind(load.size)) else {
        return;
    };
    let Ok(distance) = i64::try_from(distance) else { return };
    // What cannot be described is left out; names and lines are not.
    let _ = unwind_info::eh_frame(machine, load.size, distance, &unwind, out);
}
