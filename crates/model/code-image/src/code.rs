//! The input of an image.

use std::ops::Range;

/// One contiguous piece of generated machine code.
#[derive(Debug, Clone, Default)]
pub struct Code<'a> {
    /// Address of the first byte in the process.
    pub start: u64,
    /// Length in bytes.
    pub size: u64,
    /// The part to show, within `start..start + size`: what no other code covers. It is the range of the symbol, of
    /// the lines and of the unwind info. If it is empty, nothing is shown.
    pub visible: Range<u64>,
    /// Name, in any encoding. See [`ImageWriter::add`](crate::ImageWriter::add) for the treatment of control
    /// characters. Several codes may have the same name.
    pub name: &'a [u8],
    /// The machine code from `start` on; bytes beyond `size` are ignored. Empty = unknown, which leaves a hole.
    pub bytes: &'a [u8],
    /// Source lines, in any order.
    pub lines: &'a [Line<'a>],
    /// The calls that the compiler replaced by the callee's code, each after its parent. For an address in such code,
    /// the lines give the position in the innermost callee.
    pub inlined: &'a [Inlined<'a>],
    /// Unwind info.
    pub unwind: Option<EhFrame<'a>>,
    /// Thumb code of 32-bit ARM: its symbol gets the low bit set. `start` itself is even.
    pub thumb: bool,
}

/// A source position: it applies to the code from `address` on, up to the next entry or the end of the code.
///
/// Of several entries for one address, the last one applies. An entry outside its code is dropped. An entry without a
/// file or with line 0 means that the following code belongs to no line.
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
/// A part of `ranges` counts only if the call's parent has it too; if several calls with the same parent have it, it
/// counts for the first in the list. These calls are left out, together with the calls inlined into them: a call that
/// is left without ranges, one whose parent does not precede it, and one that is nested in 127 others. If the ranges
/// of some calls split those of others into pieces, the number of pieces is limited to a few times the number of
/// ranges given, and the rest is left out. No compiler produces such ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inlined<'a> {
    /// Name of the called function, in any encoding.
    pub name: &'a [u8],
    /// Index of the call into whose code this one was inlined, smaller than its own; `None` for the code itself.
    pub parent: Option<u32>,
    /// Path of the file with the call; empty = unknown.
    pub call_file: &'a [u8],
    /// Line of the call, from 1; 0 = unknown.
    pub call_line: u32,
    /// Column of the call, from 1; 0 = unknown.
    pub call_column: u32,
    /// The addresses in the process of the inlined code of the callee, in any order.
    pub ranges: &'a [Range<u64>],
}

/// Unwind info of one code, as in a jitdump's `JIT_CODE_UNWINDING_INFO` record.
///
/// Relative pointers in it are interpreted as if the section were directly behind the code, at `start +
/// align8(size)`. If the addresses that it then describes begin outside the code, the writer encoded it for another
/// position (behind its header, or where the process has it). In this case it is interpreted as if it were at the
/// position where the addresses that it describes begin at the start of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EhFrame<'a> {
    /// A complete `.eh_frame` section: CIEs and FDEs, with or without a terminator.
    pub bytes: &'a [u8],
}
