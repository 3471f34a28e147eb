//! One code's `.eh_frame`, entry by entry.

use std::collections::HashMap;
use std::ops::Range;

use gimli::{BaseAddresses, EhFrame, EhFrameOffset, EndianSlice, RunTimeEndian, UnwindSection};

use super::Cause;
use super::instructions;
use crate::code::Code;
use crate::encode::Encoder;
use crate::target::{Endian, Target};

pub(super) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;
pub(super) type Section<'a> = EhFrame<Slice<'a>>;
type Cie<'a> = gimli::CommonInformationEntry<Slice<'a>>;
type Fde<'a> = gimli::FrameDescriptionEntry<Slice<'a>>;

const EM_AARCH64: u16 = 183;

/// A frame description with its common part, both ready to be written.
#[derive(Debug)]
pub(super) struct Frame<'r> {
    /// The addresses described, within the visible part of the code.
    pub(super) range: Range<u64>,
    /// The common part: all of it behind length and id.
    pub(super) cie: &'r [u8],
    /// The instructions from `range.start` on.
    pub(super) instructions: &'r [u8],
}

/// Reads the frame descriptions of one code.
#[derive(Debug)]
pub(super) struct FrameReader<'a> {
    target: Target,
    section: Section<'a>,
    bytes: Slice<'a>,
    bases: BaseAddresses,
    code: Range<u64>,
    visible: Range<u64>,
    /// Common parts by offset, read once however many frame descriptions refer to them.
    cies: HashMap<usize, Result<(Cie<'a>, Vec<u8>), Cause>>,
    /// Offset of the next entry.
    at: usize,
    scratch: Encoder,
}

impl<'a> FrameReader<'a> {
    pub(super) fn new(target: Target, code: &Code<'_>, bytes: &'a [u8]) -> Self {
        let endian = match target.endian {
            Endian::Little => RunTimeEndian::Little,
            Endian::Big => RunTimeEndian::Big,
        };
        let mut section = EhFrame::new(bytes, endian);
        section.set_address_size(target.address_size());
        if target.machine == EM_AARCH64 {
            section.set_vendor(gimli::Vendor::AArch64);
        }
        // where the writers of such sections take them to be, relative to the code
        let behind_code = code.size.checked_next_multiple_of(8).unwrap_or(code.size);
        let address = code.start.wrapping_add(behind_code);
        FrameReader {
            target,
            section,
            bytes: EndianSlice::new(bytes, endian),
            bases: BaseAddresses::default().set_eh_frame(address).set_text(code.start),
            code: code.start..code.start.saturating_add(code.size),
            visible: code.visible.clone(),
            cies: HashMap::new(),
            at: 0,
            scratch: Encoder::new(target),
        }
    }

    /// The next frame description; `None` at the end of the section.
    pub(super) fn next(&mut self) -> Option<Result<Frame<'_>, Cause>> {
        loop {
            let offset = self.at;
            match self.step() {
                Ok(None) => return None,
                Ok(Some(Entry::Common)) => {}
                Ok(Some(Entry::Frame)) => return Some(self.frame(offset)),
                Err(cause) => {
                    // without a length there is no next entry
                    self.at = self.bytes.len();
                    return Some(Err(cause));
                }
            }
        }
    }

    /// Moves on behind the entry at `self.at`.
    fn step(&mut self) -> Result<Option<Entry>, Cause> {
        use gimli::Reader;
        let mut rest = self.bytes.range_from(self.at..);
        if rest.is_empty() {
            return Ok(None);
        }
        let (length, _) = rest.read_initial_length()?;
        if length == 0 {
            return Ok(None);
        }
        let mut entry = rest.split(length)?;
        self.at = self.bytes.len().saturating_sub(rest.len());
        Ok(Some(if entry.read_u32()? == 0 { Entry::Common } else { Entry::Frame }))
    }

    fn frame(&mut self, offset: usize) -> Result<Frame<'_>, Cause> {
        let partial = self.section.partial_fde_from_offset(&self.bases, EhFrameOffset(offset))?;
        let cie_offset = partial.cie_offset().0;
        if !self.cies.contains_key(&cie_offset) {
            let cie = read_cie(self.target, &self.section, &self.bases, cie_offset);
            self.cies.insert(cie_offset, cie);
        }
        let (cie, cie_bytes) = match self.cies.get(&cie_offset) {
            Some(Ok(known)) => known,
            Some(Err(cause)) => return Err(*cause),
            None => return Err(Cause::Malformed),
        };
        let fde = partial.parse(|_, _, _| Ok(cie.clone()))?;

        let begin = self.begin(&fde);
        let end = begin.checked_add(fde.len()).ok_or(Cause::Malformed)?;
        let range = begin.max(self.visible.start)..end.min(self.visible.end);
        if range.is_empty() {
            return Err(Cause::Outside);
        }
        self.scratch.bytes.clear();
        write_instructions(&fde, begin, &range, &self.section, &self.bases, &mut self.scratch)?;
        Ok(Frame { range, cie: cie_bytes, instructions: &self.scratch.bytes })
    }

    /// The first address described. An absolute one that lies outside of the code was written before
    /// anyone knew where the code would go: it counts from the code's start.
    fn begin(&self, fde: &Fde<'_>) -> u64 {
        let begin = fde.initial_address();
        let absolute = fde
            .cie()
            .fde_address_encoding()
            .is_none_or(|encoding| encoding.application() == gimli::DW_EH_PE_absptr);
        let size = self.code.end.saturating_sub(self.code.start);
        if absolute && !self.code.contains(&begin) && begin < size {
            self.code.start.saturating_add(begin)
        } else {
            begin
        }
    }
}

