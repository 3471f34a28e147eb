//! The machine of the code in the log.

/// The ELF `e_machine` of the code that runs here.
pub(crate) const MACHINE: u32 = jit_code::elf_machine::NATIVE as u32;
