//! Reading one code's `.eh_frame`, entry by entry.

use std::ops::Range;

use jit_code::Code;

use super::Cause;
use super::cie::{CieTable, entry};
use super::cursor::Cursor;
use super::instructions::Source;
use crate::code::VisibleCode;
use crate::encode::Encoder;
use crate::target::Target;

/// An FDE, ready to be written.
#[derive(Debug)]
pub(super) struct Frame<'r> {
    /// The addresses described, within the visible part of the code.
    pub(super) range: Range<u64>,
    /// The number of its CIE.
    pub(super) cie: usize,
    /// The instructions from `range.start` on.
    pub(super) instructions: &'r [u8],
}

/// Reads the FDEs of one code.
#[derive(Debug)]
pub(super) struct FrameReader<'a> {
    target: Target,
    section: Cursor<'a>,
    code: Range<u64>,
    visible: Range<u64>,
    thumb: bool,
    cies: &'a mut CieTable,
    /// The entries not read yet.
    rest: Cursor<'a>,
    /// From the first to the last address that the FDEs read so far describe.
    extent: Option<Range<u64>>,
    scratch: Encoder,
}

impl<'a> FrameReader<'a> {
    /// Reads `bytes` as if they were behind the code, plus `displacement`.
    pub(super) fn new(
        target: Target,
        code: &VisibleCode<'_>,
        bytes: &'a [u8],
        displacement: u64,
        cies: &'a mut CieTable,
    ) -> Self {
        cies.begin_section();
        // the position that the writers of such sections assume, relative to the code
        let Code { address: start, size, .. } = code.code;
        let behind_code = size.checked_next_multiple_of(8).unwrap_or(size);
        let address = start.wrapping_add(behind_code).wrapping_add(displacement);
        let section = Cursor::new(target, bytes, address);
        FrameReader {
            target,
            section,
            code: code.range(),
            visible: code.visible.clone(),
            thumb: code.is_thumb,
            cies,
            rest: section,
            extent: None,
            scratch: Encoder::new(target),
        }
    }

    /// The displacement of the section, if it begins to describe addresses outside the code: with it, the described
    /// addresses begin at the start of the code. Call this after all of it was read. `None` if what it describes does
    /// not fit into the code even then.
    pub(super) fn displacement(&self) -> Option<u64> {
        let extent = self.extent.clone()?;
        let size = self.code.end.saturating_sub(self.code.start);
        let fits = extent.end.saturating_sub(extent.start) <= size;
        (fits && !self.code.contains(&extent.start))
            .then(|| self.code.start.wrapping_sub(extent.start))
    }

    /// The next FDE; `None` at the end of the section.
    pub(super) fn next(&mut self) -> Option<Result<Frame<'_>, Cause>> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            match entry(&mut self.rest) {
                // the terminator: what follows is not part of the section
                Ok(None) => return None,
                Ok(Some((_, 0, _))) => {}
                Ok(Some((id_address, id, body))) => return Some(self.frame(id_address, id, body)),
                Err(cause) => {
                    // without a length there is no next entry
                    self.rest = Cursor::new(self.target, &[], 0);
                    return Some(Err(cause));
                }
            }
        }
    }

    /// Reads the FDE whose CIE pointer is at `id_address`; the CIE is `back` bytes before it.
    fn frame(
        &mut self,
        id_address: u64,
        back: u32,
        mut body: Cursor<'a>,
    ) -> Result<Frame<'_>, Cause> {
        let cie_offset = id_address
            .wrapping_sub(self.section.address())
            .checked_sub(back.into())
            .ok_or(Cause::Malformed)?;
        let (target, section, text) = (self.target, self.section, self.code.start);
        let cie = self.cies.get(target, section, cie_offset, text)?;

        let mut begin = cie.encoding.pointer(target, text, &mut body)?;
        if self.thumb {
            begin &= !1; // the bit that marks Thumb code in branch targets
        }
        // An absolute address outside the code was written before the code's address was known. It is relative to the
        // code's start.
        let size = self.code.end.saturating_sub(self.code.start);
        if cie.encoding.is_absolute() && !self.code.contains(&begin) && begin < size {
            begin = begin.saturating_add(self.code.start);
        }
        let len = cie.encoding.value(&mut body)?;
        let end = begin.checked_add(len).ok_or(Cause::Malformed)?;
        if cie.has_augmentation_data {
            let len = body.uleb()?;
            body.split(len)?;
        }
        self.extent = Some(match self.extent.take() {
            Some(extent) => extent.start.min(begin)..extent.end.max(end),
            None => begin..end,
        });

        let range = begin.max(self.visible.start)..end.min(self.visible.end);
        if range.is_empty() {
            return Err(Cause::Outside);
        }
        let source = Source {
            target,
            instructions: body,
            unit: cie.code_alignment,
            encoding: cie.encoding,
            text,
        };
        self.scratch.bytes.clear();
        source.write_part(begin, &range, &mut self.scratch)?;
        Ok(Frame { range, cie: cie.number, instructions: &self.scratch.bytes })
    }
}
