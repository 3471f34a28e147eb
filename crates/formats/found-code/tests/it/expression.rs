//! A compiled regular expression in memory.

use crate::memory::{DATA, Memory};

/// Where the machine code of an expression is described.
pub const CODES: usize = 0x2000;

/// Where a version has what.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub minor: u8,
    magic: usize,
    size: usize,
}

pub const FORM_10_42: Form = Form { minor: 42, magic: 80, size: 136 };
pub const FORM_10_45: Form = Form { minor: 45, magic: 88, size: 152 };

/// An expression.
#[derive(Clone, Copy, Debug)]
pub struct Expression<'e> {
    pub form: Form,
    pub code: &'e [u8],
    pub options: u32,
    pub groups: u32,
}

impl Expression<'_> {
    /// Writes it to `at`; its machine code is at `machine`, and has 0x100 bytes.
    pub fn write(&self, memory: &mut Memory, at: usize, machine: u64) {
        let Self { form, code, options, groups } = *self;
        memory.u64(at, 0x5555_0000_1000);
        memory.u64(at + 8, 0x5555_0000_2000);
        memory.u64(at + 24, 0x7fff_0000_3000);
        memory.u64(at + 32, DATA + CODES as u64);
        memory.u64(at + 72, (form.size + code.len()) as u64);
        if form.minor >= 45 {
            memory.u64(at + 80, form.size as u64);
        }
        let magic = at + form.magic;
        let fields = [
            (0, 0x5043_5245),
            (8, options),
            (16, 1),
            (24, 10_000_000),
            (40, 1 | 2 << 16),
            (48, groups),
        ];
        for (field, value) in fields {
            memory.u32(magic + field, value);
        }
        memory.bytes[at + form.size..][..code.len()].copy_from_slice(code);
        memory.u64(CODES, machine);
        memory.u64(CODES + 48, 0x100);
        memory.u32(CODES + 72, groups + 1);
        memory.u32(CODES + 76, 10_000_000);
    }
}
