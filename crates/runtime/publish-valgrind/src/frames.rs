//! `.debug_frame`: the unwind info of codes.
//!
//! `.eh_frame` would work, too, but must be in memory that is mapped; this need not.

use std::ops::Range;

use fallible::Vec;

use unwind_info::{Machine, Unwind};

use crate::encode::{Encode, put, word};

/// Marks a CIE in `.debug_frame`.
const CIE: u32 = u32::MAX;
/// Offsets in an FDE of its CIE pointer, its address and its size.
const CIE_AT: usize = 4;
const ADDRESS_AT: usize = 8;
const SIZE_AT: usize = 16;
const INSTRUCTIONS_AT: usize = 24;
/// Offset in a CIE of what follows its length and its id.
const ENTRY_AT: usize = 8;

/// The CIEs, which precede all FDEs.
#[derive(Debug, Default)]
pub(crate) struct Commons {
    pub(crate) bytes: Vec<u8>,
    each: Vec<Range<usize>>,
    /// Offset of the CIE for codes with [`Unwind`] descriptions, if there are any.
    described: Option<u32>,
}

impl Commons {
    /// The offset of this CIE, which is added if necessary.
    fn place(&mut self, common: &[u8]) -> u32 {
        let found = self.each.iter().find(|each| self.bytes.get((*each).clone()) == Some(common));
        let at = found.map_or(self.bytes.len(), |each| each.start);
        if found.is_none() {
            self.bytes.extend_from_slice(common);
            self.each.push(at..self.bytes.len());
        }
        at as u32
    }

    /// The CIE at an offset.
    fn at(&self, at: u32) -> &[u8] {
        let found = self.each.iter().find(|each| each.start == at as usize);
        found.and_then(|each| self.bytes.get(each.clone())).unwrap_or_default()
    }
}

/// Appends the FDE of a code; nothing if its unwind info cannot be used.
pub(crate) fn push(
    out: &mut Vec<u8>,
    commons: &mut Commons,
    place: (u64, u64),
    unwind: &Unwind<'_>,
) {
    let Some(machine) = Machine::host() else { return };
    let start = out.len();
    let common = if let Unwind::EhFrame(section) = unwind {
        push_ready(out, commons, machine, place.1, section)
    } else {
        push_described(out, commons, machine, place.1, unwind)
    };
    let Some(common) = common else { return out.truncate(start) };
    put(out, start + CIE_AT, common.to_le_bytes());
    put(out, start + ADDRESS_AT, place.0.to_le_bytes());
    put(out, start + SIZE_AT, place.1.to_le_bytes());
    finish(out, start);
}

/// Appends an FDE without its common fields. Returns the offset of its CIE.
fn push_described(
    out: &mut Vec<u8>,
    commons: &mut Commons,
    machine: Machine,
    size: u64,
    unwind: &Unwind<'_>,
) -> Option<u32> {
    // FDEs of `.eh_frame` have shorter addresses, followed by the size of the personality's data: 0, which is a
    // no-op as an instruction.
    const LESS: usize = 8;
    out.extend_from_slice(&[0; LESS]);
    described(unwind_info::fde(machine, 0, LESS as i64, size, unwind, out.inner_mut()))?;
    if commons.described.is_none() {
        let common = Common::read(machine.cie().get(ENTRY_AT..)?)?;
        commons.described = Some(commons.place(&common.bytes));
    }
    commons.described
}

/// Like [`push_described`], for a ready section.
fn push_ready(
    out: &mut Vec<u8>,
    commons: &mut Commons,
    machine: Machine,
    size: u64,
    section: &[u8],
) -> Option<u32> {
    let mut checked = Vec::new();
    // The place does not matter, because the addresses in it are replaced.
    let unwind = Unwind::EhFrame(section);
    described(unwind_info::eh_frame(machine, size, 0, &unwind, checked.inner_mut()))?;
    let (common, instructions) = translate(&checked)?;
    out.extend_from_slice(&[0; INSTRUCTIONS_AT]);
    out.extend_from_slice(instructions);
    Some(commons.place(&common))
}

