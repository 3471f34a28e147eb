//! A piece of code, as a runtime tells of it.

use std::ops::Range;

use unwind_info::Unwind;

/// One contiguous piece of machine code of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Code<'a> {
    /// Where it runs.
    pub address: u64,
    /// Bytes of code.
    pub size: u64,
    /// Its name, in any bytes: control characters become `?`, what is longer than 2,000 bytes is
    /// cut and ends with `...`.
    pub name: &'a [u8],
    /// The instructions, if they lie elsewhere than they run; else they are read where they run.
    pub bytes: Option<&'a [u8]>,
    /// How to find the caller's frame. Without it valgrind's stacks end in the code, or go wrong.
    ///
    /// A ready section is for the place [`unwind_info::offset_behind`] the code.
    pub unwind: Option<Unwind<'a>>,
}

/// From `offset` on, up to the next line or the code's end, code comes from this place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line<'a> {
    /// In bytes from the code's first byte. Lines must ascend; what does not is left out.
    pub offset: u32,
    /// Path of the source file.
    pub file: &'a str,
    /// From 1; 0 for code that comes from no line.
    pub line: u32,
}

/// A call whose callee was compiled into the code in place of the call. Memcheck shows it as a frame of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inlined<'a> {
    /// Name of the callee.
    pub name: &'a str,
    /// The call into whose callee this one was inlined: its index among the code's calls, which is less than
    /// this one's own. `None`: into the code itself.
    pub parent: Option<u32>,
    /// File of the call. The lines of the callee are those of the code.
    pub file: &'a str,
    /// Line of the call, from 1; 0 if unknown.
    pub line: u32,
    /// Where in the code the callee lies, in bytes from the code's first byte.
    pub ranges: &'a [Range<u32>],
}
