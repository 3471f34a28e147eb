//! Segments of code: which address code has that is at an offset in the file.

use std::ops::Range;

/// What is mapped are whole pages.
const PAGE: u64 = 1 << 12;

/// The segments of code of a file.
#[derive(Clone, Debug, Default)]
pub struct CodeSegments {
    /// By offset in the file.
    segments: Vec<Segment>,
}

/// A segment of code.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub offset: u64,
    pub size_in_file: u64,
    pub size_in_memory: u64,
    pub address: u64,
}

impl CodeSegments {
    pub(crate) fn new(segments: impl Iterator<Item = Segment>) -> Self {
        let mut segments: Vec<Segment> = segments.collect();
        segments.sort_by_key(|segment| segment.offset);
        Self { segments }
    }

    /// The last segment that begins at this offset in the file or before, and how far the offset is behind its beginning.
    fn before(&self, offset: u64) -> Option<(&Segment, u64)> {
        let behind = self.segments.partition_point(|segment| segment.offset <= offset);
        let segment = self.segments.get(behind.checked_sub(1)?)?;
        Some((segment, offset.checked_sub(segment.offset)?))
    }

    /// The address of the code at this offset in the file.
    #[must_use]
    pub fn address(&self, offset: u64) -> Option<u64> {
        let (segment, into) = self.before(offset)?;
        segment.address.checked_add(into).filter(|_| into < segment.size_in_file)
    }

    /// Like [`Self::address`], also for what is mapped there but not in the file: the rest of the last page, and the code of images without bytes.
    #[must_use]
    pub fn mapped_address(&self, offset: u64) -> Option<u64> {
        let (segment, into) = self.before(offset)?;
        let size = segment.size_in_memory.checked_next_multiple_of(PAGE)?;
        (into < size).then(|| segment.address.wrapping_add(into))
    }

    /// How far addresses of the file are above its offsets, at this offset.
    #[must_use]
    pub fn above_offset(&self, offset: u64) -> Option<u64> {
        let (segment, _) = self.before(offset)?;
        let end = segment.offset.checked_add(segment.size_in_file)?;
        let end = end.checked_next_multiple_of(PAGE)?;
        (offset < end).then(|| segment.address.wrapping_sub(segment.offset))
    }

    /// Where code with these addresses is in the file.
    #[must_use]
    pub fn offset(&self, addresses: &Range<u64>) -> Option<u64> {
        let size = addresses.end.checked_sub(addresses.start)?;
        self.segments.iter().find_map(|segment| {
            let into = addresses.start.checked_sub(segment.address)?;
            let is_inside = into.checked_add(size)? <= segment.size_in_file;
            is_inside.then(|| segment.offset.checked_add(into)).flatten()
        })
    }

    /// The part of a mapping that a segment of code fills; the whole mapping if there is no code. Mappings begin and end at pages, also where
    /// segments do not, and samply rejects a part of a mapping that reaches beyond the segment.
    ///
    /// `offset` is where `range` begins in the file.
    #[must_use]
    pub fn filled(&self, range: &Range<u64>, offset: u64) -> Range<u64> {
        let size = |range: &Range<u64>| range.end.saturating_sub(range.start);
        let end = offset.saturating_add(size(range));
        let parts = self.segments.iter().map(|segment| {
            let behind = segment.offset.saturating_add(segment.size_in_file);
            segment.offset.max(offset)..behind.min(end)
        });
        let address = |at: u64| range.start.saturating_add(at.saturating_sub(offset));
        match parts.filter(|part| !part.is_empty()).max_by_key(size) {
            Some(part) => address(part.start)..address(part.end),
            None => range.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(range: Range<u64>, address: u64) -> Segment {
        let size = range.end - range.start;
        Segment { offset: range.start, size_in_file: size, size_in_memory: size, address }
    }

    #[test]
    fn parts_of_mappings_end_with_the_segment() {
        let segments = [0x1180..0x3456, 0x100..0x1100].into_iter().map(|range| segment(range, 0));
        let code = CodeSegments::new(segments);
        // As mapped: two segments share a page.
        assert_eq!(code.filled(&(0x50_0000..0x50_3000), 0x1000), 0x50_0180..0x50_2456);
        assert_eq!(code.filled(&(0x50_0200..0x50_0300), 0x1200), 0x50_0200..0x50_0300);
        assert_eq!(code.filled(&(0x50_0000..0x50_1000), 0), 0x50_0100..0x50_1000);
        // Without code.
        assert_eq!(code.filled(&(0x50_0000..0x50_1000), 0x4000), 0x50_0000..0x50_1000);
        let end = u64::MAX - 9..u64::MAX;
        assert_eq!(code.filled(&end, u64::MAX - 3), end);
    }

    #[test]
    fn offsets_have_addresses() {
        let without_bytes =
            Segment { size_in_file: 0, size_in_memory: 0x10, ..segment(0x5000..0x5000, 0x9000) };
        let code =
            CodeSegments::new([segment(0x1000..0x1800, 0x40_1000), without_bytes].into_iter());
        assert_eq!(code.address(0x17ff), Some(0x40_17ff));
        assert_eq!(code.address(0x1800), None);
        assert_eq!(code.mapped_address(0x1fff), Some(0x40_1fff));
        assert_eq!(code.mapped_address(0x2000), None);
        assert_eq!((code.address(0x5008), code.mapped_address(0x5008)), (None, Some(0x9008)));
        assert_eq!(code.above_offset(0x1fff), Some(0x40_0000));
        assert_eq!((code.above_offset(0x2000), code.above_offset(0xfff)), (None, None));
        assert_eq!(code.offset(&(0x40_1100..0x40_1800)), Some(0x1100));
        assert_eq!(code.offset(&(0x40_1100..0x40_1801)), None);
        assert_eq!(code.offset(&(0x9000..0x9004)), None);
        assert_eq!(code.offset(&(u64::MAX - 1..u64::MAX)), None);
    }
}
