//! `.debug_frame`: how each code is unwound.
//!
//! `.eh_frame` would do as well, but must lie in memory that is mapped; this need not.

use std::ops::Range;

use unwind_info::{Machine, Unwind};

use crate::encode::{Encode, put, word};

/// Marks a CIE in `.debug_frame`.
const CIE: u32 = u32::MAX;
/// Where an entry has its CIE, its address and its size.
const CIE_AT: usize = 4;
const ADDRESS_AT: usize = 8;
const SIZE_AT: usize = 16;
const INSTRUCTIONS_AT: usize = 24;
/// Where a CIE goes on behind its length and its id.
const ENTRY_AT: usize = 8;

/// The common parts, which stand before all entries.
#[derive(Debug, Default)]
pub(crate) struct Commons {
    pub(crate) bytes: Vec<u8>,
    each: Vec<Range<usize>>,
    /// Where the one stands of codes whose frames are described, if any is.
    described: Option<u32>,
}

impl Commons {
    /// Where this common part stands; it is added if it does not.
    fn place(&mut self, common: &[u8]) -> u32 {
        let found = self.each.iter().find(|each| self.bytes.get((*each).clone()) == Some(common));
        let at = found.map_or(self.bytes.len(), |each| each.start);
        if found.is_none() {
            self.bytes.extend_from_slice(common);
            self.each.push(at..self.bytes.len());
        }
        at as u32
    }

    /// The common part that stands there.
    fn at(&self, at: u32) -> &[u8] {
        let found = self.each.iter().find(|each| each.start == at as usize);
        found.and_then(|each| self.bytes.get(each.clone())).unwrap_or_default()
    }
}

/// Appends the entry of a code, nothing if its description cannot be used.
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

/// An entry but for what is the same in all; where its common part stands.
fn push_described(
    out: &mut Vec<u8>,
    commons: &mut Commons,
    machine: Machine,
    size: u64,
    unwind: &Unwind<'_>,
) -> Option<u32> {
    // An entry of `.eh_frame` has shorter addresses, and behind them the size of what a personality wants: 0, which
    // as an instruction means nothing.
    const LESS: usize = 8;
    out.extend_from_slice(&[0; LESS]);
    unwind_info::fde(machine, 0, LESS as i64, size, unwind, out).ok()?;
    if commons.described.is_none() {
        let common = Common::read(machine.cie().get(ENTRY_AT..)?)?;
        commons.described = Some(commons.place(&common.bytes));
    }
    commons.described
}

/// The same of a ready section.
fn push_ready(
    out: &mut Vec<u8>,
    commons: &mut Commons,
    machine: Machine,
    size: u64,
    section: &[u8],
) -> Option<u32> {
    let mut checked = Vec::new();
    // Where it would stand is of no matter: the addresses in it are replaced.
    unwind_info::eh_frame(machine, size, 0, &Unwind::EhFrame(section), &mut checked).ok()?;
    let (common, instructions) = translate(&checked)?;
    out.extend_from_slice(&[0; INSTRUCTIONS_AT]);
    out.extend_from_slice(instructions);
    Some(commons.place(&common))
}

/// Pads an entry to a multiple of 8 and says how long it is.
fn finish(out: &mut Vec<u8>, start: usize) {
    let size = (out.len() - start).next_multiple_of(8);
    out.resize(start + size, 0); // DW_CFA_nop
    put(out, start, ((size - 4) as u32).to_le_bytes());
}

/// Appends an entry of another section.
pub(crate) fn copy(out: &mut Vec<u8>, commons: &mut Commons, from: &Commons, entry: &[u8]) {
    let start = out.len();
    out.extend_from_slice(entry);
    if !entry.is_empty() {
        let common = commons.place(from.at(word(entry, CIE_AT)));
        put(out, start + CIE_AT, common.to_le_bytes());
    }
}

/// The entry says nothing any more.
pub(crate) fn silence(entry: &mut [u8]) {
    if !entry.is_empty() {
        put(entry, SIZE_AT, 0_u64.to_le_bytes());
        entry.get_mut(INSTRUCTIONS_AT..).unwrap_or_default().fill(0);
    }
}

/// The code lies elsewhere now.
pub(crate) fn move_to(entry: &mut [u8], address: u64) {
    if !entry.is_empty() {
        put(entry, ADDRESS_AT, address.to_le_bytes());
    }
}

/// The common part as `.debug_frame` has it, and the code's instructions.
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
    /// Of the addresses in entries.
    encoding: u8,
    /// Whether entries have a field with the size of what a personality wants.
    has_size: bool,
    /// The same for `.debug_frame`.
    bytes: Vec<u8>,
}

impl Common {
    /// Reads what stands behind the id.
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

/// A number of variable length; of one that does not fit 64 bits, the lower ones.
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

    /// What holds at some addresses of the code, after its entry and one of another code were put.
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
        [0, 3, 4, 38, 39].map(&mut at).to_vec()
    }

    #[test]
    fn a_description_and_a_ready_section_say_the_same() {
        let machine = Machine::host().unwrap();
        let at_entry = i32::from(machine == Machine::X86_64) * 8;
        let stack_pointer = machine.stack_pointer();
        let row = |offset, cfa_offset, saved| Row {
            offset,
            cfa_register: stack_pointer,
            cfa_offset,
            saved,
            signed: false,
        };
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
        unwind_info::eh_frame(machine, size, 0, &unwind, &mut ready).unwrap();
        assert_eq!(read(&Unwind::EhFrame(&ready)), described);
    }

    #[test]
    fn what_cannot_be_used_leaves_nothing() {
        let (mut section, mut commons) = (Vec::new(), Commons::default());
        let outside = [Row { offset: 40, ..Row::default() }];
        for unwind in [Unwind::Rows(&outside), Unwind::EhFrame(&[1, 2, 3])] {
            push(&mut section, &mut commons, PLACE, &unwind);
            assert_eq!((section.len(), commons.bytes.len()), (0, 0));
        }
    }
}
