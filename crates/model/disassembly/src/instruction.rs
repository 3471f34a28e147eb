//! One instruction.

use std::ops::Range;

/// How x86 instructions are written. Other machines have one syntax.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syntax {
    /// The destination first: `mov rax, rbx`.
    #[default]
    Intel,
    /// The destination last: `mov %rbx, %rax`.
    Att,
}

/// An instruction, or bytes that are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its offset in the code.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u8,
    /// The mnemonic and the operands, with addresses as numbers.
    pub text: String,
    /// The address that it refers to.
    pub reference: Option<Reference>,
}

/// An address that an instruction refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The address.
    pub address: u64,
    /// How it is used.
    pub kind: ReferenceKind,
    /// Where in the text of the instruction the address is written; `None` if it is written relative to the instruction, or as a part of it.
    pub place: Option<Range<usize>>,
}

/// How an instruction uses an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// As the target of a jump.
    Jump,
    /// As the target of a call.
    Call,
    /// As the address of data or code that is read, written or computed, relative to the instruction.
    Relative,
    /// As a 64-bit constant, which may be an address. JIT compilers often load the target of a call this way.
    Constant,
}

/// The width of mnemonics, so that operands are in a column.
pub const MNEMONIC_WIDTH: usize = 8;
