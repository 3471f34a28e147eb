//! A code, as C tells of it.
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
    /// A piece shared by many functions: an inline cache, a call into the runtime.
    Stub = 1,
    /// Code that passes control on between two calling conventions.
    Trampoline = 2,
    /// What an interpreter runs for one of its instructions.
    BytecodeHandler = 3,
    /// Code around a function: the entry from outside, an adapter of arguments.
    Wrapper = 4,
    /// A compiled regular expression.
    RegularExpression = 5,
    /// Anything else; so is every number that is not in this list.
    Other = 255,
}

/// From `offset` on, up to the next line or the code's end, code comes from this place.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    /// In bytes from the code's first byte. Lines must ascend.
    pub offset: u32,
    /// From 1; 0 for code that comes from no line.
    pub line: u32,
    /// From 1; 0 if unknown.
    pub column: u32,
    /// Which of the code's `files`: an index, 0 if there is but one.
    pub file: u32,
}

/// Part of a code, in bytes from the code's first byte.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Range {
    /// Its first byte.
    pub start: u32,
    /// The first byte behind it.
    pub end: u32,
}

/// A call whose callee was compiled into the code in place of the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Inlined {
    /// Name of the callee.
    pub name: Str,
    /// Index, in the same array and less than this one's own, of the call into whose callee this one was
    /// inlined; JITSCRIBE_NO_PARENT: into the code itself.
    pub parent: u32,
    /// File of the call: an index into the code's `files`. The lines of the callee are those of the code's
    /// line table.
    pub file: u32,
    /// Line of the call, from 1; 0 if unknown.
    pub line: u32,
    /// Column of the call, from 1; 0 if unknown.
    pub column: u32,
    /// Where in the code the callee lies.
    pub ranges: *const Range,
    /// How many they are.
    pub range_count: usize,
}

/// One contiguous piece of machine code, and what is known of it. Set all to zero but struct_size and place, and then
/// what you know.
///
/// All that it points to is read during the call only, belongs to the caller, and must not be
/// written to by others meanwhile. A pointer with a count of 0 is not followed.
///
/// Later versions have more fields at the end; a library that does not know them ignores them, and takes those that
/// an older program does not have for zero. The structs that it points to never change.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// sizeof(jitscribe_code)
    pub struct_size: usize,
    /// Where the code runs, in this process. 0: where `bytes` lies.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Its `size` bytes, where they can be read. NULL: only the place is told, and tools fetch the bytes from the
    /// process while it lives.
    pub bytes: *const c_void,
    /// Its name, as tools should show it. Control characters come out as spaces.
    pub name: Str,
    /// Name of the compiler's tier: "baseline", "optimised". May be empty.
    pub tier: Str,
    /// A jitscribe_kind.
    pub kind: u32,
    /// 0.
    pub flags: u32,
    /// Paths of the source files, as a debugger should open them. Lines and calls refer to them by index.
    pub files: *const Str,
    /// How many they are. If there are none, the index 0 means no file.
    pub file_count: usize,
    /// The source lines.
    pub lines: *const Line,
    /// How many they are.
    pub line_count: usize,
    /// A second line table: lines of the bytecode or intermediate representation that the code was compiled
    /// from, in a listing that the runtime wrote.
    pub ir_lines: *const Line,
    /// How many they are.
    pub ir_line_count: usize,
    /// The calls that were inlined.
    pub inlined: *const Inlined,
    /// How many they are.
    pub inlined_count: usize,
    /// How to unwind through it.
    pub unwind: Unwind,
}

// SAFETY: integers and pointers alone, the first a `usize`.
unsafe impl Versioned for Code {
    const LEAST: usize = offset_of!(Code, bytes);
}
