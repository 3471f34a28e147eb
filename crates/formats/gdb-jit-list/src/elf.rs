//! The structures of ELF files of 64 bits.

use crate::fields::{u16_at, u32_at, u64_at};
use crate::read_at::ReadAt;

pub const SEGMENT_LOAD: u32 = 1;
pub const SEGMENT_EXECUTABLE: u32 = 1;
pub const SEGMENT_WRITABLE: u32 = 2;
pub const SECTION_SYMBOLS: u32 = 2;
pub const SECTION_RELOCATIONS: u32 = 4;
pub const SECTION_NO_BITS: u32 = 8;
pub const SECTION_DYNAMIC_SYMBOLS: u32 = 11;
pub const SYMBOL_FUNCTION: u8 = 2;

/// The kinds of files.
pub const RELOCATABLE: u16 = 1;
pub const EXECUTABLE: u16 = 2;
pub const SHARED: u16 = 3;

/// The most entries of a table of headers.
const HEADERS: u16 = 1 << 14;

#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub kind: u16,
    pub machine: u16,
    segments: Table,
    sections: Table,
    pub names: u16,
}

#[derive(Clone, Copy, Debug)]
struct Table {
    offset: u64,
    entry: u16,
    count: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Section {
    pub name: u32,
    pub kind: u32,
    pub address: u64,
    pub offset: u64,
    pub size: u64,
    pub link: u32,
    pub info: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct ProgramHeader {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub address: u64,
    pub file_size: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    pub name: u32,
    pub kind: u8,
    pub is_local: bool,
    pub section: u16,
    pub value: u64,
    pub size: u64,
}

impl Header {
    pub const SIZE: usize = 64;

    /// The header of a file of 64 bits in little-endian order.
    pub fn read(file: &(impl ReadAt + ?Sized)) -> Option<Self> {
        let bytes: [u8; Self::SIZE] = file.array(0)?;
        if !bytes.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let table = |offset, entry, count| Table {
            offset: u64_at(&bytes, offset),
            entry: u16_at(&bytes, entry),
            count: u16_at(&bytes, count),
        };
        Some(Self {
            kind: u16_at(&bytes, 16),
            machine: u16_at(&bytes, 18),
            segments: table(32, 54, 56),
            sections: table(40, 58, 60),
            names: u16_at(&bytes, 62),
        })
    }

    pub fn segments(&self, file: &(impl ReadAt + ?Sized)) -> Option<Vec<ProgramHeader>> {
        let parse = |bytes: &[u8; ProgramHeader::SIZE]| ProgramHeader {
            kind: u32_at(bytes, 0),
            flags: u32_at(bytes, 4),
            offset: u64_at(bytes, 8),
            address: u64_at(bytes, 16),
            file_size: u64_at(bytes, 32),
        };
        self.segments.read(file, parse)
    }

    pub fn sections(&self, file: &(impl ReadAt + ?Sized)) -> Option<Vec<Section>> {
        let parse = |bytes: &[u8; Section::SIZE]| Section {
            name: u32_at(bytes, 0),
            kind: u32_at(bytes, 4),
            address: u64_at(bytes, 16),
            offset: u64_at(bytes, 24),
            size: u64_at(bytes, 32),
            link: u32_at(bytes, 40),
            info: u32_at(bytes, 44),
        };
        self.sections.read(file, parse)
    }
}

impl Table {
    fn read<T, const N: usize>(
        self,
        file: &(impl ReadAt + ?Sized),
        parse: impl Fn(&[u8; N]) -> T,
    ) -> Option<Vec<T>> {
        if self.count == 0 {
            return Some(Vec::new());
        }
        if usize::from(self.entry) != N || self.count > HEADERS {
            return None;
        }
        let bytes =
            file.bytes(self.offset, u64::from(self.entry).saturating_mul(self.count.into()))?;
        Some(bytes.as_chunks().0.iter().map(parse).collect())
    }
}

impl ProgramHeader {
    const SIZE: usize = 56;
}

impl Section {
    const SIZE: usize = 64;

    /// Its bytes in an object.
    pub fn bytes<'o>(&self, object: &'o [u8]) -> Option<&'o [u8]> {
        if self.kind == SECTION_NO_BITS {
            return None;
        }
        let rest = object.get(usize::try_from(self.offset).ok()?..)?;
        rest.get(..usize::try_from(self.size).ok()?)
    }
}

impl Symbol {
    pub const SIZE: usize = 24;

    pub fn parse(bytes: &[u8; Self::SIZE]) -> Self {
        let info = bytes.get(4).copied().unwrap_or_default();
        Self {
            name: u32_at(bytes, 0),
            kind: info & 15,
            is_local: info >> 4 == 0,
            section: u16_at(bytes, 6),
            value: u64_at(bytes, 8),
            size: u64_at(bytes, 16),
        }
    }
}

/// The text that begins at `at` in a table of strings.
pub fn string(table: &[u8], at: u32) -> Option<&[u8]> {
    let rest = table.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    rest.get(..end)
}
