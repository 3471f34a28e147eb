//! Code as those take it who make object files.

use fallible::Vec;

use code_image::jitdump::{Converter, LineTable};
use code_image::{EhFrame, Endian, Inlined, Line, Target};
use jit_code::{Code, elf_machine};
use jitdump::{CodeEvent, CodeLoad, Dump};
use unwind_info::Unwind;

use crate::log::MACHINE;

/// The machine that this process runs on.
pub(crate) fn target() -> Target {
    Target::new(elf_machine::NATIVE, Endian::NATIVE)
}

/// A code as it is announced, without unwind info that is no ready section.
pub(crate) fn announced(code: &Code<'_>, show: impl FnOnce(&code_image::Code<'_>)) {
    let at = |offset: u32| code.address.wrapping_add(offset.into());
    let line = |line: &jit_code::Line<'_>| (at(line.offset), line.line, line.column);
    let lines: Vec<Line<'_>> = code
        .lines
        .iter()
        .map(|entry| {
            let (address, line, column) = line(entry);
            Line { address, file: entry.file, line, column }
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
            // Too few, if memory was refused for them.
            let (ranges, behind) = rest.split_at_checked(call.ranges.len()).unwrap_or_default();
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

/// The one code of a dump, as its record has it.
pub(crate) fn record(dump: &[u8]) -> Option<CodeLoad<'_>> {
    Dump::parse(dump).ok()?.codes().find_map(|event| match event {
        Ok(CodeEvent::Load(load)) => Some(load),
        _ => None,
    })
}

/// The one code of a dump.
pub(crate) fn logged(dump: &[u8], show: impl FnOnce(&code_image::Code<'_>)) {
    let Some(load) = record(dump) else { return };
    let visible = load.address..load.end();
    Converter::new(MACHINE).convert(&load, load.address, visible, LineTable::Source, show);
}