/// The result; `None` if it cannot be described.
fn described<T>(made: Result<T, unwind_info::Error>) -> Option<T> {
    if let Err(unwind_info::Error::Memory) = made {
        fallible::refuse();
    }
    made.ok()
}

/// Pads an FDE to a multiple of 8 and sets its length.
fn finish(out: &mut Vec<u8>, start: usize) {
    let size = (out.len() - start).next_multiple_of(8);
    out.resize(start + size, 0); // DW_CFA_nop
    put(out, start, ((size - 4) as u32).to_le_bytes());
}

/// Appends an FDE of another section.
pub(crate) fn copy(out: &mut Vec<u8>, commons: &mut Commons, from: &Commons, entry: &[u8]) {
    let start = out.len();
    out.extend_from_slice(entry);
    if !entry.is_empty() {
        let common = commons.place(from.at(word(entry, CIE_AT)));
        put(out, start + CIE_AT, common.to_le_bytes());
    }
}

/// Disables the FDE.
pub(crate) fn tombstone(entry: &mut [u8]) {
    if !entry.is_empty() {
        put(entry, SIZE_AT, 0_u64.to_le_bytes());
        entry.get_mut(INSTRUCTIONS_AT..).unwrap_or_default().fill(0);
    }
}

/// Sets the address of the code.
pub(crate) fn move_to(entry: &mut [u8], address: u64) {
    if !entry.is_empty() {
        put(entry, ADDRESS_AT, address.to_le_bytes());
    }
}

/// Converts a section to a CIE for `.debug_frame`, and the FDE's instructions.
fn translate(section: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut common = None;
    let mut rest = section;
    loop {
        let length = usize::try_from(take_u32(&mut rest)?).ok().filter(|length| *length > 0)?;
        let (mut entry, behind) = rest.split_at_checked(length)?;
        rest = behind;
        if take_u32(&mut entry)? == 0 {
            common = Some(Common::read(entry)?);
        } else {
            let Common { encoding, has_size, bytes } = common?;
            entry = entry.get(2 * width(encoding)?..)?;
            if has_size {
                let size = take_uleb(&mut entry)?;
                entry = entry.get(usize::try_from(size).ok()?..)?;
            }
            return Some((bytes, entry));
        }
    }
}

/// The size of a pointer, by its `DW_EH_PE` encoding; `None` if it varies.
fn width(encoding: u8) -> Option<usize> {
    match encoding & 0x0f {
        0x00 | 0x04 | 0x0c => Some(8),
        0x03 | 0x0b => Some(4),
        0x02 | 0x0a => Some(2),
        _ => None,
    }
}

/// A CIE of `.eh_frame`.
struct Common {
    /// Encoding of the addresses in FDEs.
    encoding: u8,
    /// Whether FDEs have a field with the size of the personality's data.
    has_size: bool,
    /// The CIE for `.debug_frame`.
    bytes: Vec<u8>,
}

impl Common {
    /// Reads what follows the id.
    fn read(mut entry: &[u8]) -> Option<Self> {
        let version = take(&mut entry)?;
        let end = entry.iter().position(|byte| *byte == 0)?;
        let (augmentation, rest) = entry.split_at(end);
        entry = rest.get(1..)?;
        let numbers = entry;
        take_uleb(&mut entry)?; // unit of code offsets
        take_uleb(&mut entry)?; // unit of frame offsets
        let units = numbers.get(..numbers.len() - entry.len())?;
        let return_address = match version {
            1 => u64::from(take(&mut entry)?),
            3 => take_uleb(&mut entry)?,
            _ => return None,
        };
        let has_size = augmentation.first() == Some(&b'z');
        let mut encoding = 0;
        if has_size {
            let size = usize::try_from(take_uleb(&mut entry)?).ok()?;
            let (mut data, behind) = entry.split_at_checked(size)?;
            entry = behind;
            for letter in augmentation.get(1..)? {
                match letter {
                    b'R' => encoding = take(&mut data)?,
                    b'L' => drop(take(&mut data)?),
                    b'S' | b'B' => {}
                    b'P' => {
                        let width = width(take(&mut data)?)?;
                        data = data.get(width..)?;
                    }
                    _ => return None,
                }
            }
        } else if !augmentation.is_empty() {
            return None;
        }
        let mut bytes = Vec::new();
        bytes.u32(0);
        bytes.u32(CIE);
        bytes.extend_from_slice(&[1, 0]); // version, no augmentation
        bytes.extend_from_slice(units);
        bytes.push(u8::try_from(return_address).ok()?);
        bytes.extend_from_slice(entry);
        finish(&mut bytes, 0);
        Some(Self { encoding, has_size, bytes })
    }
}

