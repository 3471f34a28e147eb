//! What an image takes from a jitdump.

use std::ops::Range;

use code_image::{Code, EhFrame, Endian, Line};
use jitdump::{CodeLoad, Dump};

/// The byte order of a dump's machine, for its image.
pub fn endian(dump: &Dump<'_>) -> Endian {
    match dump.header().endian {
        jitdump::Endian::Little => Endian::Little,
        jitdump::Endian::Big => Endian::Big,
    }
}

/// What an image shows of `load` when it begins at `start`: code that moved takes its lines along.
/// `lines` is room that is used again for each code.
pub fn shown<'l, 'a>(
    load: &CodeLoad<'a>,
    start: u64,
    visible: Range<u64>,
    lines: &'l mut Vec<Line<'a>>,
) -> Code<'l>
where
    'a: 'l,
{
    lines.clear();
    lines.extend(load.lines().map(|line| Line {
        address: line.address.wrapping_sub(load.address).wrapping_add(start),
        file: line.file,
        line: line.line,
        column: line.column,
    }));
    Code {
        start,
        size: load.size,
        visible,
        name: load.name,
        bytes: load.bytes,
        lines,
        inlined: &[],
        unwind: load.unwind().map(|unwind| EhFrame { bytes: unwind.eh_frame }),
        thumb: load.is_thumb,
    }
}
