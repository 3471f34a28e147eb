//! The layout of a segment's file. Addresses in the file equal offsets in it.
//!
//! ```text
//! 0   file header, program and section headers, build-id, abbreviations   mapped R
//!     .text                                                                mapped R+X
//!     .hash .symtab .strtab .eh_frame_hdr .eh_frame                        mapped R
//!     .dynamic                                                             mapped R+W
//!     .debug_info .debug_line .debug_ranges                                not mapped
//! ```
//!
//! Each table has its full size reserved, which takes no disk space before it is used.

use std::ops::Range;

/// The search table for unwind info has a row for this many bytes of text.
pub(crate) const GRANULE: usize = 32;
/// Size of such a row.
pub(crate) const ROW: usize = 8;
/// Size of a symbol.
pub(crate) const SYMBOL: usize = 24;
/// Size of what precedes the rows in `.eh_frame_hdr`: encodings, the place of `.eh_frame`, the number
/// of rows.
pub(crate) const ROWS_HEADER: usize = 12;
/// Size of `.hash`: number of buckets, number of symbols, and one empty bucket.
pub(crate) const HASH: usize = 16;
/// Minimum and maximum size of a segment's text.
const TEXT: (usize, usize) = (64 << 10, 256 << 20);
/// Space is reserved for one symbol per this many bytes of text.
const CODE: usize = 128;
/// Bytes of names and of unwind info that are reserved per symbol.
const NAME: usize = 64;
const FRAME: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) page: usize,
    pub(crate) text: Range<usize>,
    pub(crate) hash: usize,
    pub(crate) symbols: Range<usize>,
    pub(crate) names: Range<usize>,
    /// The rows of `.eh_frame_hdr`, which begins [`ROWS_HEADER`] before.
    pub(crate) rows: Range<usize>,
    pub(crate) frames: Range<usize>,
    pub(crate) dynamic: usize,
    pub(crate) info: Range<usize>,
    pub(crate) line: Range<usize>,
    pub(crate) ranges: Range<usize>,
}

impl Layout {
    /// The layout for this size of text, with pages of this size.
    pub(crate) fn new(text: usize, page: usize) -> Self {
        let page = page.max(0x1000);
        let text = text.clamp(TEXT.0, TEXT.1).next_multiple_of(page);
        let codes = text / CODE;
        // A little more than 2^30 in total: nothing overflows here, and offsets have 32 bits.
        let behind = |end: usize, size: usize| end..end + size;
        let text = behind(page, text);
        let hash = text.end;
        let symbols = behind(hash + HASH + 8, (codes + 1) * SYMBOL);
        let names = behind(symbols.end, codes * NAME);
        // Rows are 64-bit words.
        let rows_header = names.end.next_multiple_of(8) + 4;
        let rows = behind(rows_header + ROWS_HEADER, text.len() / GRANULE * ROW);
        let frames = behind(rows.end, codes * FRAME);
        let dynamic = frames.end.next_multiple_of(page);
        let info = behind(dynamic + page, text.len() / 2);
        let line = behind(info.end, text.len());
        let ranges = behind(line.end, text.len() / 8);
        Self { page, text, hash, symbols, names, rows, frames, dynamic, info, line, ranges }
    }

    /// Where `.eh_frame_hdr` begins.
    pub(crate) fn rows_header(&self) -> usize {
        self.rows.start - ROWS_HEADER
    }

    /// Behind all that the process maps.
    pub(crate) fn mapped(&self) -> usize {
        self.dynamic + self.page
    }

    /// Behind everything.
    pub(crate) fn size(&self) -> usize {
        self.ranges.end.next_multiple_of(self.page)
    }
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn sections_do_not_overlap() {
        // Pages of AArch64 have 4, 16 or 64 KiB.
        let cases = [0, 1 << 20, 1 << 30]
            .into_iter()
            .flat_map(|text| [4 << 10, 16 << 10, 64 << 10].map(|page| (text, page)));
        for (text, page) in cases {
            let layout = Layout::new(text, page);
            assert!(
                [layout.text.start, layout.text.end, layout.dynamic]
                    .iter()
                    .all(|at| at % page == 0)
            );
            let ends = [
                layout.page,
                layout.text.end,
                layout.hash + super::HASH,
                layout.symbols.end,
                layout.names.end,
                layout.rows.end,
                layout.frames.end,
                layout.mapped(),
                layout.info.end,
                layout.line.end,
                layout.ranges.end,
                layout.size(),
            ];
            assert!(ends.is_sorted());
            assert!(layout.size() < i32::MAX as usize);
            assert_eq!(
                (layout.rows.start % 8, layout.frames.start % 8, layout.symbols.start % 8),
                (0, 0, 0)
            );
        }
    }
}
