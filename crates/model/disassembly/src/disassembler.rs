//! From bytes to instructions.

use jit_code::elf_machine;

use crate::aarch64::AArch64;
use crate::instruction::{Instruction, Syntax};
use crate::x86::X86;

/// The instructions of a code, in the order of their offsets and without gaps. Returned by [`disassemble`].
#[derive(Debug)]
pub struct Disassembler<'a>(Machine<'a>);

#[derive(Debug)]
enum Machine<'a> {
    // Its formatters are large.
    X86(Box<X86<'a>>),
    AArch64(AArch64<'a>),
}

/// Decodes `bytes`, which are at `address` when they run. `machine` is the ELF number of the machine (`e_machine`).
///
/// `None` if instructions of the machine cannot be decoded.
#[must_use]
pub fn disassemble(
    machine: u16,
    address: u64,
    bytes: &[u8],
    syntax: Syntax,
) -> Option<Disassembler<'_>> {
    Some(Disassembler(match machine {
        elf_machine::X86_64 => Machine::X86(Box::new(X86::new(64, address, bytes, syntax))),
        elf_machine::I386 => Machine::X86(Box::new(X86::new(32, address, bytes, syntax))),
        elf_machine::AARCH64 => Machine::AArch64(AArch64::new(address, bytes)),
        _ => return None,
    }))
}

impl Iterator for Disassembler<'_> {
    type Item = Instruction;

    fn next(&mut self) -> Option<Instruction> {
        match &mut self.0 {
            Machine::X86(x86) => x86.next(),
            Machine::AArch64(aarch64) => aarch64.next(),
        }
    }
}
