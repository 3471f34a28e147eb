//! The parts of one code for a file that grows: its sections are concatenations of them.

use std::ops::Range;

use fallible::Vec;

use crate::cfi;
use crate::code::VisibleCode;
use crate::dwarf::{self, DEAD_UNIT, FILLER, FILLER_BYTE, Single, UNIT_LINES_AT, UNIT_ROOT_AT};
use crate::encode::Encoder;
use crate::printable::push_printable;
use crate::target::{Endian, Target};

/// The debug info of one code, to be appended to sections with other such entries: a compilation unit, its line
/// table, and its range lists.
///
/// [`Self::place`] sets the parts that depend on its position.
#[derive(Debug, Clone)]
pub struct DebugEntry {
    target: Target,
    /// For `.debug_info`; empty if there is no debug info.
    pub info: Vec<u8>,
    /// For `.debug_line`.
    pub line: Vec<u8>,
    /// For `.debug_ranges`; often empty.
    pub ranges: Vec<u8>,
    /// Offsets in `info` of the references to range lists.
    lists: Vec<u32>,
}

/// Size of a kind of entry, and a length.
const FILLER_FIELDS: usize = 5;

impl DebugEntry {
    /// Encodes the debug info of the visible part of `code`. `place` maps addresses in the process to those of the
    /// file.
    #[must_use]
    pub fn new(target: Target, code: &VisibleCode<'_>, place: impl Fn(u64) -> u64 + Copy) -> Self {
        let mut name = Vec::with_capacity(code.code.name.len());
        push_name(code.code.name, &mut name);
        let rows = dwarf::rows(code, place);
        let calls = dwarf::calls(code, place);
        let (start, end) = (place(code.visible.start), place(code.visible.end));
        let single = Single::new(target, &name, start, end, &rows, &calls);
        let (info, line) = (single.info.bytes, single.line.bytes);
        Self { target, info, line, ranges: single.ranges.bytes, lists: single.lists }
    }

    /// Pads the unit and the line table without effect, to sizes that are not smaller than their current ones.
    pub fn pad(&mut self, info: usize, line: usize) {
        /// In a line table: size of the fields up to and including the length of its header.
        const BEFORE_HEADER: usize = 10;
        /// An instruction of line programs that has no effect on readers.
        const SET_BASIC_BLOCK: u8 = 7;
        let more = info.saturating_sub(self.info.len());
        if more > 0 && self.info.pop().is_some() {
            match more.checked_sub(FILLER_FIELDS) {
                None => self.info.extend(std::iter::repeat_n(FILLER_BYTE, more)),
                Some(bytes) => {
                    self.info.extend(filler(FILLER, bytes));
                    self.info.extend(std::iter::repeat_n(0, bytes));
                }
            }
            // Ends the children of the unit's root.
            self.info.push(0);
            let length = (info as u32).saturating_sub(4);
            set_u32(self.target, &mut self.info, 0, length);
        }
        let more = line.saturating_sub(self.line.len());
        if more > 0 && !self.line.is_empty() {
            let header = get_u32(self.target, &self.line, BEFORE_HEADER - 4);
            let program = BEFORE_HEADER.saturating_add(header as usize).min(self.line.len());
            // Not directly behind the header: readers would find the program by the header's length, but binutils
            // computes the position itself.
            self.line.insert_repeated(program, SET_BASIC_BLOCK, more);
            set_u32(self.target, &mut self.line, 0, (line as u32).saturating_sub(4));
        }
    }

    /// Sets the positions of the line table and the range lists in their sections. Call this once.
    pub fn place(&mut self, line_at: u32, ranges_at: u32) {
        if !self.info.is_empty() {
            set_u32(self.target, &mut self.info, UNIT_LINES_AT, line_at);
        }
        for &list in &self.lists {
            let old = get_u32(self.target, &self.info, list as usize);
            let new = old.saturating_add(ranges_at);
            set_u32(self.target, &mut self.info, list as usize, new);
        }
    }

