//! What an image is made of.

use std::ops::Range;

/// One contiguous piece of generated machine code.
#[derive(Debug, Clone, Default)]
pub struct Code<'a> {
    /// Address of the first byte in the process.
    pub start: u64,
    /// Length in bytes.
    pub size: u64,
    /// The part to show, within `start..start + size`: what no other code covers. It is the range of
    /// the symbol, of the lines and of the unwind info. An empty one shows nothing.
    pub visible: Range<u64>,
    /// Name, in whatever encoding; see [`ImageWriter::add`](crate::ImageWriter::add) for what becomes
    /// of control characters. Several codes may have the same.
    pub name: &'a [u8],
    /// The machine code from `start` on; bytes beyond `size` are ignored. Empty = unknown, which
    /// leaves a hole.
    pub bytes: &'a [u8],
    /// Source lines, in any order.
    pub lines: &'a [Line<'a>],
    /// The calls that the compiler replaced by the callee's code, each behind the one it lies in. Of an
    /// address in such code the lines tell the place in the innermost callee.
    pub inlined: &'a [Inlined<'a>],
    /// Unwind info.
    pub unwind: Option<EhFrame<'a>>,
    /// Thumb code of 32-bit ARM: its symbol gets the low bit set. `start` itself is even.
    pub thumb: bool,
}

/// From `address` on, up to the next entry or the end of its code, the code belongs to this place
/// in the source.
///
/// Of several entries for one address the last wins. An entry that lies outside its code is
/// dropped. One without a file or with line 0 says that what follows belongs to no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Line<'a> {
    /// Address in the process.
    pub address: u64,
    /// Path of the source file, as the compiler names it.
    pub file: &'a [u8],
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 = unknown.
    pub column: u32,
}

/// A call that the compiler replaced by the callee's code.
///
/// `ranges` count only where the call's parent has them, too, and, of several calls with one parent,
/// for the first in the list. A call that is left with none, one with a parent that does not stand
/// before it, and one that lies in 127 others are left out, and those inlined into them are, too. So
/// is what exceeds a few times the ranges given once the ranges of some calls have cut those of others
/// into pieces, which no compiler makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inlined<'a> {
    /// Name of the function called, in whatever encoding.
    pub name: &'a [u8],
    /// Index of the call into whose code this one was inlined, smaller than its own; `None` stands
    /// for the code itself.
    pub parent: Option<u32>,
    /// Path of the file with the call; empty = unknown.
    pub call_file: &'a [u8],
    /// Line of the call, from 1; 0 = unknown.
    pub call_line: u32,
    /// Column of the call, from 1; 0 = unknown.
    pub call_column: u32,
    /// The addresses in the process of what became of the callee, in any order.
    pub ranges: &'a [Range<u64>],
}

/// Unwind info of one code, as a jitdump's `JIT_CODE_UNWINDING_INFO` record carries it.
///
/// Relative pointers in it are meant as if the section lay right behind the code, at
/// `start + align8(size)`. If it begins to speak of addresses outside of the code then, the writer had
/// it elsewhere (behind its header, or wherever the process has it), and it is read as if it stood such
/// that what it speaks of begins where the code does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EhFrame<'a> {
    /// A whole `.eh_frame` section: CIEs and FDEs, with or without a terminator.
    pub bytes: &'a [u8],
}
