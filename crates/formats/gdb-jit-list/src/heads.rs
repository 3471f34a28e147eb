//! Where a program or library has the head of a list.

use std::ops::Range;

use memchr::memmem::Finder;

use crate::elf::{
    self, Header, ProgramHeader, SEGMENT_EXECUTABLE, SEGMENT_LOAD, SEGMENT_WRITABLE, Section,
    Symbol,
};
use crate::limits;
use crate::read_at::ReadAt;

/// The name of the variable, with the end of the string.
const HEAD: &[u8] = b"__jit_debug_descriptor\0";
/// The name of the function that is called after each change of the list.
const CALLED: &[u8] = b"__jit_debug_register_code\0";
/// Bytes that are read at a time: a multiple of a symbol's size.
const PART: usize = 24 << 12;
/// The most heads and segments of one file.
const MOST: usize = 16;

/// The heads of lists in a file. In libraries of Python's packages, the symbol is local: they have it in `.symtab` alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Heads {
    /// The addresses of the heads, by the file.
    pub addresses: Vec<u64>,
    /// The addresses of the functions that a compiler calls after each change of a list, by the file: debuggers have breakpoints there.
    pub called: Vec<u64>,
    /// Where the file's code is.
    pub segments: Vec<Segment>,
}

/// A segment of a program or library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Segment {
    /// Its offset in the file.
    pub offset: u64,
    /// Its size in the file.
    pub size: u64,
    /// Its address, by the file.
    pub address: u64,
}

impl Heads {
    /// Finds the heads in a file. `None` if there are none, or if it is not a program or library of 64 bits.
    ///
    /// Libraries have up to a million symbols: their names are searched first, which tells most libraries without a list.
    #[must_use]
    pub fn find(file: &(impl ReadAt + ?Sized)) -> Option<Self> {
        let header = Header::read(file)?;
        if !matches!(header.kind, elf::EXECUTABLE | elf::SHARED) {
            return None;
        }
        let sections = header.sections(file)?;
        let (mut addresses, mut called) = (Vec::new(), Vec::new());
        for kind in [elf::SECTION_DYNAMIC_SYMBOLS, elf::SECTION_SYMBOLS] {
            for symbols in sections.iter().filter(|section| section.kind == kind).take(2) {
                let names = usize::try_from(symbols.link).ok().and_then(|at| sections.get(at));
                let Some(names) = names else { continue };
                let at = places_of_name(file, names, HEAD);
                if !at.is_empty() {
                    find_symbols(file, symbols, &at, &mut addresses);
                    let at = places_of_name(file, names, CALLED);
                    find_symbols(file, symbols, &at, &mut called);
                }
            }
        }
        for addresses in [&mut addresses, &mut called] {
            addresses.sort_unstable();
            addresses.dedup();
            addresses.truncate(MOST);
        }
        let segments = header.segments(file)?.into_iter().filter(|segment| {
            segment.kind == SEGMENT_LOAD && segment.flags & SEGMENT_EXECUTABLE != 0
        });
        let segments = segments.take(MOST).map(|segment| Segment::of(&segment));
        let found = Self { addresses, called, segments: segments.collect() };
        (!found.addresses.is_empty() && !found.segments.is_empty()).then_some(found)
    }

    /// The addresses of the heads in a process that has mapped the file's code at `mapped` from this offset on.
    pub fn in_process(&self, mapped: Range<u64>, offset: u64) -> impl Iterator<Item = u64> {
        self.placed(&self.addresses, mapped, offset)
    }

    /// The addresses of [`called`](Self::called) in such a process.
    pub fn called_in_process(&self, mapped: Range<u64>, offset: u64) -> impl Iterator<Item = u64> {
        self.placed(&self.called, mapped, offset)
    }

    fn placed<'a>(
        &'a self,
        addresses: &'a [u64],
        mapped: Range<u64>,
        offset: u64,
    ) -> impl Iterator<Item = u64> + use<'a> {
        // The kernel maps whole pages, which begin before the segment.
        let size = mapped.end.saturating_sub(mapped.start);
        let segment = self.segments.iter().find(|segment| {
            segment.offset < offset.saturating_add(size)
                && offset < segment.offset.saturating_add(segment.size)
        });
        let place = segment.map(|segment| {
            mapped
                .start
                .wrapping_add(segment.offset.wrapping_sub(offset))
                .wrapping_sub(segment.address)
        });
        place.into_iter().flat_map(move |by| addresses.iter().map(move |at| at.wrapping_add(by)))
    }
}

impl Segment {
    /// The segments of a program or library of 64 bits that have constants: those that are only readable, or else those with code.
    #[must_use]
    pub fn constants(file: &(impl ReadAt + ?Sized)) -> Vec<Self> {
        let segments = Header::read(file).and_then(|header| header.segments(file));
        let mut segments = segments.unwrap_or_default();
        segments.retain(|it| it.kind == SEGMENT_LOAD && it.flags & SEGMENT_WRITABLE == 0);
        let is_code = |segment: &ProgramHeader| segment.flags & SEGMENT_EXECUTABLE != 0;
        if segments.iter().any(|segment| !is_code(segment)) {
            segments.retain(|segment| !is_code(segment));
        }
        segments.iter().take(MOST).map(Self::of).collect()
    }

    fn of(segment: &ProgramHeader) -> Self {
        Self { offset: segment.offset, size: segment.file_size, address: segment.address }
    }
}

/// The offsets at which the name is in a table of strings. It may be the end of a longer one.
fn places_of_name(file: &(impl ReadAt + ?Sized), names: &Section, name: &[u8]) -> Vec<u32> {
    let finder = Finder::new(name);
    let mut places = Vec::new();
    let mut bytes: Vec<u8> = Vec::new();
    let size = names.size.min(limits::NAMES);
    let mut at = 0;
    while at < size {
        // What may be the beginning of the name stays.
        let kept = bytes.len().min(name.len().saturating_sub(1));
        bytes.drain(..bytes.len().saturating_sub(kept));
        let part = usize::try_from(size.saturating_sub(at)).unwrap_or(PART).min(PART);
        bytes.resize(kept.saturating_add(part), 0);
        let Some(room) = bytes.get_mut(kept..) else { break };
        let count = file.read_at(names.offset.saturating_add(at), room);
        bytes.truncate(kept.saturating_add(count));
        for place in finder.find_iter(&bytes) {
            let place = at.saturating_sub(number(kept)).saturating_add(number(place));
            if let Ok(place) = u32::try_from(place)
                && places.len() < MOST
            {
                places.push(place);
            }
        }
        if count < part {
            break;
        }
        at = at.saturating_add(number(part));
    }
    places
}

/// Adds the addresses of the symbols with these names.
fn find_symbols(
    file: &(impl ReadAt + ?Sized),
    symbols: &Section,
    names: &[u32],
    addresses: &mut Vec<u64>,
) {
    let size = symbols.size.min(limits::SYMBOLS);
    let mut at = 0;
    let mut bytes = vec![0; PART];
    while at < size && addresses.len() < 2 * MOST {
        let part = usize::try_from(size.saturating_sub(at)).unwrap_or(PART).min(PART);
        let Some(room) = bytes.get_mut(..part) else { break };
        let count = file.read_at(symbols.offset.saturating_add(at), room);
        for symbol in room.get(..count).unwrap_or_default().as_chunks().0 {
            let symbol = Symbol::parse(symbol);
            if symbol.section != 0 && names.contains(&symbol.name) {
                addresses.push(symbol.value);
            }
        }
        if count < part {
            break;
        }
        at = at.saturating_add(number(part));
    }
}

fn number(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}
