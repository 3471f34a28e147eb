//! `.debug_line`: one sequence of rows for each code.

use fallible::Vec;

use crate::encode::{Encode, put};
use crate::files::Files;
use jit_code::Line;

const LINE_BASE: i8 = -5;
const LINE_RANGE: u8 = 14;
const OPCODE_BASE: u8 = 13;

const COPY: u8 = 1;
const ADVANCE_PC: u8 = 2;
const ADVANCE_LINE: u8 = 3;
const SET_FILE: u8 = 4;
const SET_BASIC_BLOCK: u8 = 7;
/// Offset of the address in a sequence: behind the prefix of an extended opcode.
const ADDRESS_AT: usize = 3;

/// The special opcode that advances neither address nor line.
const NO_STEP: u8 = OPCODE_BASE + LINE_BASE.unsigned_abs();
/// Size of a [`mark`].
pub(crate) const MARK: usize = 17;
/// Size of what precedes the lists of directories and files.
const HEADER: usize = 28;
/// Offsets of the fields that change: the total length, and the length of the tables before the rows.
const LENGTH_AT: usize = 0;
const TABLES_AT: usize = 6;
const EMPTY: [u8; HEADER] = [
    0,
    0,
    0,
    0, // length of what follows
    4,
    0, // version
    0,
    0,
    0,
    0, // length of the tables
    1,
    1,
    1, // units of instructions, rows are statements
    LINE_BASE as u8,
    LINE_RANGE,
    OPCODE_BASE, //
    0,
    1,
    1,
    1,
    1,
    0,
    0,
    0,
    1,
    0,
    0,
    1, // operands of opcodes
];

/// Information about a code's rows.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// Offset in the code of the first instruction that has a line.
    pub(crate) first: Option<u32>,
    /// The highest number of a file.
    pub(crate) file: u32,
}

/// Appends a code's rows; nothing if it has none.
pub(crate) fn push(
    out: &mut Vec<u8>,
    files: &mut Files,
    (address, size): (u64, u64),
    lines: &[Line<'_>],
) -> Rows {
    let mut rows = Rows::default();
    let (mut at, mut file, mut line) = (None, 1, 1);
    // Usually, all rows have the same pointer to the file's name.
    let mut named: Option<(&[u8], u32)> = None;
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
        let number = match named {
            Some((name, number)) if std::ptr::eq(name, row.file) => number,
            _ => files.number(row.file),
        };
        named = Some((row.file, number));
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

/// Rows for an address that belongs to no code: asking Valgrind about it shows whether it has read the table.
pub(crate) fn mark(address: u64) -> [u8; MARK] {
    // DW_LNE_set_address, no distance and no lines, DW_LNE_end_sequence
    let mut mark = [0, 9, 2, 0, 0, 0, 0, 0, 0, 0, 0, NO_STEP, ADVANCE_PC, 1, 0, 1, 1];
    put(&mut mark, ADDRESS_AT, address.to_le_bytes());
    mark
}

/// Disables the rows.
pub(crate) fn tombstone(sequence: &mut [u8]) {
    // An opcode that has no effect for anyone, and no operands.
    sequence.fill(SET_BASIC_BLOCK);
}

/// Sets the address of the code.
pub(crate) fn move_to(sequence: &mut [u8], address: u64) {
    if !sequence.is_empty() {
        put(sequence, ADDRESS_AT, address.to_le_bytes());
    }
}

/// Everything that precedes the lists of directories and files. Each list ends with a zero; then the rows follow;
/// all sizes are known. DWARF 4, which all versions of Valgrind in use read.
pub(crate) fn header(lists: usize, rows: usize) -> [u8; HEADER] {
    let mut header = EMPTY;
    put(&mut header, LENGTH_AT, ((HEADER - 4 + lists + rows) as u32).to_le_bytes());
    put(&mut header, TABLES_AT, ((HEADER - TABLES_AT - 4 + lists) as u32).to_le_bytes());
    header
}