    /// The bytes that turn a unit of `size` bytes into an empty one, and their offset in it.
    #[must_use]
    pub fn nothing(size: usize) -> (usize, [u8; 5]) {
        let bytes = size.saturating_sub(UNIT_ROOT_AT).saturating_sub(FILLER_FIELDS);
        (UNIT_ROOT_AT, filler(DEAD_UNIT, bytes))
    }

    /// An empty unit, for a section that must not be empty.
    #[must_use]
    pub fn empty_unit() -> [u8; 16] {
        // Length, version 4, abbreviations, size of an address: as `Single` writes them.
        let [kind, size @ ..] = filler(DEAD_UNIT, 0);
        let [a, b, c, d] = size;
        [12, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, kind, a, b, c, d]
    }

    /// The `.debug_abbrev` of all units.
    #[must_use]
    pub fn abbreviations(target: Target) -> Vec<u8> {
        let mut out = Encoder::new(target);
        dwarf::entry_abbreviations(&mut out);
        out.bytes
    }
}

/// The header of an entry with this many meaningless bytes: its kind, and their number as LEB128 of a fixed size.
fn filler(kind: u8, bytes: usize) -> [u8; FILLER_FIELDS] {
    let part = |shift: u32| (bytes >> shift) as u8;
    [kind, part(0) | 0x80, part(7) | 0x80, part(14) | 0x80, part(21) & 0x7f]
}

/// Appends a name in the form for symbols: control characters as `\xNN`, and `<unnamed>` for an empty name.
pub fn push_name(name: &[u8], out: &mut Vec<u8>) {
    push_printable(if name.is_empty() { b"<unnamed>" } else { name }, out);
}

/// A name in the form for symbols: see [`push_name`].
#[must_use]
pub fn symbol_name(name: &[u8]) -> Vec<u8> {
    let mut symbol = Vec::new();
    push_name(name, &mut symbol);
    symbol
}

/// Appends the part of a code's ready `.eh_frame` that describes its visible part, as entries for the address `at`:
/// CIEs and FDEs, without a terminator, with addresses relative to their position. Appends nothing if none of it can
/// be used.
pub fn ready_frames(target: Target, code: &VisibleCode<'_>, at: u64, out: &mut Vec<u8>) {
    if let Some(ready) = code.eh_frame() {
        cfi::relative(target, code, ready, at, out);
    }
}

/// The part of a code's ready `.eh_frame` that describes its visible part, as entries with absolute addresses, which
/// are valid at any position: CIEs, then FDEs, each padded to a multiple of the address size, without a terminator.
#[must_use]
pub fn whole_frames(target: Target, code: &VisibleCode<'_>) -> Vec<u8> {
    code.eh_frame().map_or_else(Vec::new, |ready| cfi::absolute(target, code, ready).bytes)
}

/// An FDE in entries of an `.eh_frame` whose addresses are relative with 32 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameEntry {
    /// Its offset in the entries.
    pub at: usize,
    /// The addresses that it describes.
    pub code: Range<u64>,
}

/// The FDEs in entries at the address `at`, in the form that [`ready_frames`] writes.
#[must_use]
pub fn frame_entries(target: Target, entries: &[u8], at: u64) -> Vec<FrameEntry> {
    let mut found = Vec::new();
    let mut offset = 0_usize;
    while entries.len().saturating_sub(offset) >= 16 {
        let size = get_u32(target, entries, offset) as usize;
        if size == 0 || get_u32(target, entries, offset.saturating_add(4)) == 0 {
            offset = offset.saturating_add(size).saturating_add(4);
            continue;
        }
        let field = offset.saturating_add(8);
        let distance = get_u32(target, entries, field).cast_signed();
        let begin = at.wrapping_add(field as u64).wrapping_add_signed(distance.into());
        let length = get_u32(target, entries, field.saturating_add(4));
        let code = begin..begin.saturating_add(length.into());
        found.push(FrameEntry { at: offset, code });
        offset = offset.saturating_add(size).saturating_add(4);
    }
    found
}