enum Entry {
    Common,
    Frame,
}

/// Reads the common part at `offset`, and writes it anew: with position-independent addresses in
/// four bytes, without personality routine and language data, which mean nothing outside of the
/// process.
fn read_cie<'a>(
    target: Target,
    section: &Section<'a>,
    bases: &BaseAddresses,
    offset: usize,
) -> Result<(Cie<'a>, Vec<u8>), Cause> {
    const VERSION_WITH_SHORT_REGISTER: u8 = 1;
    const VERSION_WITH_ANY_REGISTER: u8 = 3;
    let cie = section.cie_from_offset(bases, EhFrameOffset(offset))?;
    let mut out = Encoder::new(target);
    let register = cie.return_address_register().0;
    let short_register = u8::try_from(register);
    out.u8(if short_register.is_ok() {
        VERSION_WITH_SHORT_REGISTER
    } else {
        VERSION_WITH_ANY_REGISTER
    });
    out.string(if cie.is_signal_trampoline() { b"zRS" } else { b"zR" });
    out.uleb(1); // code alignment factor: see `instructions`
    out.sleb(cie.data_alignment_factor());
    match short_register {
        Ok(register) => out.u8(register),
        Err(_) => out.uleb(register.into()),
    }
    out.uleb(1); // length of the augmentation data
    out.u8(super::tables::PCREL_SDATA4);
    let mut initial = cie.instructions(section, bases);
    while let Some(instruction) = initial.next()? {
        instructions::push(&instruction, section, &mut out)?;
    }
    Ok((cie, out.bytes))
}

/// Writes the instructions of a frame description that begins at `begin` for the part `range` of it:
/// what is in force at the beginning of the part is said there.
fn write_instructions<'a>(
    fde: &Fde<'a>,
    begin: u64,
    range: &Range<u64>,
    section: &Section<'a>,
    bases: &BaseAddresses,
    out: &mut Encoder,
) -> Result<(), Cause> {
    use gimli::CallFrameInstruction::{AdvanceLoc, SetLoc};
    let unit = fde.cie().code_alignment_factor();
    let mut location = begin;
    let mut written = range.start;
    let mut input = fde.instructions(section, bases);
    while let Some(instruction) = input.next()? {
        match instruction {
            AdvanceLoc { delta } => {
                location = u64::from(delta)
                    .checked_mul(unit)
                    .and_then(|distance| location.checked_add(distance))
                    .ok_or(Cause::Malformed)?;
            }
            SetLoc { address } if address >= location => location = address,
            SetLoc { .. } => return Err(Cause::Malformed),
            // read to the end all the same: a damaged description is worth nothing
            _ if location >= range.end => {}
            instruction => {
                if let Some(distance) = location.checked_sub(written) {
                    instructions::push_advance(distance, out)?;
                    written = location;
                }
                instructions::push(&instruction, section, out)?;
            }
        }
    }
    Ok(())
}
