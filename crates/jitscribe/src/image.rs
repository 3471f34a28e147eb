//! Code as those take it who make object files.

use code_image::{EhFrame, Inlined, Line};
use dumped_code::{LineTable, Room};
use jitdump::{CodeEvent, Dump};
use unwind_info::Unwind;

use crate::code::Code;
use crate::log::MACHINE;

/// A code as it is announced, without unwind info that is no ready section.
pub(crate) fn announced(code: &Code<'_>, show: impl FnOnce(&code_image::Code<'_>)) {
    let at = |offset: u32| code.address.wrapping_add(offset.into());
    let line = |line: &crate::code::Line<'_>| (at(line.offset), line.line, line.column);
    let lines: Vec<Line<'_>> = code
        .lines
        .iter()
        .map(|entry| {
            let (address, line, column) = line(entry);
            Line { address, file: entry.file.as_bytes(), line, column }
        })
        .collect();
    let ranges: Vec<_> = code
        .inlined
        .iter()
        .flat_map(|call| call.ranges)
        .map(|range| at(range.start)..at(range.end))
        .collect();
    let mut rest = ranges.as_slice();
    let inlined: Vec<Inlined<'_>> = code
        .inlined
        .iter()
        .map(|call| {
            let (ranges, behind) = rest.split_at(call.ranges.len());
            rest = behind;
            Inlined {
                name: call.name.as_bytes(),
                parent: call.parent,
                call_file: call.file.as_bytes(),
                call_line: call.line,
                call_column: call.column,
                ranges,
            }
        })
        .collect();
    let ready = match code.unwind {
        Some(Unwind::EhFrame(bytes)) => Some(EhFrame { bytes }),
        _ => None,
    };
    let shown = code_image::Code {
        start: code.address,
        size: code.size,
        visible: code.address..code.address.saturating_add(code.size),
        name: code.name,
        lines: &lines,
        inlined: &inlined,
        unwind: ready,
        ..code_image::Code::default()
    };
    show(&shown);
}

/// The one code of a dump.
pub(crate) fn logged(dump: &[u8], show: impl FnOnce(&code_image::Code<'_>)) {
    let Ok(dump) = Dump::parse(dump) else { return };
    let load = dump.codes().find_map(|event| match event {
        Ok(CodeEvent::Load(load)) => Some(load),
        _ => None,
    });
    let Some(load) = load else { return };
    let visible = load.address..load.end();
    Room::new(MACHINE).shown(&load, load.address, visible, LineTable::Source, show);
}