fn get_u32(target: Target, bytes: &[u8], at: usize) -> u32 {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
    match target.endian {
        Endian::Little => u32::from_le_bytes(field),
        Endian::Big => u32::from_be_bytes(field),
    }
}

fn set_u32(target: Target, bytes: &mut [u8], at: usize, value: u32) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = match target.endian {
            Endian::Little => value.to_le_bytes(),
            Endian::Big => value.to_be_bytes(),
        };
    }
}

#[cfg(test)]
mod tests {
    use jit_code::{Code, Line, Unwind};

    use super::{DebugEntry, frame_entries, ready_frames};
    use crate::{Endian, Target, VisibleCode};

    const TARGET: Target = Target { machine: 62, endian: Endian::Little, is_64: true, flags: 0 };

    /// Sections of several units with padding in both, as gimli reads them.
    #[test]
    fn units_with_slack_are_read_one_after_another() {
        let (mut info, mut line) = (Vec::new(), Vec::new());
        for (number, slack) in [(0_u64, 0), (1, 40), (2, 3), (3, 5), (4, 0)] {
            let start = 0x1000 + 0x100 * number;
            let lines = [Line::new(4, "/a/b.x", 7 + number as u32).column(1)];
            let code = VisibleCode::whole(Code::at(start, 32).named("f").lines(&lines));
            let mut entry = DebugEntry::new(TARGET, &code, |address| address);
            entry.pad(entry.info.len() + slack, entry.line.len() + slack);
            entry.place(line.len() as u32, 0);
            line.extend(entry.line);
            if number == 3 {
                let (at, nothing) = DebugEntry::nothing(entry.info.len());
                entry.info[at..at + nothing.len()].copy_from_slice(&nothing);
            }
            info.extend(entry.info);
        }
        let abbreviations = DebugEntry::abbreviations(TARGET);
        let dwarf = gimli::Dwarf::load(|section| -> Result<_, gimli::Error> {
            Ok(gimli::EndianSlice::new(
                match section {
                    gimli::SectionId::DebugInfo => info.as_slice(),
                    gimli::SectionId::DebugLine => &line,
                    gimli::SectionId::DebugAbbrev => &abbreviations,
                    _ => &[],
                },
                gimli::LittleEndian,
            ))
        });
        let context = addr2line::Context::from_dwarf(dwarf.unwrap()).unwrap();
        for (address, expected) in [
            (0x1004, Some(7)),
            (0x1104, Some(8)),
            (0x111f, Some(8)),
            (0x1000, None),
            (0x1204, Some(9)),
            (0x1304, None),
            (0x1404, Some(11)),
        ] {
            let found = context.find_location(address).unwrap().and_then(|place| place.line);
            assert_eq!(found, expected, "{address:#x}");
        }
    }

    #[test]
    fn ready_frames_say_the_same_elsewhere() {
        let mut section = Vec::new();
        let rows = unwind_rows();
        section.extend_from_slice(&rows);
        let code = Code::at(0x7000_0000, 16).unwind(Unwind::EhFrame(&section));
        let code = VisibleCode::whole(code);
        let mut out = fallible::Vec::new();
        ready_frames(TARGET, &code, 0x7100_0000, &mut out);
        let entries = frame_entries(TARGET, &out, 0x7100_0000);
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].code, 0x7000_0000..0x7000_0010);
    }

    /// A CIE and an FDE for 16 bytes of code that end 16 bytes before the section's start.
    fn unwind_rows() -> Vec<u8> {
        let mut out = vec![
            20, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 12, 7, 8, 0x90, 1, 0,
            0,
        ];
        out.extend([16, 0, 0, 0, 28, 0, 0, 0]);
        let field = out.len() as i32;
        out.extend((-16 - field).to_le_bytes());
        out.extend(16_u32.to_le_bytes());
        out.extend([0, 0, 0, 0]);
        out
    }
}
