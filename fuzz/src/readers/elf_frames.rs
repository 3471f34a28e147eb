//! Unwind tables of programs: any bytes, as a file, and a stack that is unwound by them.

use stack_unwind::{Guess, Mapped, Mappings, Registers, StackCopy, register, unwind};

use native_files::{Elf, FileFrames};

/// The file is mapped everywhere.
struct Everywhere<'f>(&'f FileFrames);

impl Mappings for Everywhere<'_> {
    fn at(&mut self, _address: u64) -> Mapped {
        match &self.0.tables {
            Some(tables) => Mapped::File { tables: tables.clone(), bias: 0 },
            None => Mapped::NoTables,
        }
    }
}

/// Reads it, and takes it for a stack as well.
pub fn run(bytes: &[u8]) {
    let Ok(elf) = Elf::read(bytes) else { return };
    let Some(file) = FileFrames::read(&elf) else { return };
    _ = file.php_frame();
    let mut frames = Vec::new();
    for address in (0..=bytes.len() as u64).step_by(16).chain([u64::MAX]) {
        file.is_bottom(address);
        file.above_offset(address);
        let mut registers = Registers::default();
        for (number, value) in [(register::RIP, address), (register::RSP, 0), (register::RBP, 16)] {
            registers.set(number, Some(value));
        }
        for guess in [Guess::AsPerf, Guess::FramePointer] {
            let stack = StackCopy { address: 0, bytes };
            unwind(registers, stack, &mut Everywhere(&file), guess, &mut frames);
            assert!(!frames.is_empty());
        }
    }
}
