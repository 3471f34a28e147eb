//! Code as those take it who make object files.

use code_image::{EhFrame, Inlined, Line};
use jitdump::extension::code::FramePointer;
use jitdump::{CodeEvent, CodeLoad, Dump};
use unwind_info::{Machine, Unwind};

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
    let lines: Vec<Line<'_>> = load
        .lines()
        .map(|line| Line {
            address: line.address,
            file: line.file,
            line: line.line,
            column: line.column,
        })
        .collect();
    let ranges: Vec<_> = load.inlined().flat_map(|call| call.ranges).collect();
    let mut rest = ranges.as_slice();
    let inlined: Vec<Inlined<'_>> = load
        .inlined()
        .map(|call| {
            let (ranges, behind) = rest.split_at(call.ranges.count());
            rest = behind;
            Inlined {
                name: call.name,
                parent: call.parent,
                call_file: call.file,
                call_line: call.line,
                call_column: call.column,
                ranges,
            }
        })
        .collect();
    let mut frames = Vec::new();
    let tables = match load.unwind() {
        Some(unwind) => unwind.eh_frame,
        None => {
            if let Some(unwind) = frame_pointer(&load) {
                frame_tables(load.size, &unwind, &mut frames);
            }
            &frames
        }
    };
    show(&code_image::Code {
        start: load.address,
        size: load.size,
        visible: load.address..load.end(),
        name: load.name,
        lines: &lines,
        inlined: &inlined,
        unwind: (!tables.is_empty()).then_some(EhFrame { bytes: tables }),
        thumb: load.is_thumb,
        ..code_image::Code::default()
    });
}

fn frame_pointer(load: &CodeLoad<'_>) -> Option<Unwind<'static>> {
    Some(match load.frame_pointer()? {
        FramePointer::Prologue => Unwind::FRAME_POINTER,
        FramePointer::Throughout => Unwind::FramePointerAlways { signed: false },
    })
}

/// Tables as they stand behind the code. What cannot be described is left out; names and lines are not.
fn frame_tables(size: u64, unwind: &Unwind<'_>, out: &mut Vec<u8>) {
    let distance = unwind_info::offset_behind(size).and_then(|at| i64::try_from(at).ok());
    if let Some((machine, distance)) = Machine::from_elf(MACHINE).zip(distance) {
        out.reserve(256);
        let _ = unwind_info::eh_frame(machine, size, distance, unwind, out);
    }
}
