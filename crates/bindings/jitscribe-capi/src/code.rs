//! A code, as described in C.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem::offset_of;

use crate::raw::Versioned;
use crate::text::Str;
use crate::unwind::Unwind;

/// What a code is to its runtime.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A function of the program that runs.
    Function = 0,
    /// A piece of code shared by many functions: an inline cache, a call into the runtime.
    Stub = 1,
    /// Code that passes control between two calling conventions.
    Trampoline = 2,
    /// The code that an interpreter runs for one of its instructions.
    BytecodeHandler = 3,
    /// Code around a function: the entry from outside, an adapter of arguments.
    Wrapper = 4,
    /// A compiled regular expression.
    RegularExpression = 5,
    /// Anything else, including every number that is not in this list.
    Other = 255,
}

/// A source position. It applies from `offset` to the next line's offset, or to the end of the code.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    /// In bytes from the code's first byte. Lines must ascend.
    pub offset: u32,
    /// From 1; 0 for code that has no source line.
    pub line: u32,
    /// From 1; 0 if unknown.
    pub column: u32,
    /// Index into the code's `files`; 0 if there is only one file.
    pub file: u32,
}

/// Part of a code, in bytes from the code's first byte.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Range {
    /// Offset of its first byte.
    pub start: u32,
    /// Offset behind its last byte.
    pub end: u32,
}

/// A call whose callee was inlined: compiled into the code in place of the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Inlined {
    /// Name of the callee.
    pub name: Str,
    /// The call into whose callee this one was inlined: an index into the same array, less than this call's own
    /// index. JITSCRIBE_NO_PARENT: it was inlined into the code itself.
    pub parent: u32,
    /// File of the call: an index into the code's `files`. The lines of the callee itself are in the code's line
    /// table.
    pub file: u32,
    /// Line of the call, from 1; 0 if unknown.
    pub line: u32,
    /// Column of the call, from 1; 0 if unknown.
    pub column: u32,
    /// The parts of the code that belong to the callee.
    pub ranges: *const Range,
    /// Number of `ranges`.
    pub range_count: usize,
}

/// One contiguous piece of machine code, and what is known about it. Set struct_size and the place (`address` or
/// `bytes`, and `size`), set everything else to zero, and then set what you know.
///
/// Everything that it points to is read during the call only, belongs to the caller, and must not be written to
/// during the call. A pointer with a count of 0 is not dereferenced.
///
/// Later versions have more fields at the end. A library that does not know them ignores them, and a newer library
/// takes fields that an older program does not have as zero. The structs that it points to never change.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// sizeof(jitscribe_code)
    pub struct_size: usize,
    /// Where the code runs, in this process. 0: at `bytes`.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Its `size` bytes, readable. NULL: the code is announced without bytes, and tools read them from the process
    /// while it lives.
    pub bytes: *const c_void,
    /// Its name, as tools should show it. Control characters are replaced by spaces.
    pub name: Str,
    /// Name of the compiler's tier: "baseline", "optimised". May be empty.
    pub tier: Str,
    /// A jitscribe_kind.
    pub kind: u32,
    /// Reserved: set to 0.
    pub flags: u32,
    /// Paths of the source files, as a debugger should open them. Lines and inlined calls refer to them by index.
    pub files: *const Str,
    /// Number of `files`. If it is 0, the index 0 means no file.
    pub file_count: usize,
    /// The source lines.
    pub lines: *const Line,
    /// Number of `lines`.
    pub line_count: usize,
    /// A second line table: lines of the bytecode or intermediate representation from which the code was compiled, in
    /// a listing that the runtime wrote.
    pub ir_lines: *const Line,
    /// Number of `ir_lines`.
    pub ir_line_count: usize,
    /// The inlined calls.
    pub inlined: *const Inlined,
    /// Number of `inlined`.
    pub inlined_count: usize,
    /// How to unwind through it.
    pub unwind: Unwind,
    /// An object file that the runtime made of the code, with DWARF that has more than can be said here: arguments, variables,
    /// types. Its sections have the addresses at which the code runs. Debuggers get a copy in place of what is announced, if code
    /// is shown to them during the call; a debugger that comes later gets what is announced. NULL: none.
    pub symfile: *const c_void,
    /// Its size in bytes.
    pub symfile_size: usize,
}

// SAFETY: only integers and pointers, the first of which is a `usize`.
unsafe impl Versioned for Code {
    const LEAST: usize = offset_of!(Code, bytes);
}
