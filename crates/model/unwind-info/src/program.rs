//! Encodes rows as call frame instructions. Only changes are written.

use alloc::vec::Vec;

use crate::error::Error;
use crate::machine::Machine;
use jit_code::{Row, leb128};

/// `DW_CFA_advance_loc`, with the distance in its low six bits; the variants with 1, 2 and 4 bytes behind it.
const ADVANCE: u8 = 0x40;
const ADVANCE_1: u8 = 0x02;
const ADVANCE_2: u8 = 0x03;
const ADVANCE_4: u8 = 0x04;
/// `DW_CFA_offset`, with the register in its low six bits; the variants for any register, and for a negative number.
const OFFSET: u8 = 0x80;
const OFFSET_EXTENDED: u8 = 0x05;
const OFFSET_EXTENDED_SF: u8 = 0x11;
/// `DW_CFA_restore`, with the register in its low six bits; the variant for any register.
const RESTORE: u8 = 0xc0;
const RESTORE_EXTENDED: u8 = 0x06;
/// `DW_CFA_undefined`.
const UNDEFINED: u8 = 0x07;
/// `DW_CFA_def_cfa` and its variants.
const DEF_CFA: u8 = 0x0c;
const DEF_CFA_REGISTER: u8 = 0x0d;
const DEF_CFA_OFFSET: u8 = 0x0e;
const DEF_CFA_SF: u8 = 0x12;
const DEF_CFA_OFFSET_SF: u8 = 0x13;
/// `DW_CFA_AARCH64_negate_ra_state`.
const NEGATE_RA_STATE: u8 = 0x2d;
/// The pseudo-register that it negates, and that no other instruction may change.
const RA_SIGN_STATE: u16 = 34;

/// Register numbers are below this.
const REGISTERS: usize = 128;
/// Registers below this fit into the opcode.
const SHORT: u8 = 64;

/// Appends the instructions that lead from the CIE's state through `rows`.
pub(crate) fn encode<'a>(
    machine: Machine,
    code_size: u32,
    rows: impl IntoIterator<Item = &'a Row<'a>>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let mut state = State::new(machine);
    let mut program = Program { out, unit: machine.code_alignment(), written: 0, due: 0 };
    let mut next = 0;
    for (number, row) in rows.into_iter().enumerate() {
        if row.offset < next {
            return Err(Error::RowOrder { row: number });
        }
        if row.offset >= code_size {
            return Err(Error::RowOutside { row: number });
        }
        if !row.offset.is_multiple_of(program.unit) {
            return Err(Error::Alignment { offset: row.offset });
        }
        next = row.offset.saturating_add(1);
        program.due = row.offset;
        state.become_row(machine, number, row, &mut program)?;
    }
    Ok(())
}

/// Appends that the values of these registers in the caller are not known, from the last row on.
pub(crate) fn undefine(registers: impl Iterator<Item = u8>, out: &mut Vec<u8>) {
    for register in registers {
        out.extend_from_slice(&[UNDEFINED, register]);
    }
}

/// The state after the instructions so far.
struct State {
    cfa_register: u16,
    cfa_offset: i32,
    signed: bool,
    /// A bit for each register that is saved in another location than in the CIE.
    saved: u128,
    /// These locations, as factored distances.
    places: [i32; REGISTERS],
}

impl State {
    fn new(machine: Machine) -> Self {
        Self {
            cfa_register: machine.stack_pointer(),
            cfa_offset: machine.entry_cfa_offset(),
            signed: false,
            saved: 0,
            places: [0; REGISTERS],
        }
    }

