//! What an image takes from a jitdump.

use std::ops::Range;

use code_image::{Code, EhFrame, Endian, Inlined, Line};
use jitdump::{CodeLoad, Dump};

/// The byte order of a dump's machine, for its image.
pub fn endian(dump: &Dump<'_>) -> Endian {
    match dump.header().endian {
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

/// Room that is used again for each code.
#[derive(Debug, Default)]
pub struct Room<'a> {
    lines: Vec<Line<'a>>,
    ranges: Vec<Range<u64>>,
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
    take(&Code {
        start,
        size: load.size,
        visible,
        name: load.name,
        bytes: load.bytes,
        lines: &room.lines,
        inlined: &inlined,
        unwind: load.unwind().map(|unwind| EhFrame { bytes: unwind.eh_frame }),
        thumb: load.is_thumb,
    })
}
