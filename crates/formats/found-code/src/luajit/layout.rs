//! Where LuaJIT has what in its objects.
//!
//! From `lj_obj.h` and `lj_jit.h` of LuaJIT (v2.1 from 2.1.0-beta1 of 2015 to August 2026) and of OpenResty's branch (luajit2, March 2024). Of the fields that are
//! read here, only the length of strings has moved in these years. Else, all that matters is the size of references to objects: 64 bits (`LJ_GC64`), or 32 bits in
//! older builds for x86-64. The offsets are in bytes.

/// Where what is, with references of one size.
#[derive(Debug)]
pub struct Layout {
    /// The size of a reference to an object.
    pub reference: u8,
    /// In any object: its type.
    pub kind: usize,
    pub trace: TraceLayout,
    pub prototype: PrototypeLayout,
    /// Newer versions first.
    pub strings: [StringLayout; 2],
    /// The registers that a frame saves on x86-64 (`lj_gdbjit.c`).
    pub saved: &'static [(u16, i32)],
}

/// In a trace (`GCtrace`).
#[derive(Debug)]
pub struct TraceLayout {
    /// The function in which it begins.
    pub prototype: usize,
    /// The instruction with which it begins.
    pub instruction: usize,
    pub code_size: usize,
    pub code: usize,
    /// How much the code's frame is larger than that of the interpreter.
    pub adjustment: usize,
    pub number: usize,
}

/// In a function (`GCproto`).
#[derive(Debug)]
pub struct PrototypeLayout {
    /// How many instructions it has.
    pub instructions: usize,
    /// The size of all that belongs to it.
    pub size: usize,
    /// The name of its source.
    pub source: usize,
    pub first_line: usize,
    /// How many lines it has.
    pub lines: usize,
    /// The lines of its instructions.
    pub line_table: usize,
    /// The first instruction.
    pub code: usize,
}

/// In a string (`GCstr`).
#[derive(Debug)]
pub struct StringLayout {
    pub length: usize,
    pub text: usize,
}

/// Types of objects.
pub const STRING: u8 = 4;
pub const PROTOTYPE: u8 = 7;
pub const TRACE: u8 = 9;

/// The number of bytes of a trace or of a function that are read.
pub const HEAD: usize = 120;
/// The same for a string.
pub const STRING_HEAD: usize = 24;

/// The size of the interpreter's frame while a trace runs on x86-64 (`CFRAME_SIZE_JIT`).
pub const FRAME: u32 = 96;

pub static LAYOUTS: [Layout; 2] = [
    Layout {
        reference: 8,
        kind: 9,
        trace: TraceLayout {
            prototype: 64,
            instruction: 72,
            code_size: 84,
            code: 88,
            adjustment: 102,
            number: 104,
        },
        prototype: PrototypeLayout {
            instructions: 12,
            size: 56,
            source: 64,
            first_line: 72,
            lines: 76,
            line_table: 80,
            code: 104,
        },
        strings: [StringLayout { length: 20, text: 24 }, StringLayout { length: 16, text: 24 }],
        saved: &[(6, -16), (3, -24), (15, -32), (14, -40), (13, -80), (12, -88)],
    },
    Layout {
        reference: 4,
        kind: 5,
        trace: TraceLayout {
            prototype: 48,
            instruction: 52,
            code_size: 60,
            code: 64,
            adjustment: 78,
            number: 80,
        },
        prototype: PrototypeLayout {
            instructions: 8,
            size: 32,
            source: 40,
            first_line: 44,
            lines: 48,
            line_table: 52,
            code: 64,
        },
        strings: [StringLayout { length: 16, text: 20 }, StringLayout { length: 12, text: 16 }],
        saved: &[(6, -16), (3, -24), (15, -32), (14, -40), (13, -72), (12, -80)],
    },
];

impl Layout {
    /// A reference to an object, or a pointer of the same size.
    pub fn reference_at(&self, bytes: &[u8], at: usize) -> u64 {
        match self.reference {
            8 => crate::fields::u64_at(bytes, at),
            _ => crate::fields::u32_at(bytes, at).into(),
        }
    }
}