    fn become_row(
        &mut self,
        machine: Machine,
        number: usize,
        row: &Row<'_>,
        program: &mut Program<'_>,
    ) -> Result<(), Error> {
        let factored = |distance: i32| {
            // Division by -8 is exact for multiples of 8.
            let exact = distance.checked_rem(machine.data_alignment()) == Some(0);
            let quotient = distance.checked_div(machine.data_alignment());
            quotient.filter(|_| exact).ok_or(Error::Unit { row: number })
        };
        if row.signed && machine != Machine::Aarch64 {
            return Err(Error::Signed);
        }
        if row.signed != self.signed {
            program.op(NEGATE_RA_STATE);
            self.signed = row.signed;
        }

        // libgcc ends the process if the CFA is computed from another register (`_Unwind_GetGR` in `unwind-dw2.c`).
        if row.cfa_register >= machine.general_registers() {
            return Err(Error::Register { row: number, register: row.cfa_register });
        }
        let register = small(row.cfa_register, number)?;
        let (same_register, same_offset) =
            (row.cfa_register == self.cfa_register, row.cfa_offset == self.cfa_offset);
        match (same_register, same_offset, u32::try_from(row.cfa_offset)) {
            (true, true, _) => {}
            (false, true, _) => {
                program.op(DEF_CFA_REGISTER);
                program.byte(register);
            }
            (true, false, Ok(offset)) => {
                program.op(DEF_CFA_OFFSET);
                leb128::unsigned(offset.into(), |byte| program.out.push(byte));
            }
            (true, false, Err(_)) => {
                let offset = factored(row.cfa_offset)?;
                program.op(DEF_CFA_OFFSET_SF);
                leb128::signed(offset.into(), |byte| program.out.push(byte));
            }
            (false, false, Ok(offset)) => {
                program.op(DEF_CFA);
                program.byte(register);
                leb128::unsigned(offset.into(), |byte| program.out.push(byte));
            }
            (false, false, Err(_)) => {
                let offset = factored(row.cfa_offset)?;
                program.op(DEF_CFA_SF);
                program.byte(register);
                leb128::signed(offset.into(), |byte| program.out.push(byte));
            }
        }
        (self.cfa_register, self.cfa_offset) = (row.cfa_register, row.cfa_offset);

        let mut mentioned = 0_u128;
        let mut saved = 0_u128;
        for &(register, offset) in row.saved {
            let short = small(register, number)?;
            if machine == Machine::Aarch64 && register == RA_SIGN_STATE {
                return Err(Error::Register { row: number, register });
            }
            let bit = 1_u128.unbounded_shl(short.into());
            if mentioned & bit != 0 {
                return Err(Error::SavedTwice { row: number, register });
            }
            mentioned |= bit;
            if register == machine.return_address()
                && machine.return_address_offset() == Some(offset)
            {
                // The CIE already contains this.
                continue;
            }
            saved |= bit;
            let place = factored(offset)?;
            let known = self.places.get_mut(usize::from(short));
            let known = known.ok_or(Error::Register { row: number, register })?;
            if self.saved & bit == 0 || *known != place {
                program.save(short, place);
                *known = place;
            }
        }
        let mut gone = self.saved & !saved;
        while gone != 0 {
            if let Ok(register) = u8::try_from(gone.trailing_zeros()) {
                program.restore(register);
            }
            gone &= gone.wrapping_sub(1);
        }
        self.saved = saved;
        Ok(())
    }
}

/// A register's number as one byte, which is also its LEB128 encoding.
fn small(register: u16, row: usize) -> Result<u8, Error> {
    let found = u8::try_from(register).ok().filter(|short| usize::from(*short) < REGISTERS);
    found.ok_or(Error::Register { row, register })
}

/// The instructions being written.
struct Program<'o> {
    out: &'o mut Vec<u8>,
    unit: u32,
    /// The offset in code that the instructions have advanced to.
    written: u32,
    /// The offset from which the next instruction applies.
    due: u32,
}

impl Program<'_> {
    /// Writes an opcode, after advancing to the offset that is due.
    fn op(&mut self, opcode: u8) {
        self.advance();
        self.byte(opcode);
    }

    fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    fn advance(&mut self) {
        if self.due == self.written {
            return;
        }
        let units = self.due.saturating_sub(self.written).checked_div(self.unit).unwrap_or(0);
        self.written = self.due;
        match (u8::try_from(units), u16::try_from(units)) {
            (Ok(units @ ..0x40), _) => self.byte(ADVANCE | units),
            (Ok(units), _) => self.out.extend_from_slice(&[ADVANCE_1, units]),
            (_, Ok(units)) => {
                self.byte(ADVANCE_2);
                self.out.extend_from_slice(&units.to_le_bytes());
            }
            _ => {
                self.byte(ADVANCE_4);
                self.out.extend_from_slice(&units.to_le_bytes());
            }
        }
    }

    fn save(&mut self, register: u8, place: i32) {
        match u32::try_from(place) {
            Ok(place) => {
                if register < SHORT {
                    self.op(OFFSET | register);
                } else {
                    self.op(OFFSET_EXTENDED);
                    self.byte(register);
                }
                leb128::unsigned(place.into(), |byte| self.out.push(byte));
            }
            Err(_) => {
                self.op(OFFSET_EXTENDED_SF);
                self.byte(register);
                leb128::signed(place.into(), |byte| self.out.push(byte));
            }
        }
    }

    fn restore(&mut self, register: u8) {
        if register < SHORT {
            self.op(RESTORE | register);
        } else {
            self.op(RESTORE_EXTENDED);
            self.byte(register);
        }
    }
}
