//! The positions of code in a file.

use std::ops::Range;

use crate::code::VisibleCode;

/// Mappings start on multiples of this. The text starts at this file offset, behind the headers.
///
/// Machines with larger pages are no exception: a recording may contain mappings of any granularity.
pub(crate) const PAGE: u64 = 0x1000;

/// Maps addresses in the process to those of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The arena.
    pub(crate) span: Range<u64>,
    /// The file's address of the page that the arena starts in; a multiple of the page size.
    pub(crate) text: u64,
}

impl Place {
    /// The virtual address of an address in the process, which must be in the arena or above it.
    pub(crate) fn virtual_address(&self, address: u64) -> u64 {
        address.saturating_sub(page_floor(self.span.start)).saturating_add(self.text)
    }

    /// The inverse of [`Self::virtual_address`].
    pub(crate) fn process_address(&self, address: u64) -> u64 {
        page_floor(self.span.start).wrapping_add(address.wrapping_sub(self.text))
    }

    /// The offset in the file of the text at a virtual address.
    pub(crate) fn file_offset(&self, address: u64) -> u64 {
        address.wrapping_sub(self.text).saturating_add(PAGE)
    }

    /// The virtual address behind the text.
    pub(crate) fn text_end(&self) -> u64 {
        self.virtual_address(self.span.end)
    }
}

/// The bytes of the part to show, as far as known.
pub(crate) fn visible_bytes<'a>(code: &VisibleCode<'a>) -> &'a [u8] {
    let bytes = code.code.bytes.unwrap_or_default();
    let offset = |address: u64| {
        usize::try_from(address.saturating_sub(code.code.address)).unwrap_or(usize::MAX)
    };
    let (from, to) = (offset(code.visible.start), offset(code.visible.end));
    bytes.get(from..to.min(bytes.len())).unwrap_or_default()
}

/// The start of the page that contains `address`.
pub(crate) fn page_floor(address: u64) -> u64 {
    address & !(PAGE - 1)
}
