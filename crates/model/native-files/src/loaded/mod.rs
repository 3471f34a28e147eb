//! What is loaded of a program or library, put together as a file: for a file that cannot be opened any more.
//!
//! The segments that are not writable are in memory as they are in the file, at the addresses that the program headers say. Section headers are not loaded. So
//! the file gets new ones for what is found through the program headers: the code, the symbols for the dynamic linker ([`dynamic`]), the unwind tables
//! ([`unwind`]) and the notes. Other symbols and debug info are not loaded.

mod dynamic;
mod sections;
mod unwind;

use std::ops::Range;

use jitdump::ReadAt;
use object::Endianness;
use object::elf::{
    FileHeader64, PF_W, PF_X, PT_DYNAMIC, PT_GNU_EH_FRAME, PT_LOAD, PT_NOTE, ProgramHeader64,
};
use object::read::elf::{FileHeader as _, ProgramHeader as _};

use crate::pods::{Pods, bytes, exact};

/// No program has more program headers.
const MOST_HEADERS: u16 = 64;
/// No larger file is put together, and no more bytes of it are read.
const LARGEST: u64 = 1 << 29;
/// The dynamic section has some dozen entries of 16 bytes.
const LARGEST_DYNAMIC: u64 = 1 << 16;
/// Notes have some dozen bytes.
const LARGEST_NOTES: u64 = 1 << 12;
/// What all files and their program headers begin with: 64 bits, in little-endian order.
const IDENT: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];

/// A mapping of the file in the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedPart {
    /// Its addresses.
    pub range: Range<u64>,
    /// Where it begins in the file.
    pub offset: u64,
}

/// A file as it is loaded: its segments that are not writable.
#[derive(Debug)]
pub struct LoadedFile {
    /// What is in the file, up to the end of the last segment. What is not loaded is 0.
    content: Vec<u8>,
    segments: Vec<Segment>,
    /// How far the addresses in the process are above those of the file.
    bias: u64,
    /// The dynamic section, as the process has it.
    dynamic: Vec<u8>,
    /// Addresses of the file.
    unwind_header: Option<Range<u64>>,
    notes: Option<Segment>,
}

/// A part of the file that is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Segment {
    /// Its addresses in the file's own terms.
    range: Range<u64>,
    offset: u64,
    is_executable: bool,
}

impl LoadedFile {
    /// Reads a file of 64 bits, in little-endian order, from the memory of a process that has mapped it in these parts. Nothing else is read, and at most `limit`
    /// bytes. `None` if it is no such file, not all of it that is not writable is mapped, or it is larger.
    pub fn read(memory: &impl ReadAt, parts: &[LoadedPart], limit: u64) -> Option<Self> {
        let limit = limit.min(LARGEST);
        let memory = Parts { memory, parts };
        let base =
            parts.iter().filter(|part| part.offset == 0).map(|part| part.range.start).min()?;
        let headers = memory.headers(base)?;
        let first = headers.iter().find(|header| {
            header.kind == PT_LOAD.0 && header.offset < 0x1000 && header.size_in_file > 0
        })?;
        let bias = base.wrapping_sub(first.address.wrapping_sub(first.offset));
        let loads = || headers.iter().filter(|header| header.kind == PT_LOAD.0);
        let end = |header: &Header| header.offset.checked_add(header.size_in_file);
        let size = loads().try_fold(0, |size, load| Some(end(load)?.max(size)))?;
        // Segments that overlap would be read again and again.
        let sum = loads().try_fold(0_u64, |sum, load| sum.checked_add(load.size_in_file))?;
        if size > limit || sum > limit {
            return None;
        }
        let mut file = Self {
            content: vec![0; usize::try_from(size).ok()?],
            segments: Vec::new(),
            bias,
            dynamic: Vec::new(),
            unwind_header: None,
            notes: None,
        };
        for load in loads().filter(|load| load.flags & PF_W.0 == 0) {
            let segment = load.segment()?;
            let place = usize::try_from(load.offset).ok()?..usize::try_from(end(load)?).ok()?;
            memory.fill(file.content.get_mut(place)?, bias.wrapping_add(segment.range.start))?;
            file.segments.push(segment);
        }
        for header in &headers {
            match header.kind {
                kind if kind == PT_DYNAMIC.0 && header.size_in_file <= LARGEST_DYNAMIC => {
                    let at = bias.wrapping_add(header.address);
                    file.dynamic = memory.bytes(at, header.size_in_file).unwrap_or_default();
                }
                kind if kind == PT_GNU_EH_FRAME.0 => {
                    file.unwind_header = header.segment().map(|segment| segment.range);
                }
                kind if kind == PT_NOTE.0 => file.add_notes(header),
                _ => {}
            }
        }
        Some(file)
    }

