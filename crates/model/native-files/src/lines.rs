//! Source lines and inlined calls of a file, by address, from its DWARF.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, Reader as _, RunTimeEndian, SectionId};
use jitdump::ReadAt;
use object::Endianness;

use crate::compressed::debug_section;
use crate::elf::Elf;

/// No more bytes of debug info are read of a file. That of Chromium has 2 GB.
const LARGEST: u64 = 1 << 30;
/// Inlined calls that are nested deeper are left out.
const DEEPEST: usize = 127;

type Reader = EndianArcSlice<RunTimeEndian>;

/// The debug info of a file.
pub struct Lines {
    context: Context<Reader>,
}

/// A function at an address, and a position in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFrame {
    /// The function's name, mangled; empty if it is not known.
    pub function: Vec<u8>,
    /// The path of the file; empty if it is not known.
    pub file: Vec<u8>,
    /// From 1; 0 if it is not known.
    pub line: u32,
    /// From 1; 0 if it is not known.
    pub column: u32,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}

impl Lines {
    /// The debug info in a file, and in the one that it shares with others ([`crate::DebugFiles::shared`]). `None` if there is none, or it is damaged.
    pub fn read<File: ReadAt>(elf: &Elf<File>, shared: Option<&Elf<File>>) -> Option<Self> {
        // Addresses in the debug info of a file that was not linked are yet to be relocated.
        if !elf.has_lines() || elf.is_unplaced() {
            return None;
        }
        let mut dwarf = Dwarf::load(sections(elf)).ok()?;
        if let Some(shared) = shared.filter(|shared| shared.endian() == elf.endian()) {
            dwarf.load_sup(sections(shared)).ok()?;
        }
        Some(Self { context: Context::from_dwarf(dwarf).ok()? })
    }

    /// The functions at an address, the innermost first: the last one is that of the symbol, and the others were inlined into it. Empty if nothing is
    /// known.
    pub fn frames(&self, address: u64) -> Vec<SourceFrame> {
        let mut all = Vec::new();
        // addr2line computes the address behind it.
        if address == u64::MAX {
            return all;
        }
        // Split debug info is not read.
        let Ok(mut frames) = self.context.find_frames(address).skip_all_loads() else {
            return all;
        };
        while let Ok(Some(frame)) = frames.next() {
            let function = frame.function.and_then(|function| {
                function.name.to_slice().ok().map(std::borrow::Cow::into_owned)
            });
            let location = frame.location.as_ref();
            let number = |number: Option<u32>| number.unwrap_or(0);
            let file = location.and_then(|location| location.file).unwrap_or_default();
            all.push(SourceFrame {
                function: function.unwrap_or_default(),
                file: file.as_bytes().to_vec(),
                line: number(location.and_then(|location| location.line)),
                column: number(location.and_then(|location| location.column)),
            });
        }
        if all.len() > DEEPEST
            && let Some(outermost) = all.pop()
        {
            all.truncate(DEEPEST);
            all.push(outermost);
        }
        all
    }

    /// The addresses in a range at which lines or inlined calls change, with the functions from there on.
    pub fn in_range(&self, range: &Range<u64>) -> Vec<(u64, Vec<SourceFrame>)> {
        let mut starts = vec![range.start];
        if let Ok(rows) = self.context.find_location_range(range.start, range.end) {
            for (address, length, _) in rows {
                starts.extend([address, address.saturating_add(length)]);
            }
        }
        starts.retain(|at| range.contains(at));
        starts.sort_unstable();
        starts.dedup();
        let mut all: Vec<(u64, Vec<SourceFrame>)> = Vec::new();
        let ends = starts.iter().skip(1).copied().chain([range.end]);
        for (&start, end) in starts.iter().zip(ends) {
            // Inlined calls may begin and end within a line.
            let mut at = start;
            while at < end {
                let frames = self.frames(at);
                let next = self.end_of(&frames, at, end);
                if all.last().is_none_or(|(_, last)| *last != frames) {
                    all.push((at, frames));
                }
                at = next;
            }
        }
        all
    }

    /// The first address behind `at` with other functions, not behind `end`, if they change once.
    fn end_of(&self, frames: &[SourceFrame], at: u64, end: u64) -> u64 {
        let (mut same, mut other) = (at, end);
        if self.frames(end.saturating_sub(1)) == frames {
            return end;
        }
        while other.saturating_sub(same) > 1 {
            let middle = same.midpoint(other);
            match self.frames(middle) == frames {
                true => same = middle,
                false => other = middle,
            }
        }
        other
    }
}

/// Reads the sections of a file, as far as the file has them, and they are not too large together.
fn sections<File: ReadAt>(
    elf: &Elf<File>,
) -> impl FnMut(SectionId) -> Result<Reader, gimli::Error> {
    let endian = match elf.endian() {
        Endianness::Big => RunTimeEndian::Big,
        Endianness::Little => RunTimeEndian::Little,
    };
    let mut left = LARGEST;
    move |id| {
        let content = match id {
            // Of variables, macros and types: not needed.
            SectionId::DebugLoc
            | SectionId::DebugLocLists
            | SectionId::DebugMacinfo
            | SectionId::DebugMacro
            | SectionId::DebugNames
            | SectionId::DebugTypes => None,
            _ => debug_section(elf, id.name(), left),
        };
        let content: Arc<[u8]> = content.unwrap_or_default().into();
        left = left.saturating_sub(u64::try_from(content.len()).unwrap_or(u64::MAX));
        Ok(Reader::new(content, endian))
    }
}
