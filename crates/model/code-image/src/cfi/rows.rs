//! The rows that call frame instructions describe, for formats that have no such instructions.

use fallible::Vec;
use jit_code::Row;

use super::Cause;
use super::cursor::Cursor;
use super::tables::{Fde, UnwindTables};

/// Where the caller's values are.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    cfa_register: u16,
    cfa_offset: i32,
    /// The registers in memory, and their distances from the CFA.
    saved: Vec<(u16, i32)>,
}

impl State {
    fn save(&mut self, register: u16, place: i32) {
        self.forget(register);
        self.saved.push((register, place));
    }

    /// The register has its value.
    fn forget(&mut self, register: u16) {
        self.saved.retain(|(saved, _)| *saved != register);
    }
}

/// The nesting of `remember_state` is limited, as each level is a copy of the state.
const DEEPEST: usize = 64;

/// What instructions depend on, and lead to.
struct Interpreter {
    /// What offsets of registers are multiplied by.
    data_alignment: i64,
    state: State,
    /// The state that the CIE leads to.
    initial: State,
    remembered: Vec<State>,
    offset: u32,
    rows: Vec<(u32, State)>,
}

impl UnwindTables {
    /// Passes each frame description to `take`: the address at which it begins, its size, and its rows, or why they
    /// cannot be had.
    pub(crate) fn each_in_rows(&self, mut take: impl FnMut(u64, u32, Result<&[Row<'_>], Cause>)) {
        for fde in &self.fdes {
            let states = self.states(fde);
            let rows = states.as_ref().map(|states| {
                let rows = states.iter().map(|(offset, state)| {
                    Row::new(*offset, state.cfa_register, state.cfa_offset).saved(&state.saved)
                });
                rows.collect::<Vec<Row<'_>>>()
            });
            take(fde.start, fde.size, rows.as_deref().map_err(|cause| **cause));
        }
    }

    fn states(&self, fde: &Fde) -> Result<Vec<(u32, State)>, Cause> {
        const VERSION_WITH_SHORT_REGISTER: u8 = 1;
        let cie = self.cies.written.get(fde.cie).ok_or(Cause::Malformed)?;
        let mut cie = Cursor::new(self.target, cie, 0);
        // As `Cie::read` writes it.
        let version = cie.u8()?;
        cie.string()?;
        cie.uleb()?;
        let data_alignment = cie.sleb()?;
        if version == VERSION_WITH_SHORT_REGISTER {
            cie.u8()?.into()
        } else {
            cie.uleb()?
        };
        let augmentation = cie.uleb()?;
        cie.split(augmentation)?;

        let nothing = State { cfa_register: u16::MAX, cfa_offset: 0, saved: Vec::new() };
        let mut interpreter = Interpreter {
            data_alignment,
            state: nothing.clone(),
            initial: nothing,
            remembered: Vec::new(),
            offset: 0,
            rows: Vec::new(),
        };
        interpreter.run(cie)?;
        interpreter.initial = interpreter.state.clone();
        let instructions = self.instructions.get(fde.instructions.clone()).unwrap_or_default();
        interpreter.run(Cursor::new(self.target, instructions, 0))?;
        interpreter.end_row();
        Ok(interpreter.rows)
    }
}

impl Interpreter {
    /// Executes instructions as [`Source`](super::instructions::Source) writes them: advances count in bytes.
    fn run(&mut self, mut input: Cursor<'_>) -> Result<(), Cause> {
        const HIGH_BITS: u8 = 0xc0;
        while !input.is_empty() {
            let opcode = input.u8()?;
            let low = opcode & !HIGH_BITS;
            match opcode & HIGH_BITS {
                0x40 => self.advance(low.into())?,
                0x80 => {
                    let factored = input.uleb()?;
                    self.state.save(low.into(), self.factored(signed(factored)?)?);
                }
                0xc0 => self.restore(low.into()),
                _ => self.extended(opcode, &mut input)?,
            }
        }
        Ok(())
    }

    fn extended(&mut self, opcode: u8, input: &mut Cursor<'_>) -> Result<(), Cause> {
        match opcode {
            // advance_loc1, 2, 4
            0x02 => self.advance(input.u8()?.into())?,
            0x03 => self.advance(input.u16()?.into())?,
            0x04 => self.advance(input.u32()?)?,
            // offset_extended, offset_extended_sf
            0x05 => {
                let (register, factored) = (register(input)?, signed(input.uleb()?)?);
                self.state.save(register, self.factored(factored)?);
            }
            0x11 => {
                let (register, factored) = (register(input)?, input.sleb()?);
                self.state.save(register, self.factored(factored)?);
            }
            // restore_extended, same_value
            0x06 => self.restore(register(input)?),
            0x08 => self.state.forget(register(input)?),
            // remember_state, restore_state
            0x0a if self.remembered.len() < DEEPEST => self.remembered.push(self.state.clone()),
            0x0b => self.state = self.remembered.pop().ok_or(Cause::Malformed)?,
            // def_cfa, def_cfa_register, def_cfa_offset
            0x0c => {
                self.state.cfa_register = register(input)?;
                self.state.cfa_offset = small(signed(input.uleb()?)?)?;
            }
            0x0d => self.state.cfa_register = register(input)?,
            0x0e => self.state.cfa_offset = small(signed(input.uleb()?)?)?,
            // def_cfa_sf, def_cfa_offset_sf
            0x12 => {
                self.state.cfa_register = register(input)?;
                self.state.cfa_offset = self.factored(input.sleb()?)?;
            }
            0x13 => self.state.cfa_offset = self.factored(input.sleb()?)?,
            // GNU_args_size: how much a caller pops, which unwinding needs only where exceptions are caught
            0x2e => drop(input.uleb()?),
            _ => return Err(Cause::Unsupported),
        }
        Ok(())
    }

    fn advance(&mut self, distance: u32) -> Result<(), Cause> {
        if distance != 0 {
            self.end_row();
            self.offset = self.offset.checked_add(distance).ok_or(Cause::Malformed)?;
        }
        Ok(())
    }

    /// The state at this offset is complete.
    fn end_row(&mut self) {
        if self.rows.last().is_none_or(|(_, state)| *state != self.state) {
            self.rows.push((self.offset, self.state.clone()));
        }
    }

    fn restore(&mut self, register: u16) {
        let initial = self.initial.saved.iter().find(|(saved, _)| *saved == register);
        match initial.copied() {
            Some((_, place)) => self.state.save(register, place),
            None => self.state.forget(register),
        }
    }

    fn factored(&self, factored: i64) -> Result<i32, Cause> {
        small(factored.checked_mul(self.data_alignment).ok_or(Cause::Malformed)?)
    }
}

fn register(input: &mut Cursor<'_>) -> Result<u16, Cause> {
    u16::try_from(input.uleb()?).map_err(|_| Cause::Unsupported)
}

fn signed(number: u64) -> Result<i64, Cause> {
    i64::try_from(number).map_err(|_| Cause::Malformed)
}

fn small(number: i64) -> Result<i32, Cause> {
    i32::try_from(number).map_err(|_| Cause::Unsupported)
}
