//! `.eh_frame` and `.eh_frame_hdr`.

use std::ops::Range;

use fallible::Vec;

use super::cie::CieTable;
use super::pointer::Encoding;
use super::reader::FrameReader;
use super::{Cause, UnwindSummary};
use crate::code::VisibleCode;
use crate::encode::Encoder;
use crate::target::Target;

/// `DW_EH_PE_udata4`.
const UDATA4: u8 = 0x03;
/// `DW_EH_PE_datarel | DW_EH_PE_sdata4`: a signed 32-bit distance from the start of the section.
const DATAREL_SDATA4: u8 = 0x3b;

/// Size of `.eh_frame_hdr` without its search table: version, encodings, pointer to `.eh_frame`, count.
const HEADER: u64 = 12;
/// Size of one entry of the search table.
const HEADER_ENTRY: u64 = 8;
/// Size of the length, and of the id or the pointer to the CIE.
const ENTRY_PREFIX: u64 = 8;
/// Size of start, length, and length of the (empty) augmentation data.
const FDE_FIXED: u64 = 9;
/// Size of the zero length that ends `.eh_frame`.
const TERMINATOR: u64 = 4;

/// Collects the FDEs of many codes.
#[derive(Debug, Clone)]
pub(crate) struct UnwindTables {
    pub(super) target: Target,
    pub(super) cies: CieTable,
    /// Ascending, without overlaps.
    pub(super) fdes: Vec<Fde>,
    /// The instructions of all FDEs.
    pub(super) instructions: Vec<u8>,
    summary: UnwindSummary,
}

#[derive(Debug, Clone)]
pub(super) struct Fde {
    pub(super) start: u64,
    pub(super) size: u32,
    pub(super) cie: usize,
    pub(super) instructions: Range<usize>,
}

/// The tables as they are written to the file.
#[derive(Debug)]
pub(crate) struct Emitted {
    /// `.eh_frame_hdr`, for the requested address.
    pub(crate) header: Encoder,
    /// `.eh_frame`.
    pub(crate) frames: Encoder,
    /// Distance of `.eh_frame` from `.eh_frame_hdr`.
    pub(crate) frames_offset: u64,
    pub(crate) summary: UnwindSummary,
}

impl UnwindTables {
    pub(crate) fn new(target: Target) -> Self {
        Self::with_encoding(target, Encoding::PC_RELATIVE_32)
    }

