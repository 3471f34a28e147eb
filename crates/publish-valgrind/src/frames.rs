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

/// The common parts, which stand before all entries.
#[derive(Debug, Default)]
pub(crate) struct Commons {
    pub(crate) bytes: Vec<u8>,
    each: Vec<Range<usize>>,
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
    (address, size): (u64, u64),
    unwind: &Unwind<'_>,
) {
    let Some(machine) = Machine::host() else { return };
    let mut section = Vec::new();
    // Where it would stand is of no matter: the addresses in it are replaced.
    if unwind_info::eh_frame(machine, size, 0, unwind, &mut section).is_ok()
        && let Some((common, instructions)) = translate(&section)
    {
        push_entry(out, commons.place(&common), (address, size), instructions);
    }
}

fn push_entry(out: &mut Vec<u8>, common: u32, (address, size): (u64, u64), instructions: &[u8]) {
    let start = out.len();
    out.u32(0);
    out.u32(common);
    out.u64(address);
    out.u64(size);
    out.extend_from_slice(instructions);
    finish(out, start);
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
