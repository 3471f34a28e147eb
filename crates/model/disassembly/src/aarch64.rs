//! Instructions of AArch64.

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Opcode, Operand};

use crate::instruction::{Instruction, MNEMONIC_WIDTH, Reference, ReferenceKind};

const LENGTH: u8 = 4;

/// Decodes one after the other.
#[derive(Debug)]
pub struct AArch64<'a> {
    rest: &'a [u8],
    address: u64,
    offset: u64,
    decoder: InstDecoder,
}

impl<'a> AArch64<'a> {
    pub fn new(address: u64, bytes: &'a [u8]) -> Self {
        Self { rest: bytes, address, offset: 0, decoder: InstDecoder::default() }
    }

    pub fn next(&mut self) -> Option<Instruction> {
        let offset = self.offset;
        let Some((word, rest)) = self.rest.split_first_chunk::<{ LENGTH as usize }>() else {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            self.offset = offset.saturating_add(1);
            let text = format!("{:MNEMONIC_WIDTH$}{byte:#04x}", ".byte");
            return Some(Instruction { offset, length: 1, text, reference: None });
        };
        self.rest = rest;
        self.offset = offset.saturating_add(u64::from(LENGTH));
        let Ok(decoded) = self.decoder.decode(&mut U8Reader::new(word)) else {
            let word = u32::from_le_bytes(*word);
            let text = format!("{:MNEMONIC_WIDTH$}{word:#010x}", ".inst");
            return Some(Instruction { offset, length: LENGTH, text, reference: None });
        };
        let spelled = decoded.to_string();
        let (mnemonic, operands) = spelled.split_once(' ').unwrap_or((&spelled, ""));
        let mut text = match operands {
            "" => mnemonic.to_owned(),
            _ => format!("{mnemonic:w$} {operands}", w = MNEMONIC_WIDTH.saturating_sub(1)),
        };
        let address = self.address.wrapping_add(offset);
        let relative = decoded.operands.iter().find_map(|operand| match operand {
            Operand::PCOffset(relative) => Some(*relative),
            _ => None,
        });
        let reference = relative.map(|relative| {
            let (kind, base) = match decoded.opcode {
                Opcode::BL => (ReferenceKind::Call, address),
                Opcode::ADRP => (ReferenceKind::Relative, address & !0xfff),
                Opcode::ADR => (ReferenceKind::Relative, address),
                Opcode::LDR | Opcode::LDRSW | Opcode::PRFM => (ReferenceKind::Relative, address),
                _ => (ReferenceKind::Jump, address),
            };
            let address = base.wrapping_add_signed(relative);
            // The offset is written as `$+0x10`, and is the last operand.
            let place = text.find('$').map(|begin| {
                text.truncate(begin);
                text.push_str(&format!("{address:#x}"));
                begin..text.len()
            });
            Reference { address, kind, place }
        });
        Some(Instruction { offset, length: LENGTH, text, reference })
    }
}