    /// Tables whose CIEs specify this encoding of addresses.
    pub(super) fn with_encoding(target: Target, encoding: Encoding) -> Self {
        UnwindTables {
            target,
            cies: CieTable::new(encoding),
            fdes: Vec::new(),
            instructions: Vec::new(),
            summary: UnwindSummary::default(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fdes.is_empty()
    }

    pub(crate) fn summary(&self) -> UnwindSummary {
        self.summary
    }

    /// Adds what `eh_frame` describes of the visible part of `code`. `place` maps addresses in the process to those
    /// of the file. Codes must be added in ascending order.
    pub(crate) fn add(
        &mut self,
        code: &VisibleCode<'_>,
        eh_frame: &[u8],
        place: impl Fn(u64) -> u64,
    ) {
        let (summary, fdes) = (self.summary, self.fdes.len());
        let instructions = self.instructions.len();
        if let Some(displacement) = self.collect(code, eh_frame, 0, &place) {
            self.summary = summary;
            self.fdes.truncate(fdes);
            self.instructions.truncate(instructions);
            self.collect(code, eh_frame, displacement, &place);
        }
    }

    /// Adds the content of `part`, which must describe code above everything described here, and empties it.
    pub(crate) fn append(&mut self, part: &mut Self) {
        self.summary.add(&part.summary);
        let cies =
            std::mem::replace(&mut part.cies, CieTable::new(Encoding::PC_RELATIVE_32)).written;
        let numbers: Vec<usize> = cies.into_iter().map(|cie| self.cies.number(cie)).collect();
        let before = self.instructions.len();
        self.instructions.append(&mut part.instructions);
        let behind = |at: usize| at.saturating_add(before);
        self.fdes.extend(part.fdes.drain(..).map(|fde| Fde {
            cie: numbers.get(fde.cie).copied().unwrap_or_default(),
            instructions: behind(fde.instructions.start)..behind(fde.instructions.end),
            ..fde
        }));
        part.summary = UnwindSummary::default();
    }

    /// Adds what the section describes if it is `displacement` bytes further than directly behind the code. If the
    /// described addresses look wrong, returns the likely displacement.
    fn collect(
        &mut self,
        code: &VisibleCode<'_>,
        eh_frame: &[u8],
        displacement: u64,
        place: impl Fn(u64) -> u64,
    ) -> Option<u64> {
        let first = self.fdes.len();
        let mut reader =
            FrameReader::new(self.target, code, eh_frame, displacement, &mut self.cies);
        while let Some(frame) = reader.next() {
            let frame = match frame {
                Ok(frame) => frame,
                Err(cause) => {
                    self.summary.count(cause);
                    continue;
                }
            };
            let Ok(size) = u32::try_from(frame.range.end.saturating_sub(frame.range.start)) else {
                self.summary.count(Cause::OutOfReach);
                continue;
            };
            let at = self.instructions.len();
            self.instructions.extend_from_slice(frame.instructions);
            self.fdes.push(Fde {
                start: place(frame.range.start),
                size,
                cie: frame.cie,
                instructions: at..self.instructions.len(),
            });
        }

        let displacement = reader.displacement();
        if self.fdes.len().saturating_sub(first) > 1 {
            self.sort_from(first);
        }
        displacement
    }

    /// Sorts the FDEs from the number `first` on, and drops those that overlap another.
    fn sort_from(&mut self, first: usize) {
        let mut added = self.fdes.split_off(first);
        added.sort_by_key(|fde| fde.start);
        let mut covered = 0;
        for fde in added {
            if fde.start < covered {
                self.summary.count(Cause::Overlapping);
            } else {
                covered = fde.start.saturating_add(fde.size.into());
                self.fdes.push(fde);
            }
        }
    }

    /// Total size in bytes of both tables, including the padding between them.
    pub(crate) fn size(&self) -> u64 {
        let cies = self.cies.written.iter().map(|cie| self.cie_size(cie));
        let fdes = self.fdes.iter().map(|fde| self.fde_size(fde));
        cies.chain(fdes).fold(self.frames_offset().saturating_add(TERMINATOR), u64::saturating_add)
    }

    fn frames_offset(&self) -> u64 {
        let table = HEADER_ENTRY.saturating_mul(self.fdes.len() as u64);
        HEADER.saturating_add(table).next_multiple_of(8)
    }

    fn padded(&self, size: u64) -> u64 {
        size.next_multiple_of(self.target.address_size().into())
    }

    fn cie_size(&self, cie: &[u8]) -> u64 {
        self.padded(ENTRY_PREFIX.saturating_add(cie.len() as u64))
    }

    fn fde_size(&self, fde: &Fde) -> u64 {
        let instructions = fde.instructions.len() as u64;
        self.padded((ENTRY_PREFIX + FDE_FIXED).saturating_add(instructions))
    }

    /// Writes the tables for `address`, where `.eh_frame_hdr` begins.
    pub(crate) fn emit(self, address: u64) -> Emitted {
        let mut summary = self.summary;
        let frames_offset = self.frames_offset();
        let frames_address = address.saturating_add(frames_offset);

        let mut frames = Encoder::new(self.target);
        frames.bytes.reserve_exact(usize::try_from(self.frames_size()).unwrap_or(0));
        let mut cie_offsets = Vec::with_capacity(self.cies.written.len());
        for cie in &self.cies.written {
            cie_offsets.push(frames.len());
            let size = self.cie_size(cie);
            let end = frames.len().saturating_add(size);
            frames.u32(size.saturating_sub(4) as u32);
            frames.u32(0); // marks a CIE
            frames.raw(cie);
            pad(&mut frames, end);
        }

        let mut table = Encoder::new(self.target);
        for fde in &self.fdes {
            let offset = frames.len();
            let fde_address = frames_address.saturating_add(offset);
            let cie_pointer = offset.saturating_add(4);
            let start_field = fde_address.saturating_add(8);
            let (Some(start), Some(table_start), Some(table_fde)) = (
                self.distance(start_field, fde.start),
                self.distance(address, fde.start),
                self.distance(address, fde_address),
            ) else {
                summary.count(Cause::OutOfReach);
                continue;
            };
            table.u32(table_start);
            table.u32(table_fde);

            let size = self.fde_size(fde);
            frames.u32(size.saturating_sub(4) as u32);
            let cie = cie_offsets.get(fde.cie).copied().unwrap_or_default();
            frames.u32(cie_pointer.saturating_sub(cie) as u32);
            frames.u32(start);
            frames.u32(fde.size);
            frames.uleb(0); // no augmentation data
            frames.raw(self.instructions.get(fde.instructions.clone()).unwrap_or_default());
            pad(&mut frames, offset.saturating_add(size));
        }
        frames.u32(0);

        let entries = table.len() / HEADER_ENTRY;
        let mut header = Encoder::new(self.target);
        header.raw(&[1, Encoding::PC_RELATIVE_32.0, UDATA4, DATAREL_SDATA4]);
        header.u32(frames_offset.saturating_sub(4) as u32);
        header.u32(entries as u32);
        header.raw(&table.bytes);

        summary.cies = self.cies.written.len() as u64;
        summary.fdes = entries;
        Emitted { header, frames, frames_offset, summary }
    }

    /// Size in bytes of `.eh_frame`.
    pub(crate) fn frames_size(&self) -> u64 {
        self.size().saturating_sub(self.frames_offset())
    }

    /// Writes `.eh_frame` for `address`, where it begins, without a search table.
    pub(crate) fn emit_frames(self, address: u64) -> (Encoder, UnwindSummary) {
        let before = self.frames_offset();
        let emitted = self.emit(address.wrapping_sub(before));
        (emitted.frames, emitted.summary)
    }

    /// The signed 32-bit distance from one address to another, if it fits. In a 32-bit address space every distance
    /// fits, because distances wrap.
    fn distance(&self, from: u64, to: u64) -> Option<u32> {
        let distance = to.wrapping_sub(from);
        if self.target.is_64 && i32::try_from(distance.cast_signed()).is_err() {
            return None;
        }
        Some(distance as u32)
    }
}

/// Pads with `DW_CFA_nop`.
pub(super) fn pad(out: &mut Encoder, end: u64) {
    let missing = end.saturating_sub(out.len());
    out.bytes.resize(out.bytes.len().saturating_add(missing as usize), 0);
}
