//! Machine code as text, for x86-64, x86 and AArch64.
//!
//! [`disassemble`] decodes bytes into [`Instruction`]s, each with the address that it refers to. [`Assembly`] is what views of a code show:
//! branch targets within the code get labels (`L1`), and those outside are written with the names that a
//! [`CodeSource`](profile::CodeSource) knows for them.
//!
//! [`mask_addresses`] removes from a code what differs between two processes, so that the rest can be compared.
//!
//! The bytes may be anything: data between instructions, or a code that ends within one. Bytes that are no instruction become
//! `.byte` or `.inst`, and decoding goes on behind them.
//!
//! ```
//! use disassembly::{Syntax, disassemble};
//!
//! let code = [0x48, 0x89, 0xc3, 0xe8, 0, 0, 0, 0];
//! let instructions: Vec<_> =
//!     disassemble(62, 0x1000, &code, Syntax::Intel).expect("x86-64").collect();
//! assert_eq!(instructions[0].text, "mov     rbx, rax");
//! assert_eq!(instructions[1].text, "call    0x1008");
//! assert_eq!(instructions[1].reference.as_ref().expect("a target").address, 0x1008);
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

mod aarch64;
mod assembly;
mod disassembler;
mod frames;
mod instruction;
mod masked;
mod x86;

pub use assembly::{Assembly, Line, Target};
pub use disassembler::{Disassembler, disassemble};
pub use frames::Frames;
pub use instruction::{Instruction, Reference, ReferenceKind, Syntax};
pub use masked::mask_addresses;
