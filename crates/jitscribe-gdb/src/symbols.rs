//! What gdb is told of codes: tables of lines and names.
//!
//! gdb has one line table for a *symtab*, which is of one source file, and takes all from its first block to its last
//! for it. So codes of one file that lie side by side make one symtab, up to the next code of another file or the next
//! gap in which something else may lie.

use std::ffi::{CString, c_int};

use jitdump::CodeLoad;
use jitdump::extension::InlinedCall;

use crate::abi::LineMapping;

/// A gap of so many bytes may hold a page of someone else.
const GAP: u64 = 4096;

/// Codes of one file, side by side.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    /// Its source file; empty if none is known.
    pub(crate) file: CString,
    pub(crate) blocks: Vec<Named>,
    /// Ascending by address.
    pub(crate) lines: Vec<LineMapping>,
}

/// A code's range and name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: CString,
}

impl Run {
    fn end(&self) -> Option<u64> {
        self.blocks.last().map(|block| block.end)
    }

    fn takes(&self, start: u64, file: &CString) -> bool {
        self.file == *file && self.end().is_some_and(|end| start.saturating_sub(end) < GAP)
    }
}

/// Adds a code that lies behind all others.
pub(crate) fn add(runs: &mut Vec<Run>, code: &CodeLoad<'_>) {
    let (file, lines) = lines(code);
    if !runs.last().is_some_and(|run| run.takes(code.address, &file)) {
        runs.push(Run { file, ..Run::default() });
    }
    let Some(run) = runs.last_mut() else { return };
    // What lies between two codes is of no line.
    if let Some(end) = run.end()
        && end < code.address
        && !run.lines.is_empty()
    {
        run.lines.push(LineMapping { line: 0, pc: end });
    }
    run.lines.extend(lines);
    run.blocks.push(Named { start: code.address, end: code.end(), name: text(code.name) });
}

/// The file in which a code begins, and its lines there. Where a call to a function of another file was inlined, the line
/// is that of the call.
fn lines(code: &CodeLoad<'_>) -> (CString, Vec<LineMapping>) {
    let Some(file) = code.lines().find(|line| line.line != 0).map(|line| line.file) else {
        return (CString::default(), Vec::new());
    };
    let calls: Vec<InlinedCall<'_>> = code.inlined().collect();
    let mut mappings: Vec<LineMapping> = code
        .lines()
        .map(|line| {
            let number = match line.file == file {
                true => line.line,
                false => call_line(&calls, line.address, file),
            };
            LineMapping { line: c_int::try_from(number).unwrap_or(0), pc: line.address }
        })
        .collect();
    // V8's do not always ascend, and of several at one address the last counts.
    mappings.sort_by_key(|mapping| mapping.pc);
    mappings.dedup_by(|later, kept| {
        let is_same = later.pc == kept.pc;
        if is_same {
            kept.line = later.line;
        }
        is_same
    });
    (text(file), mappings)
}

/// The line of the innermost call around an address that stands in `file`; 0 if there is none.
fn call_line(calls: &[InlinedCall<'_>], address: u64, file: &[u8]) -> u32 {
    // Callers come before callees.
    let is_here = |call: &&InlinedCall<'_>| {
        call.file == file && call.ranges.clone().any(|range| range.contains(&address))
    };
    calls.iter().rev().find(is_here).map_or(0, |call| call.line)
}

/// Text up to a NUL.
fn text(bytes: &[u8]) -> CString {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}
