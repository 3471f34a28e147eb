//! Rewriting call frame instructions.
//!
//! The output uses units of one byte of code, regardless of the unit in the input, so that an FDE can be cut at any
//! address. Only the instructions that change the location are rewritten; all others are copied.

use std::ops::Range;

use super::Cause;
use super::cursor::Cursor;
use super::pointer::Encoding;
use crate::encode::Encoder;
use crate::target::Target;

/// The operands of an instruction that is copied.
enum Operands {
    None,
    Unsigned,
    Signed,
    UnsignedUnsigned,
    UnsignedSigned,
    Block,
    UnsignedBlock,
}

impl Operands {
    fn skip(&self, input: &mut Cursor<'_>) -> Result<(), Cause> {
        match self {
            Operands::None => {}
            Operands::Unsigned => drop(input.uleb()?),
            Operands::Signed => drop(input.sleb()?),
            Operands::UnsignedUnsigned => {
                input.uleb()?;
                input.uleb()?;
            }
            Operands::UnsignedSigned => {
                input.uleb()?;
                input.sleb()?;
            }
            Operands::Block => {
                let len = input.uleb()?;
                input.split(len)?;
            }
            Operands::UnsignedBlock => {
                input.uleb()?;
                let len = input.uleb()?;
                input.split(len)?;
            }
        }
        Ok(())
    }
}

enum Instruction {
    /// Advances the location by this many units.
    Advance(u64),
    /// Sets the location.
    Set(u64),
    /// Padding.
    Nothing,
    /// Anything else: a rule for the current location.
    Rule,
}

/// Reads one instruction.
fn read(source: &Source<'_>, input: &mut Cursor<'_>) -> Result<Instruction, Cause> {
    const HIGH_BITS: u8 = 0xc0;
    let opcode = input.u8()?;
    let operands = match opcode & HIGH_BITS {
        0x40 => return Ok(Instruction::Advance(u64::from(opcode & !HIGH_BITS))), // advance_loc
        0x80 => Operands::Unsigned,                                              // offset
        0xc0 => Operands::None,                                                  // restore
        _ => match opcode {
            0x00 => return Ok(Instruction::Nothing),
            // set_loc
            0x01 => {
                let to = source.encoding.pointer(source.target, source.text, input)?;
                return Ok(Instruction::Set(to));
            }
            // advance_loc1, 2, 4, MIPS_advance_loc8
            0x02 => return Ok(Instruction::Advance(input.u8()?.into())),
            0x03 => return Ok(Instruction::Advance(input.u16()?.into())),
            0x04 => return Ok(Instruction::Advance(input.u32()?.into())),
            0x1d => return Ok(Instruction::Advance(input.u64()?)),
            // remember_state, restore_state, AARCH64_negate_ra_state(_with_pc)
            0x0a | 0x0b | 0x2c | 0x2d => Operands::None,
            // restore_extended, undefined, same_value, def_cfa_register, def_cfa_offset, GNU_args_size
            0x06 | 0x07 | 0x08 | 0x0d | 0x0e | 0x2e => Operands::Unsigned,
            // def_cfa_offset_sf
            0x13 => Operands::Signed,
            // offset_extended, register, def_cfa, val_offset, GNU_negative_offset_extended
            0x05 | 0x09 | 0x0c | 0x14 | 0x2f => Operands::UnsignedUnsigned,
            // offset_extended_sf, def_cfa_sf, val_offset_sf
            0x11 | 0x12 | 0x15 => Operands::UnsignedSigned,
            // def_cfa_expression
            0x0f => Operands::Block,
            // expression, val_expression
            0x10 | 0x16 => Operands::UnsignedBlock,
            _ => return Err(Cause::Unsupported),
        },
    };
    operands.skip(input)?;
    Ok(Instruction::Rule)
}

/// The instructions of an entry, and what they depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) target: Target,
    /// The instructions, up to the end of the entry.
    pub(super) instructions: Cursor<'a>,
    /// Number of bytes per unit of an advance.
    pub(super) unit: u64,
    /// The encoding of a location.
    pub(super) encoding: Encoding,
    /// The start of the code.
    pub(super) text: u64,
}

impl Source<'_> {
    /// Copies instructions that apply from the start: those of a CIE.
    pub(super) fn copy_initial(&self, out: &mut Encoder) -> Result<(), Cause> {
        let mut input = self.instructions;
        while !input.is_empty() {
            let before = input;
            match read(self, &mut input)? {
                Instruction::Rule => out.raw(input.since(&before)),
                Instruction::Nothing => {}
                Instruction::Advance(_) | Instruction::Set(_) => return Err(Cause::Malformed),
            }
        }
        Ok(())
    }

    /// Writes the instructions of an FDE that begins at `begin` for the part `range` of it. The rules in force at the
    /// start of the part are written there.
    pub(super) fn write_part(
        &self,
        begin: u64,
        range: &Range<u64>,
        out: &mut Encoder,
    ) -> Result<(), Cause> {
        let mut location = begin;
        let mut written = range.start;
        let mut input = self.instructions;
        while !input.is_empty() {
            let before = input;
            match read(self, &mut input)? {
                Instruction::Advance(units) => {
                    location = units
                        .checked_mul(self.unit)
                        .and_then(|distance| location.checked_add(distance))
                        .ok_or(Cause::Malformed)?;
                }
                Instruction::Set(to) if to >= location => location = to,
                Instruction::Set(_) => return Err(Cause::Malformed),
                Instruction::Nothing => {}
                // still read to the end: a damaged FDE is not used at all
                Instruction::Rule if location >= range.end => {}
                Instruction::Rule => {
                    if let Some(distance) = location.checked_sub(written) {
                        push_advance(distance, out)?;
                        written = location;
                    }
                    out.raw(input.since(&before));
                }
            }
        }
        Ok(())
    }
}

/// Writes an instruction that advances the location by `distance` bytes.
fn push_advance(distance: u64, out: &mut Encoder) -> Result<(), Cause> {
    const ADVANCE_LOC: u8 = 0x40;
    const ADVANCE_LOC1: u8 = 0x02;
    const ADVANCE_LOC2: u8 = 0x03;
    const ADVANCE_LOC4: u8 = 0x04;
    if let Ok(distance) = u8::try_from(distance) {
        if distance == 0 {
        } else if distance < ADVANCE_LOC {
            out.u8(ADVANCE_LOC | distance);
        } else {
            out.u8(ADVANCE_LOC1);
            out.u8(distance);
        }
    } else if let Ok(distance) = u16::try_from(distance) {
        out.u8(ADVANCE_LOC2);
        out.u16(distance);
    } else {
        out.u8(ADVANCE_LOC4);
        out.u32(u32::try_from(distance).map_err(|_| Cause::Malformed)?);
    }
    Ok(())
}
