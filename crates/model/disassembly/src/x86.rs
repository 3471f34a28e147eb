//! Instructions of x86 and x86-64.

use std::fmt;
use std::ops::Range;

use iced_x86::{
    Decoder, DecoderOptions, Formatter, FormatterOutput, FormatterTextKind, GasFormatter,
    IntelFormatter, MemorySizeOptions, Mnemonic, OpKind,
};

use crate::instruction::{Instruction, MNEMONIC_WIDTH, Reference, ReferenceKind, Syntax};

/// Decodes one after the other.
pub struct X86<'a> {
    bytes: &'a [u8],
    address: u64,
    decoder: Decoder<'a>,
    formatter: Box<dyn Formatter>,
    decoded: iced_x86::Instruction,
}

impl fmt::Debug for X86<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("X86").field("position", &self.decoder.position()).finish_non_exhaustive()
    }
}

/// The text of an instruction while it is written.
#[derive(Default)]
struct Written {
    text: String,
    /// Where the target of a branch is.
    target: Option<Range<usize>>,
}

impl FormatterOutput for Written {
    fn write(&mut self, text: &str, kind: FormatterTextKind) {
        let begin = self.text.len();
        self.text.push_str(text);
        if matches!(kind, FormatterTextKind::LabelAddress | FormatterTextKind::FunctionAddress) {
            self.target = Some(begin..self.text.len());
        }
    }
}

impl<'a> X86<'a> {
    pub fn new(bits: u32, address: u64, bytes: &'a [u8], syntax: Syntax) -> Self {
        let mut formatter: Box<dyn Formatter> = match syntax {
            Syntax::Intel => Box::new(IntelFormatter::new()),
            Syntax::Att => Box::new(GasFormatter::new()),
        };
        let options = formatter.options_mut();
        options.set_hex_prefix("0x");
        options.set_hex_suffix("");
        options.set_uppercase_hex(false);
        options.set_small_hex_numbers_in_decimal(false);
        options.set_space_after_operand_separator(true);
        options.set_branch_leading_zeros(false);
        options.set_rip_relative_addresses(true);
        options.set_show_branch_size(false);
        options.set_memory_size_options(MemorySizeOptions::Always);
        options.set_gas_space_after_memory_operand_comma(false);
        options.set_first_operand_char_index(MNEMONIC_WIDTH as u32);
        Self {
            bytes,
            address,
            decoder: Decoder::with_ip(bits, bytes, address, DecoderOptions::NONE),
            formatter,
            decoded: iced_x86::Instruction::default(),
        }
    }

    pub fn next(&mut self) -> Option<Instruction> {
        let start = self.decoder.position();
        let first = *self.bytes.get(start)?;
        let offset = start as u64;
        self.decoder.set_ip(self.address.wrapping_add(offset));
        self.decoder.decode_out(&mut self.decoded);
        if self.decoded.is_invalid() {
            // The next byte may be the first of an instruction. The position is within the bytes, so that it is accepted.
            let _ = self.decoder.set_position(start.saturating_add(1));
            let text = format!("{:MNEMONIC_WIDTH$}{first:#04x}", ".byte");
            return Some(Instruction { offset, length: 1, text, reference: None });
        }
        let mut written = Written::default();
        self.formatter.format(&self.decoded, &mut written);
        let reference = self.reference(written.target.take());
        // An instruction has at most 15 bytes.
        let length = u8::try_from(self.decoded.len()).unwrap_or(u8::MAX);
        Some(Instruction { offset, length, text: written.text, reference })
    }

    fn reference(&self, place: Option<Range<usize>>) -> Option<Reference> {
        let decoded = &self.decoded;
        let is_branch = matches!(
            decoded.op0_kind(),
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        );
        if is_branch {
            let kind = match decoded.mnemonic() {
                Mnemonic::Call => ReferenceKind::Call,
                _ => ReferenceKind::Jump,
            };
            return Some(Reference { address: decoded.near_branch_target(), kind, place });
        }
        if decoded.is_ip_rel_memory_operand() {
            let address = decoded.ip_rel_memory_address();
            return Some(Reference { address, kind: ReferenceKind::Relative, place: None });
        }
        decoded.op_kinds().any(|kind| kind == OpKind::Immediate64).then(|| Reference {
            address: decoded.immediate64(),
            kind: ReferenceKind::Constant,
            place: None,
        })
    }
}
