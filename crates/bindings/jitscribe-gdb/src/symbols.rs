//! Converts codes to what gdb accepts: tables of lines and names.
//!
//! gdb has one line table per *symtab*, which belongs to one source file. gdb assumes that a symtab covers everything
//! from its first block to its last. So adjacent codes of one file make one symtab, up to the next code of another file
//! or the next gap that may contain something else.

use std::ffi::{CString, c_int};

use jitdump::CodeLoad;
use jitdump::extension::InlinedCall;

use crate::abi::LineMapping;

/// A gap of this size may contain a page of something else.
const GAP: u64 = 4096;

/// Adjacent codes of one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SymtabRun {
    /// Its source file; empty if not known.
    pub(crate) file: CString,
    pub(crate) blocks: Vec<NamedRange>,
    /// Ascending by address.
    pub(crate) lines: Vec<LineMapping>,
}

/// A code's range and name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: CString,
}

impl SymtabRun {
    fn end(&self) -> Option<u64> {
        self.blocks.last().map(|block| block.end)
    }

    fn takes(&self, start: u64, file: &CString) -> bool {
        self.file == *file && self.end().is_some_and(|end| start.saturating_sub(end) < GAP)
    }
}

/// Adds a code whose address is above all others.
pub(crate) fn add(runs: &mut Vec<SymtabRun>, code: &CodeLoad<'_>) {
    let (file, lines) = lines(code);
    if !runs.last().is_some_and(|run| run.takes(code.address, &file)) {
        runs.push(SymtabRun { file, ..SymtabRun::default() });
    }
    let Some(run) = runs.last_mut() else { return };
    // The space between two codes has no line.
    if let Some(end) = run.end()
        && end < code.address
        && !run.lines.is_empty()
    {
        run.lines.push(LineMapping { line: 0, pc: end });
    }
    run.lines.extend(lines);
    run.blocks.push(NamedRange { start: code.address, end: code.end(), name: text(code.name) });
}

/// The file in which a code begins, and its lines in that file. Where a function of another file was inlined, the line is
/// that of the call.
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
    // V8's lines do not always ascend. Of several at one address, the last one is valid.
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

/// The line of the innermost call in `file` around an address; 0 if there is none.
fn call_line(calls: &[InlinedCall<'_>], address: u64, file: &[u8]) -> u32 {
    // Callers come before callees.
    let is_here = |call: &&InlinedCall<'_>| {
        call.file == file && call.ranges.clone().any(|range| range.contains(&address))
    };
    calls.iter().rev().find(is_here).map_or(0, |call| call.line)
}

/// Text up to a NUL, with `?` for characters that would control the terminal on which gdb prints it.
fn text(bytes: &[u8]) -> CString {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let text: Vec<u8> = printable::replaced(text, "?").flatten().copied().collect();
    CString::new(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn control_characters_in_names_are_replaced() {
        assert_eq!(text(b"a\x1b[2Jb\0c").as_bytes(), b"a?[2Jb");
        assert_eq!(
            text("gr\u{f6}\u{df}e \u{9b}31m\u{202e}".as_bytes()).as_bytes(),
            "gr\u{f6}\u{df}e ?31m?".as_bytes()
        );
    }
}
