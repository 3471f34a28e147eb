//! Call frame instructions, written anew.
//!
//! They are written in units of one byte of code, whatever the input counts in, so that a frame
//! description may be cut at any address.

use gimli::{CallFrameInstruction as Instruction, UnwindExpression};

use super::Cause;
use super::reader::{Section, Slice};
use crate::encode::Encoder;

const DW_CFA_ADVANCE_LOC: u8 = 0x40;
const DW_CFA_OFFSET: u8 = 0x80;
const DW_CFA_RESTORE: u8 = 0xc0;
/// Operands from here on do not fit into the opcode's byte.
const OPCODE_OPERANDS: u16 = 0x40;
const DW_CFA_ADVANCE_LOC1: u8 = 0x02;
const DW_CFA_ADVANCE_LOC2: u8 = 0x03;
const DW_CFA_ADVANCE_LOC4: u8 = 0x04;
const DW_CFA_OFFSET_EXTENDED: u8 = 0x05;
const DW_CFA_RESTORE_EXTENDED: u8 = 0x06;
const DW_CFA_UNDEFINED: u8 = 0x07;
const DW_CFA_SAME_VALUE: u8 = 0x08;
const DW_CFA_REGISTER: u8 = 0x09;
const DW_CFA_REMEMBER_STATE: u8 = 0x0a;
const DW_CFA_RESTORE_STATE: u8 = 0x0b;
const DW_CFA_DEF_CFA: u8 = 0x0c;
const DW_CFA_DEF_CFA_REGISTER: u8 = 0x0d;
const DW_CFA_DEF_CFA_OFFSET: u8 = 0x0e;
const DW_CFA_DEF_CFA_EXPRESSION: u8 = 0x0f;
const DW_CFA_EXPRESSION: u8 = 0x10;
const DW_CFA_OFFSET_EXTENDED_SF: u8 = 0x11;
const DW_CFA_DEF_CFA_SF: u8 = 0x12;
const DW_CFA_DEF_CFA_OFFSET_SF: u8 = 0x13;
const DW_CFA_VAL_OFFSET: u8 = 0x14;
const DW_CFA_VAL_OFFSET_SF: u8 = 0x15;
const DW_CFA_VAL_EXPRESSION: u8 = 0x16;
const DW_CFA_AARCH64_NEGATE_RA_STATE: u8 = 0x2d;
const DW_CFA_GNU_ARGS_SIZE: u8 = 0x2e;