fn take(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*first))
}

/// A LEB128 number; if it does not fit into 64 bits, its lower bits.
fn take_uleb(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let byte = take(bytes)?;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use gimli::{
        BaseAddresses, DebugFrame, LittleEndian, UnwindContext, UnwindSection, UnwindTableRow,
    };
    use unwind_info::Row;

    use super::*;

    const PLACE: (u64, u64) = (0x71_2345_6010, 40);

    /// The rows at some addresses of the code, with its FDE and one of another code in the section.
    fn read(unwind: &Unwind<'_>) -> Vec<UnwindTableRow<usize>> {
        let (mut section, mut commons) = (Vec::new(), Commons::default());
        push(&mut section, &mut commons, (0x1000, 8), &Unwind::FRAME_POINTER);
        push(&mut section, &mut commons, PLACE, unwind);
        assert!(commons.bytes.len().is_multiple_of(8) && section.len().is_multiple_of(8));
        let bytes = [&commons.bytes[..], &section].concat();
        let mut section = DebugFrame::new(&bytes, LittleEndian);
        section.set_address_size(8);
        let (bases, mut context) = (BaseAddresses::default(), UnwindContext::new());
        let mut at = |offset| {
            let address = PLACE.0 + offset;
            let found = section.unwind_info_for_address(
                &bases,
                &mut context,
                address,
                DebugFrame::cie_from_offset,
            );
            found.unwrap().clone()
        };
        [0, 3, 4, 38, 39].map(&mut at).to_vec().into()
    }

    #[test]
    fn encoded_rows_and_a_ready_section_agree() {
        let machine = Machine::host().unwrap();
        let at_entry = i32::from(machine == Machine::X86_64) * 8;
        let stack_pointer = machine.stack_pointer();
        let row =
            |offset, cfa_offset, saved| Row::new(offset, stack_pointer, cfa_offset).saved(saved);
        let rows = [row(4, at_entry + 32, &[(3, -16)]), row(36, at_entry, &[])];
        let described = read(&Unwind::Rows(&rows));
        let offset = |row: &UnwindTableRow<usize>| match row.cfa() {
            gimli::CfaRule::RegisterAndOffset { offset, .. } => *offset - i64::from(at_entry),
            other => panic!("{other:?}"),
        };
        assert_eq!(described.iter().map(offset).collect::<Vec<_>>(), [0, 0, 32, 0, 0]);
        let saved = described[2].register(gimli::Register(3));
        assert_eq!(saved, Some(gimli::RegisterRule::Offset(-16)));
        let mut ready = Vec::new();
        let (size, unwind) = (PLACE.1, Unwind::Rows(&rows));
        unwind_info::eh_frame(machine, size, 0, &unwind, ready.inner_mut()).unwrap();
        assert_eq!(read(&Unwind::EhFrame(&ready)), described);
    }

    #[test]
    fn invalid_unwind_info_writes_nothing() {
        let (mut section, mut commons) = (Vec::new(), Commons::default());
        let outside = [Row::new(40, 0, 0)];
        for unwind in [Unwind::Rows(&outside), Unwind::EhFrame(&[1, 2, 3])] {
            push(&mut section, &mut commons, PLACE, &unwind);
            assert_eq!((section.len(), commons.bytes.len()), (0, 0));
        }
    }
}
