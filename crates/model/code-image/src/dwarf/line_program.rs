//! `.debug_line`: the line table of one unit as a program for DWARF's line number machine.

use super::constants::*;
use super::files::FileTable;
use super::rows::Row;
use crate::encode::Encoder;
use crate::target::Target;

// A special opcode advances address and line at once; these constants define by how much.
const LINE_BASE: i64 = -5;
const LINE_RANGE: u64 = 14;
const OPCODE_BASE: u8 = 13;
/// Operand counts of the standard opcodes 1 to 12.
const OPERANDS: [u8; OPCODE_BASE as usize - 1] = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];

/// A size that most headers do not exceed.
const HEADER: usize = 128;

/// The line table of one unit.
#[derive(Debug, Clone)]
pub(super) struct LineProgram {
    target: Target,
    files: FileTable,
    opcodes: Encoder,
}

/// The registers of the line number machine that are used here.
struct Registers {
    address: u64,
    file: u64,
    line: u32,
    column: u32,
}

impl LineProgram {
    pub(super) fn new(target: Target) -> Self {
        LineProgram { target, files: FileTable::new(target), opcodes: Encoder::new(target) }
    }

    /// Removes everything, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.files.clear();
        self.opcodes.bytes.clear();
    }

    pub(super) fn files(&mut self) -> &mut FileTable {
        &mut self.files
    }

    /// Adds the rows of one function, which ends at `end`.
    ///
    /// Every contiguous part with lines is a separate sequence. The end of a sequence gives the last row its length,
    /// and prevents code without lines from belonging to the previous row.
    pub(super) fn function(&mut self, rows: &[Row<'_>], end: u64) {
        let mut registers = None;
        for row in rows {
            if row.line == 0 {
                self.end_sequence(registers.take(), row.address);
            } else {
                let before = registers.take().unwrap_or_else(|| self.begin(row.address));
                registers = Some(self.row(before, row));
            }
        }
        self.end_sequence(registers, end);
    }

    fn row(&mut self, registers: Registers, row: &Row<'_>) -> Registers {
        let file = self.files.number(row.file);
        let out = &mut self.opcodes;
        if file != registers.file {
            out.u8(DW_LNS_SET_FILE);
            out.uleb(file);
        }
        if row.column != registers.column {
            out.u8(DW_LNS_SET_COLUMN);
            out.uleb(u64::from(row.column));
        }
        let mut line = i64::from(row.line).wrapping_sub(i64::from(registers.line));
        let mut address = row.address.saturating_sub(registers.address);
        if !(LINE_BASE..LINE_BASE + LINE_RANGE as i64).contains(&line) {
            out.u8(DW_LNS_ADVANCE_LINE);
            out.sleb(line);
            line = 0;
        }
        let line_part = line.wrapping_sub(LINE_BASE) as u64;
        let room = u64::from(u8::MAX - OPCODE_BASE).saturating_sub(line_part) / LINE_RANGE;
        if address > room {
            out.u8(DW_LNS_ADVANCE_PC);
            out.uleb(address);
            address = 0;
        }
        if line == 0 && address == 0 {
            out.u8(DW_LNS_COPY);
        } else {
            // at most 255, because of the limit `room`
            let advance = line_part.saturating_add(LINE_RANGE.saturating_mul(address));
            out.u8(OPCODE_BASE.saturating_add(advance as u8));
        }
        Registers { address: row.address, file, line: row.line, column: row.column }
    }

    fn begin(&mut self, address: u64) -> Registers {
        self.opcodes.u8(0);
        self.opcodes.uleb(u64::from(self.target.address_size()) + 1);
        self.opcodes.u8(DW_LNE_SET_ADDRESS);
        self.opcodes.word(address);
        Registers { address, file: 1, line: 1, column: 0 }
    }

    fn end_sequence(&mut self, registers: Option<Registers>, end: u64) {
        if let Some(registers) = registers {
            self.opcodes.u8(DW_LNS_ADVANCE_PC);
            self.opcodes.uleb(end.saturating_sub(registers.address));
            self.opcodes.raw(&[0, 1, DW_LNE_END_SEQUENCE]);
        }
    }

    /// Appends header and program; returns the offset at which they begin.
    pub(super) fn write(&self, out: &mut Encoder) -> u64 {
        let mut header = Encoder::new(self.target);
        header.bytes.reserve(HEADER);
        header.u8(1); // minimum instruction length: addresses count in bytes
        header.u8(1); // operations per instruction
        header.u8(1); // every row is a statement
        header.u8(LINE_BASE as u8);
        header.u8(LINE_RANGE as u8);
        header.u8(OPCODE_BASE);
        header.raw(&OPERANDS);
        self.files.write(&mut header);

        let offset = out.len();
        let version_and_header_length = 2 + 4;
        out.u32((version_and_header_length + header.len() + self.opcodes.len()) as u32);
        out.u16(4);
        out.u32(header.len() as u32);
        out.raw(&header.bytes);
        out.raw(&self.opcodes.bytes);
        offset
    }
}