/// Appends `instruction`, which is none that moves the location, to `out`.
pub(super) fn push(
    instruction: &Instruction<usize>,
    section: &Section<'_>,
    out: &mut Encoder,
) -> Result<(), Cause> {
    match *instruction {
        Instruction::DefCfa { register, offset } => {
            out.u8(DW_CFA_DEF_CFA);
            out.uleb(register.0.into());
            out.uleb(offset);
        }
        Instruction::DefCfaSf { register, factored_offset } => {
            out.u8(DW_CFA_DEF_CFA_SF);
            out.uleb(register.0.into());
            out.sleb(factored_offset);
        }
        Instruction::DefCfaRegister { register } => {
            out.u8(DW_CFA_DEF_CFA_REGISTER);
            out.uleb(register.0.into());
        }
        Instruction::DefCfaOffset { offset } => {
            out.u8(DW_CFA_DEF_CFA_OFFSET);
            out.uleb(offset);
        }
        Instruction::DefCfaOffsetSf { factored_offset } => {
            out.u8(DW_CFA_DEF_CFA_OFFSET_SF);
            out.sleb(factored_offset);
        }
        Instruction::DefCfaExpression { expression } => {
            out.u8(DW_CFA_DEF_CFA_EXPRESSION);
            push_expression(expression, section, out)?;
        }
        Instruction::Undefined { register } => {
            out.u8(DW_CFA_UNDEFINED);
            out.uleb(register.0.into());
        }
        Instruction::SameValue { register } => {
            out.u8(DW_CFA_SAME_VALUE);
            out.uleb(register.0.into());
        }
        Instruction::Offset { register, factored_offset } => {
            push_register(DW_CFA_OFFSET, DW_CFA_OFFSET_EXTENDED, register, out);
            out.uleb(factored_offset);
        }
        Instruction::OffsetExtendedSf { register, factored_offset } => {
            out.u8(DW_CFA_OFFSET_EXTENDED_SF);
            out.uleb(register.0.into());
            out.sleb(factored_offset);
        }
        Instruction::ValOffset { register, factored_offset } => {
            out.u8(DW_CFA_VAL_OFFSET);
            out.uleb(register.0.into());
            out.uleb(factored_offset);
        }
        Instruction::ValOffsetSf { register, factored_offset } => {
            out.u8(DW_CFA_VAL_OFFSET_SF);
            out.uleb(register.0.into());
            out.sleb(factored_offset);
        }
        Instruction::Register { dest_register, src_register } => {
            out.u8(DW_CFA_REGISTER);
            out.uleb(dest_register.0.into());
            out.uleb(src_register.0.into());
        }
        Instruction::Expression { register, expression } => {
            out.u8(DW_CFA_EXPRESSION);
            out.uleb(register.0.into());
            push_expression(expression, section, out)?;
        }
        Instruction::ValExpression { register, expression } => {
            out.u8(DW_CFA_VAL_EXPRESSION);
            out.uleb(register.0.into());
            push_expression(expression, section, out)?;
        }
        Instruction::Restore { register } => {
            push_register(DW_CFA_RESTORE, DW_CFA_RESTORE_EXTENDED, register, out);
        }
        Instruction::RememberState => out.u8(DW_CFA_REMEMBER_STATE),
        Instruction::RestoreState => out.u8(DW_CFA_RESTORE_STATE),
        Instruction::ArgsSize { size } => {
            out.u8(DW_CFA_GNU_ARGS_SIZE);
            out.uleb(size);
        }
        Instruction::NegateRaState => out.u8(DW_CFA_AARCH64_NEGATE_RA_STATE),
        Instruction::Nop => {}
        // the caller's, or none that gimli knew when this was written
        _ => return Err(Cause::Unsupported),
    }
    Ok(())
}

/// Appends what moves the location `distance` bytes on.
pub(super) fn push_advance(distance: u64, out: &mut Encoder) -> Result<(), Cause> {
    let distance = u32::try_from(distance).map_err(|_| Cause::Malformed)?;
    if let Ok(distance) = u8::try_from(distance) {
        if distance == 0 {
        } else if distance < DW_CFA_ADVANCE_LOC {
            out.u8(DW_CFA_ADVANCE_LOC | distance);
        } else {
            out.u8(DW_CFA_ADVANCE_LOC1);
            out.u8(distance);
        }
    } else if let Ok(distance) = u16::try_from(distance) {
        out.u8(DW_CFA_ADVANCE_LOC2);
        out.u16(distance);
    } else {
        out.u8(DW_CFA_ADVANCE_LOC4);
        out.u32(distance);
    }
    Ok(())
}

/// An opcode that has its register in its low bits, or the extended form of it.
fn push_register(short: u8, extended: u8, register: gimli::Register, out: &mut Encoder) {
    match u8::try_from(register.0) {
        Ok(number) if register.0 < OPCODE_OPERANDS => out.u8(short | number),
        _ => {
            out.u8(extended);
            out.uleb(register.0.into());
        }
    }
}

fn push_expression(
    expression: UnwindExpression<usize>,
    section: &Section<'_>,
    out: &mut Encoder,
) -> Result<(), Cause> {
    let bytes: Slice<'_> = expression.get(section)?.0;
    out.uleb(bytes.len() as u64);
    out.raw(bytes.slice());
    Ok(())
}
