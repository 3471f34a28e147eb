//! Lines and inlined calls of a file, by address.

use std::ops::Range;
use std::sync::Arc;

use addr2line::Context;
use gimli::{Dwarf, EndianReader, Reader as _, RunTimeEndian, SectionId};

use crate::elf::Elf;

/// Inlined calls that are nested deeper are left out.
const DEEPEST: usize = 127;

type Reader = EndianReader<RunTimeEndian, Arc<[u8]>>;

/// The debug info of a file.
pub struct Lines {
    context: Context<Reader>,
}

/// A function at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineFrame {
    /// Its name, mangled; empty if it is not known.
    pub symbol: Vec<u8>,
    /// The file; empty if it is not known.
    pub file: Vec<u8>,
    /// From 1; 0 if it is not known.
    pub line: u32,
    /// From 1; 0 if it is not known.
    pub column: u32,
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}

impl Lines {
    /// The debug info in a file; `None` if there is none, or it is damaged.
    pub fn read(elf: &Elf) -> Option<Self> {
        if !elf.has_lines() {
            return None;
        }
        let endian = match elf.is_big_endian {
            true => RunTimeEndian::Big,
            false => RunTimeEndian::Little,
        };
        let section = |id: SectionId| -> Result<Reader, gimli::Error> {
            let content = match id {
                // Of variables, macros and types: not needed.
                SectionId::DebugLoc
                | SectionId::DebugLocLists
                | SectionId::DebugMacinfo
                | SectionId::DebugMacro
                | SectionId::DebugNames
                | SectionId::DebugTypes => Arc::default(),
                _ => elf.debug_section(id.name()),
            };
            Ok(EndianReader::new(content, endian))
        };
        let context = Context::from_dwarf(Dwarf::load(section).ok()?).ok()?;
        Some(Self { context })
    }

    /// The functions at an address, the innermost first; the last one is that of the symbol. Empty if nothing is known.
    pub fn frames(&self, address: u64) -> Vec<LineFrame> {
        let mut all = Vec::new();
        // Split debug info is not read.
        let Ok(mut frames) = self.context.find_frames(address).skip_all_loads() else {
            return all;
        };
        while let Ok(Some(frame)) = frames.next() {
            let location = frame.location;
            let number = |number: Option<u32>| number.unwrap_or(0);
            let symbol = frame.function.map(|function| match function.name.to_slice() {
                Ok(name) => name.into_owned(),
                Err(_) => Vec::new(),
            });
            let file = location.as_ref().and_then(|location| location.file).unwrap_or_default();
            all.push(LineFrame {
                symbol: symbol.unwrap_or_default(),
                file: file.as_bytes().to_vec(),
                line: number(location.as_ref().and_then(|location| location.line)),
                column: number(location.as_ref().and_then(|location| location.column)),
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
    pub fn in_range(&self, range: &Range<u64>) -> Vec<(u64, Vec<LineFrame>)> {
        let mut starts = vec![range.start];
        if let Ok(rows) = self.context.find_location_range(range.start, range.end) {
            for (address, length, _) in rows {
                starts.extend([address, address.saturating_add(length)]);
            }
        }
        starts.retain(|at| range.contains(at));
        starts.sort_unstable();
        starts.dedup();
        let mut all: Vec<(u64, Vec<LineFrame>)> = Vec::new();
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
    fn end_of(&self, frames: &[LineFrame], at: u64, end: u64) -> u64 {
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
