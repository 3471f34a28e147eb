//! The input of a file.

use std::ops::Range;

use jit_code::{Code, Unwind};

/// A code, and the part of it that a file shows.
///
/// The file gets the code's address, size, name, lines, inlined calls and ready `.eh_frame`, and its bytes if it has
/// text.
///
/// **Name.** Any bytes. See [`ImageWriter::add`](crate::ImageWriter::add) for the treatment of control characters.
/// Several codes may have the same name.
///
/// **Bytes.** Bytes beyond the size are ignored. Without bytes there is a hole in the text.
///
/// **Lines.** They may be in any order. Of several lines at one offset, the last one applies. A line outside the code
/// is dropped. A line without a file, or with number 0, means that the following code belongs to no line.
///
/// **Inlined calls.** A part of a call's ranges counts only if the call's parent has it too; if several calls with the
/// same parent have it, it counts for the first in the list. These calls are left out, together with the calls inlined
/// into them: a call that is left without ranges, one whose parent does not precede it, and one that is nested in 127
/// others. If the ranges of some calls split those of others into pieces, the number of pieces is limited to a few
/// times the number of ranges given, and the rest is left out. No compiler produces such ranges.
///
/// **Unwind info.** Only [`Unwind::EhFrame`] is used: a complete `.eh_frame` section with CIEs and FDEs, with or
/// without a terminator, as in a jitdump's `JIT_CODE_UNWINDING_INFO` record. The crate `unwind-info` encodes others as
/// such a section. Relative pointers in it are interpreted as if the section were directly behind the code, at
/// `address + align8(size)`. If the addresses that it then describes begin outside the code, the writer encoded it for
/// another position (behind its header, or where the process has it). In this case it is interpreted as if it were at
/// the position where the addresses that it describes begin at the start of the code.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[must_use]
pub struct VisibleCode<'a> {
    /// The code.
    pub code: Code<'a>,
    /// The part to show, within the code: what no other code covers. It is the range of the symbol, of the lines and
    /// of the unwind info. If it is empty, nothing is shown.
    pub visible: Range<u64>,
    /// Thumb code of 32-bit ARM: its symbol gets the low bit set. The code's address itself is even.
    pub is_thumb: bool,
}

impl<'a> VisibleCode<'a> {
    /// A code of which all is visible.
    pub fn whole(code: Code<'a>) -> Self {
        let visible = code.address..code.address.saturating_add(code.size);
        Self { code, visible, is_thumb: false }
    }

    /// Sets the part to show.
    pub fn visible(mut self, visible: Range<u64>) -> Self {
        self.visible = visible;
        self
    }

    /// Sets whether it is Thumb code.
    pub fn thumb(mut self, is_thumb: bool) -> Self {
        self.is_thumb = is_thumb;
        self
    }

    /// The addresses of the whole code.
    pub(crate) fn range(&self) -> Range<u64> {
        self.code.address..self.code.address.saturating_add(self.code.size)
    }

    /// The ready unwind info.
    pub(crate) fn eh_frame(&self) -> Option<&'a [u8]> {
        match self.code.unwind {
            Some(Unwind::EhFrame(section)) => Some(section),
            _ => None,
        }
    }
}
