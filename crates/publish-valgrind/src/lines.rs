//! `.debug_line`: one sequence of rows for each code.

use crate::code::Line;
use crate::encode::Encode;
use crate::files::Files;

const LINE_BASE: i8 = -5;
const LINE_RANGE: u8 = 14;
const OPCODE_BASE: u8 = 13;

const COPY: u8 = 1;
const ADVANCE_PC: u8 = 2;
const ADVANCE_LINE: u8 = 3;
const SET_FILE: u8 = 4;
const SET_BASIC_BLOCK: u8 = 7;
/// Where a sequence has its address: behind the introduction of an extended opcode.
const ADDRESS_AT: usize = 3;

/// What a code's rows came to.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// Offset in the code of the first instruction that has a line.
    pub(crate) first: Option<u32>,
    /// The highest number of a file.
    pub(crate) file: u32,
}

/// Appends a code's rows, nothing if it has none.
pub(crate) fn push<'l>(
    out: &mut Vec<u8>,
    files: &mut Files,
    (address, size): (u64, u64),
    lines: impl Iterator<Item = Line<'l>>,
) -> Rows {
    let mut rows = Rows::default();
    let (mut at, mut file, mut line) = (None, 1, 1);
    for row in lines {
        let from = at.unwrap_or(0);
        if row.offset < from || u64::from(row.offset) >= size {
            continue;
        }
        if at.is_none() {
            out.extend_from_slice(&[0, 9, 2]); // DW_LNE_set_address
            out.u64(address);
        }
        if row.line > 0 {
            rows.first = rows.first.or(Some(row.offset));
        }
        let number = files.number(row.file);
        rows.file = rows.file.max(number);
        if number != file {
            out.push(SET_FILE);
            out.uleb(number.into());
            file = number;
        }
        push_row(out, row.offset - from, i64::from(row.line) - line);
        line = i64::from(row.line);
        at = Some(row.offset);
    }
    if let Some(at) = at {
        out.push(ADVANCE_PC);
        out.uleb(size - u64::from(at));
        out.extend_from_slice(&[0, 1, 1]); // DW_LNE_end_sequence
    }
    rows
}

fn push_row(out: &mut Vec<u8>, distance: u32, lines: i64) {
    let short = i8::try_from(lines).ok().and_then(|lines| lines.checked_sub(LINE_BASE));
    if let Some(lines @ 0..) = short
        && (lines as u8) < LINE_RANGE
    {
        let special =
            u64::from(distance) * u64::from(LINE_RANGE) + lines as u64 + u64::from(OPCODE_BASE);
        if let Ok(special) = u8::try_from(special) {
            out.push(special);
            return;
        }
    }
    out.push(ADVANCE_PC);
    out.uleb(distance.into());
    out.push(ADVANCE_LINE);
    out.sleb(lines);
    out.push(COPY);
}

/// The rows of an address that is no code's: by it, valgrind can be asked whether it knows the table.
pub(crate) fn mark(address: u64) -> Vec<u8> {
    let mut out = vec![0, 9, 2]; // DW_LNE_set_address
    out.u64(address);
    push_row(&mut out, 0, 0);
    out.extend_from_slice(&[ADVANCE_PC, 1, 0, 1, 1]); // DW_LNE_end_sequence
    out
}

/// The rows say nothing any more.
pub(crate) fn silence(sequence: &mut [u8]) {
    // Means nothing to anybody, and has no operands.
    sequence.fill(SET_BASIC_BLOCK);
}

/// The code lies elsewhere now.
pub(crate) fn move_to(sequence: &mut [u8], address: u64) {
    if !sequence.is_empty() {
        crate::encode::put(sequence, ADDRESS_AT, address.to_le_bytes());
    }
}

/// What stands before the rows, whose size is known: DWARF 4, which all versions of valgrind in
/// use read.
pub(crate) fn header(files: (&[u8], &[u8]), rows: usize) -> Vec<u8> {
    let mut tables = vec![1, 1, 1, LINE_BASE as u8, LINE_RANGE, OPCODE_BASE];
    tables.extend_from_slice(&[0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]); // operands of opcodes
    tables.extend_from_slice(files.0);
    tables.push(0);
    tables.extend_from_slice(files.1);
    tables.push(0);
    let mut out = Vec::with_capacity(tables.len() + 10);
    out.u32((tables.len() + rows + 6) as u32);
    out.u16(4);
    out.u32(tables.len() as u32);
    out.append(&mut tables);
    out
}
