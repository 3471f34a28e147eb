//! The data of the collector's events: structures of C, in the layout that `jitprofiling.h` documents.
//!
//! Only the structures that this crate sends. The header's declarations are not copied: the tests have the offsets and sizes that
//! a C compiler gives for the header.

use std::ffi::{c_char, c_void};

/// Numbers of the events.
pub(crate) mod event {
    /// `iJVM_EVENT_TYPE_METHOD_UNLOAD_START`, with an [`Unload`](super::Unload).
    pub(crate) const UNLOAD: u32 = 14;
    /// `iJVM_EVENT_TYPE_METHOD_INLINE_LOAD_FINISHED`, with an [`Inline`](super::Inline).
    pub(crate) const INLINE: u32 = 16;
    /// `iJVM_EVENT_TYPE_METHOD_LOAD_FINISHED_V3`, with a [`Load`](super::Load).
    pub(crate) const LOAD: u32 = 22;
}

/// `iJIT_CA_NATIVE`: the code is for the machine that the process runs on.
pub(crate) const NATIVE: u32 = 0;

/// `LineNumberInfo`: a line of a table. It applies from the end of the line before, or from the beginning of the code.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableLine {
    /// Where the code of the line ends, in bytes from the beginning of the region.
    pub(crate) end: u32,
    /// From 1; 0 if there is none.
    pub(crate) line: u32,
}

/// `iJIT_Method_Load_V3`: a code.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) method: u32,
    pub(crate) name: *const c_char,
    pub(crate) address: *const c_void,
    pub(crate) size: u32,
    pub(crate) line_count: u32,
    pub(crate) lines: *const TableLine,
    pub(crate) class: *const c_char,
    pub(crate) source: *const c_char,
    pub(crate) module: *const c_char,
    pub(crate) architecture: u32,
}

/// `iJIT_Method_Inline_Load`: a range of the code of an inlined call.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Inline {
    pub(crate) method: u32,
    pub(crate) parent: u32,
    pub(crate) name: *const c_char,
    pub(crate) address: *const c_void,
    pub(crate) size: u32,
    pub(crate) line_count: u32,
    pub(crate) lines: *const TableLine,
    pub(crate) class: *const c_char,
    pub(crate) source: *const c_char,
}

/// `iJIT_Method_Load`: a code that is gone.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Unload {
    pub(crate) method: u32,
    pub(crate) name: *const c_char,
    pub(crate) address: *const c_void,
    pub(crate) size: u32,
    pub(crate) line_count: u32,
    pub(crate) lines: *const TableLine,
    pub(crate) class_id: u32,
    pub(crate) class: *const c_char,
    pub(crate) source: *const c_char,
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use std::mem::offset_of;

    use super::{Inline, Load, TableLine, Unload};

    /// The numbers come from gcc 12 on x86-64, for `jitprofiling.h` of ittapi at commit 07c2259 (`offsetof` and `sizeof` of
    /// each).
    #[test]
    fn structures_are_those_of_the_header() {
        let table_line = [offset_of!(TableLine, end), offset_of!(TableLine, line)];
        assert_eq!((table_line, size_of::<TableLine>()), ([0, 4], 8));
        let load = [
            offset_of!(Load, method),
            offset_of!(Load, name),
            offset_of!(Load, address),
            offset_of!(Load, size),
            offset_of!(Load, line_count),
            offset_of!(Load, lines),
            offset_of!(Load, class),
            offset_of!(Load, source),
            offset_of!(Load, module),
            offset_of!(Load, architecture),
        ];
        assert_eq!((load, size_of::<Load>()), ([0, 8, 16, 24, 28, 32, 40, 48, 56, 64], 72));
        let inline = [
            offset_of!(Inline, method),
            offset_of!(Inline, parent),
            offset_of!(Inline, name),
            offset_of!(Inline, address),
            offset_of!(Inline, size),
            offset_of!(Inline, line_count),
            offset_of!(Inline, lines),
            offset_of!(Inline, class),
            offset_of!(Inline, source),
        ];
        assert_eq!((inline, size_of::<Inline>()), ([0, 4, 8, 16, 24, 28, 32, 40, 48], 56));
        let unload = [
            offset_of!(Unload, method),
            offset_of!(Unload, name),
            offset_of!(Unload, address),
            offset_of!(Unload, size),
            offset_of!(Unload, line_count),
            offset_of!(Unload, lines),
            offset_of!(Unload, class_id),
            offset_of!(Unload, class),
            offset_of!(Unload, source),
        ];
        assert_eq!((unload, size_of::<Unload>()), ([0, 8, 16, 24, 28, 32, 40, 48, 56], 64));
    }
}