    /// Takes the first notes with a build-id, or else the last ones.
    fn add_notes(&mut self, header: &Header) {
        /// `NT_GNU_BUILD_ID` of `GNU`.
        const ID: [u8; 8] = [3, 0, 0, 0, b'G', b'N', b'U', 0];
        let has_id = |file: &Self, notes: &Segment| {
            let bytes = file.at(notes.range.start, notes.size());
            bytes.is_some_and(|bytes| bytes.windows(ID.len()).any(|it| it == ID))
        };
        let is_usable = |notes: &Segment| {
            notes.size() <= LARGEST_NOTES && self.at(notes.range.start, notes.size()).is_some()
        };
        let Some(notes) = header.segment().filter(is_usable) else { return };
        if self.notes.as_ref().is_none_or(|known| !has_id(self, known)) {
            self.notes = Some(notes);
        }
    }

    /// The bytes at an address of the file, if all of them are loaded and not writable.
    fn at(&self, address: u64, size: u64) -> Option<&[u8]> {
        let end = address.checked_add(size)?;
        let segment = self
            .segments
            .iter()
            .find(|segment| segment.range.start <= address && end <= segment.range.end)?;
        let offset = segment.offset.checked_add(address.checked_sub(segment.range.start)?)?;
        let start = usize::try_from(offset).ok()?;
        self.content.get(start..start.checked_add(usize::try_from(size).ok()?)?)
    }

    /// How many bytes are loaded from this address on.
    fn left(&self, address: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|segment| segment.range.contains(&address))?;
        segment.range.end.checked_sub(address)
    }

    /// A number of 32 bits at an address of the file.
    fn number(&self, address: u64) -> Option<u32> {
        Some(u32::from_le_bytes(*self.at(address, 4)?.first_chunk()?))
    }
}

impl Segment {
    fn size(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }
}

/// A program header.
#[derive(Clone, Debug)]
struct Header {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    size_in_file: u64,
}

impl Header {
    fn segment(&self) -> Option<Segment> {
        let range = self.address..self.address.checked_add(self.size_in_file)?;
        Some(Segment { range, offset: self.offset, is_executable: self.flags & PF_X.0 != 0 })
    }
}

/// The memory of a process, as far as the file is mapped there.
struct Parts<'m, Memory> {
    memory: &'m Memory,
    parts: &'m [LoadedPart],
}

impl<Memory: ReadAt> Parts<'_, Memory> {
    /// The program headers of the file that is mapped from its beginning at `base`.
    fn headers(&self, base: u64) -> Option<Vec<Header>> {
        let size = u64::try_from(size_of::<FileHeader64<Endianness>>()).ok()?;
        let first = self.bytes(base, size)?;
        if !first.starts_with(&IDENT) {
            return None;
        }
        let endian = Endianness::Little;
        let header = Pods::<FileHeader64<Endianness>>::read(&first.as_slice(), 0, 1).ok()?;
        let header = header.as_slice().first()?;
        let count = header.e_phnum(endian);
        let entry = usize::from(header.e_phentsize(endian));
        if count > MOST_HEADERS || entry != size_of::<ProgramHeader64<Endianness>>() {
            return None;
        }
        let size = u64::try_from(entry.checked_mul(count.into())?).ok()?;
        let table = self.bytes(base.checked_add(header.e_phoff(endian))?, size)?;
        let programs =
            Pods::<ProgramHeader64<Endianness>>::read(&table.as_slice(), 0, count.into());
        let programs = programs.ok()?;
        let programs = programs.as_slice().iter().map(|program| Header {
            kind: program.p_type(endian).0,
            flags: program.p_flags(endian).0,
            offset: program.p_offset(endian),
            address: program.p_vaddr(endian),
            size_in_file: program.p_filesz(endian),
        });
        Some(programs.collect())
    }

    fn bytes(&self, at: u64, size: u64) -> Option<Vec<u8>> {
        self.check(at, size)?;
        bytes(self.memory, at, size)
    }

    fn fill(&self, space: &mut [u8], at: u64) -> Option<()> {
        self.check(at, u64::try_from(space.len()).ok()?)?;
        exact(self.memory, space, at).ok()
    }

    /// `None` if the file is not mapped in all of this range.
    fn check(&self, at: u64, size: u64) -> Option<()> {
        let end = at.checked_add(size)?;
        let mut at = at;
        while at < end {
            at = self.parts.iter().find(|part| part.range.contains(&at))?.range.end;
        }
        Some(())
    }
}
