//! The CFI of a code, in pieces of one FDE each.

use std::ops::Range;

use code_image::{Endian, Target, VisibleCode};
use fallible::Vec;
use jit_code::Code;
use unwind_info::{Error, Machine, Saves, Unwind};

/// An FDE behind its CIE, with absolute addresses, so that it is valid anywhere.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) code: Range<u64>,
    pub(crate) bytes: Vec<u8>,
}

/// The same, borrowed: for the code from `start` to `end`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frames<'a> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) bytes: &'a [u8],
    /// Size of the CIE.
    pub(crate) common: usize,
}

impl Entry {
    /// `None` if it is too short to be one.
    pub(crate) fn frames(&self) -> Option<Frames<'_>> {
        let length: [u8; 4] = *self.bytes.first_chunk()?;
        let common = (u32::from_ne_bytes(length) as usize).checked_add(4)?;
        let (start, end) = (self.code.start, self.code.end);
        (common < self.bytes.len()).then_some(Frames { start, end, bytes: &self.bytes, common })
    }
}

const MACHINE: u16 = jit_code::elf_machine::NATIVE;
const TARGET: Target = Target { machine: MACHINE, endian: Endian::Little, is_64: true, flags: 0 };

/// The entries of a code; empty if nothing is known about its frames.
pub(crate) fn entries(code: &Code<'_>) -> Vec<Entry> {
    let Some(machine) = Machine::host() else { return Vec::new() };
    match &code.unwind {
        None | Some(Unwind::EhFrame(_)) => ready(code),
        Some(unwind) => {
            let mut bytes = Vec::with_capacity(96);
            let (at, size) = (code.address, code.size);
            let saves = Saves::find(machine, code.bytes.unwrap_or_default(), unwind);
            let unwind = saves.complete(*unwind);
            match unwind_info::absolute(machine, at, size, &unwind, bytes.inner_mut()) {
                Ok(()) => {
                    fallible::vec![Entry {
                        code: code.address..code.address.saturating_add(code.size),
                        bytes
                    }]
                }
                Err(Error::Memory) => {
                    fallible::refuse();
                    Vec::new()
                }
                Err(_) => Vec::new(),
            }
        }
    }
}

/// The entries of a ready section.
fn ready(code: &Code<'_>) -> Vec<Entry> {
    let section = code_image::whole_frames(TARGET, &VisibleCode::whole(*code));
    let word = |at: usize| -> Option<usize> {
        let field = section.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*field) as usize)
    };
    let long = |at: usize| -> Option<u64> {
        let field = section.get(at..)?.first_chunk()?;
        Some(u64::from_le_bytes(*field))
    };
    let entry = |at: usize| -> Option<&[u8]> {
        section.get(at..at.checked_add(word(at)?)?.checked_add(4)?)
    };
    let mut entries = Vec::new();
    let mut at = 0;
    while let Some(one) = entry(at).filter(|one| one.len() >= 8) {
        let begins = at;
        at += one.len();
        let field = begins + 4;
        let (Some(back @ 1..), Some(start), Some(size)) =
            (word(field), long(begins + 8), long(begins + 16))
        else {
            continue;
        };
        let Some(common) = field.checked_sub(back).and_then(entry) else { continue };
        let mut bytes = Vec::from(common);
        bytes.extend_from_slice(one);
        let distance = (common.len() + 4) as u32;
        if let Some(place) = bytes.get_mut(common.len() + 4..).and_then(<[u8]>::first_chunk_mut) {
            *place = distance.to_le_bytes();
        }
        entries.push(Entry { code: start..start.saturating_add(size), bytes });
    }
    entries
}
