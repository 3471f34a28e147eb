//! UNWINDING_INFO: the unwind tables of a code.

use crate::endian::{Endian, Fields, to_u64};
use crate::error::ErrorKind;

/// The unwind tables of the code whose LOAD follows.
///
/// Addresses in the tables are relative to their own position. Writers compute them as if the data were in memory
/// directly behind the code, at the next multiple of 8, in the order of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnwindingInfo<'a> {
    /// The `.eh_frame` section; empty if the code has only a header, which means "unwind by frame pointer".
    pub eh_frame: &'a [u8],
    /// The `.eh_frame_hdr` section; empty if there is none.
    pub eh_frame_hdr: &'a [u8],
    /// How many bytes the tables occupy behind the code in the process's memory; 0 if they are not mapped there.
    pub mapped_size: u64,
    /// Which of the two sections comes first.
    pub order: UnwindOrder,
    /// What the record has behind the tables: from most writers, padding to a multiple of 8.
    pub padding: &'a [u8],
}

/// Which section of the unwind data comes first.
///
/// According to the specification it is the header. `perf inject` expects `.eh_frame` first, and every known writer
/// writes it first. The reader decides by the content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnwindOrder {
    /// `.eh_frame`, then `.eh_frame_hdr`.
    #[default]
    FrameFirst,
    /// `.eh_frame_hdr`, then `.eh_frame`.
    HeaderFirst,
}

impl<'a> UnwindingInfo<'a> {
    pub(crate) fn parse(mut fields: Fields<'a>, too_small: ErrorKind) -> Result<Self, ErrorKind> {
        let (unwinding_size, eh_frame_hdr_size, mapped_size) =
            Self::fixed(&mut fields).ok_or(too_small)?;
        let too_large = ErrorKind::UnwindingTooLarge {
            unwinding_size,
            eh_frame_hdr_size,
            available: to_u64(fields.rest.len()),
        };
        let endian = fields.endian;
        let data = fields.take(unwinding_size).ok_or(too_large)?;
        let frame_size = unwinding_size.checked_sub(eh_frame_hdr_size).ok_or(too_large)?;
        let mut split = Fields::new(data, endian);
        let frame_first = split.take(frame_size).map(|frame| (frame, split.rest));
        let mut split = Fields::new(data, endian);
        let header_first = split.take(eh_frame_hdr_size).map(|header| (split.rest, header));
        let (frame_first, header_first) = frame_first.zip(header_first).ok_or(too_large)?;
        let order = if fits(frame_first, endian) || !fits(header_first, endian) {
            UnwindOrder::FrameFirst
        } else {
            UnwindOrder::HeaderFirst
        };
        let (eh_frame, eh_frame_hdr) = match order {
            UnwindOrder::FrameFirst => frame_first,
            UnwindOrder::HeaderFirst => header_first,
        };
        Ok(Self { eh_frame, eh_frame_hdr, mapped_size, order, padding: fields.rest })
    }

    fn fixed(fields: &mut Fields<'a>) -> Option<(u64, u64, u64)> {
        Some((fields.u64()?, fields.u64()?, fields.u64()?))
    }

    /// Size of both sections together: the record's `unwinding_size`.
    #[must_use]
    pub fn unwinding_size(&self) -> u64 {
        to_u64(self.eh_frame.len()).saturating_add(to_u64(self.eh_frame_hdr.len()))
    }

    /// Offset of `.eh_frame` within the unwind data.
    #[must_use]
    pub fn eh_frame_offset(&self) -> u64 {
        match self.order {
            UnwindOrder::FrameFirst => 0,
            UnwindOrder::HeaderFirst => to_u64(self.eh_frame_hdr.len()),
        }
    }

    /// Offset of `.eh_frame_hdr` within the unwind data.
    #[must_use]
    pub fn eh_frame_hdr_offset(&self) -> u64 {
        match self.order {
            UnwindOrder::FrameFirst => to_u64(self.eh_frame.len()),
            UnwindOrder::HeaderFirst => 0,
        }
    }

    /// Whether both sections begin with valid content.
    pub(crate) fn is_well_formed(&self, endian: Endian) -> bool {
        fits((self.eh_frame, self.eh_frame_hdr), endian)
    }
}

/// Whether `frame` begins like an `.eh_frame` and `header` like an `.eh_frame_hdr`.
///
/// A header's first byte is its version, 1; the next three are pointer encodings. The first record of `.eh_frame` is
/// a CIE (its second word is 0) or the terminator (its first word is 0).
fn fits((frame, header): (&[u8], &[u8]), endian: Endian) -> bool {
    let header_fits = match header {
        [] => true,
        [1, encodings @ ..] => encodings.first_chunk::<3>().is_some_and(|all| {
            all.iter().all(|encoding| *encoding == 0xff || (*encoding & 0x0f) <= 0x0c)
        }),
        _ => false,
    };
    let mut words = Fields::new(frame, endian);
    let frame_fits = frame.is_empty() || words.u32() == Some(0) || words.u32() == Some(0);
    header_fits && frame_fits
}
