//! The unwind tables.

use std::ops::Range;

use super::LoadedFile;

/// The first version of `.eh_frame_hdr`, whose first pointer has 32 bits, is signed, and is relative to its own address. All linkers write it.
const HEADER: [u8; 2] = [1, 0x1b];

impl LoadedFile {
    /// The addresses of `.eh_frame_hdr` and of `.eh_frame`.
    pub(super) fn unwind_tables(&self) -> Option<(Range<u64>, Range<u64>)> {
        let header = self.unwind_header.clone()?;
        let size = header.end.checked_sub(header.start)?;
        let bytes = self.at(header.start, size)?;
        if !bytes.starts_with(&HEADER) {
            return None;
        }
        let pointer = i32::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
        let tables = header.start.checked_add(4)?.checked_add_signed(pointer.into())?;
        Some((header, tables..self.end_of_tables(tables)?))
    }

    /// The end of the entries that begin at an address: behind an entry of size 0, or where the segment ends.
    fn end_of_tables(&self, start: u64) -> Option<u64> {
        let end = start.checked_add(self.left(start)?)?;
        let mut at = start;
        while let Some(size) = self.number(at) {
            let next = match size {
                0 => return at.checked_add(4),
                // The size follows in 64 bits.
                u32::MAX => {
                    let long = self.at(at.checked_add(4)?, 8)?;
                    at.checked_add(12)?.checked_add(u64::from_le_bytes(*long.first_chunk()?))?
                }
                size => at.checked_add(4)?.checked_add(size.into())?,
            };
            if next > end {
                break;
            }
            at = next;
        }
        Some(at)
    }
}
