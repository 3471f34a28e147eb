//! An ELF file: its code, its symbols, and where its debug info is.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use jitdump::ReadAt;
use jitscribe_inject::files::SourceFile;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use object::elf::{ELFCOMPRESS_ZLIB, PF_X, PT_LOAD, SHF_COMPRESSED, SHT_NOBITS};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, FileKind, Object, ReadCache};

use crate::symbols::{FoundSymbol, Symbols};

/// Debug info in larger sections is not read: that of Chromium has 2 GB.
const LARGEST_SECTION: u64 = 1 << 29;
/// Sections behind this many are not looked at.
const MOST_SECTIONS: usize = 1 << 16;
/// No more bytes of one code are read.
const LARGEST_CODE: u64 = 1 << 24;

/// What is read of an ELF file, and the file itself.
#[derive(Debug)]
pub struct Elf {
    file: SourceFile,
    /// `e_machine`.
    pub machine: u16,
    /// Its byte order.
    pub is_big_endian: bool,
    is_64: bool,
    /// Its build-id.
    pub build_id: Option<Vec<u8>>,
    /// The name of the file with its debug info, from `.gnu_debuglink`.
    pub debug_link: Option<Vec<u8>>,
    segments: Vec<Segment>,
    symbols: Symbols,
    sections: Vec<DebugSection>,
}

/// A segment of code.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    size_in_file: u64,
    size: u64,
    address: u64,
}

/// A section with debug info.
#[derive(Debug)]
struct DebugSection {
    name: Box<[u8]>,
    offset: u64,
    size: u64,
    is_compressed: bool,
}

/// Lets `object` read a file in parts.
struct Parts<'f>(&'f SourceFile);

impl Read for Parts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file: &std::fs::File = self.0;
        file.read(buffer)
    }
}

impl Seek for Parts<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let mut file: &std::fs::File = self.0;
        file.seek(to)
    }
}

impl Elf {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or is no ELF file.
    pub fn read(file: SourceFile) -> io::Result<Self> {
        let cache = ReadCache::new(Parts(&file));
        let kind = FileKind::parse(&cache).map_err(not_elf)?;
        let mut elf = match kind {
            FileKind::Elf32 => Self::of::<object::elf::FileHeader32<Endianness>>(&cache, &file),
            FileKind::Elf64 => Self::of::<object::elf::FileHeader64<Endianness>>(&cache, &file),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "not an ELF file")),
        }?;
        drop(cache);
        elf.file = file;
        Ok(elf)
    }

    fn of<Header: FileHeader<Endian = Endianness>>(
        cache: &ReadCache<Parts<'_>>,
        file: &SourceFile,
    ) -> io::Result<Self> {
        let elf = ElfFile::<Header, _>::parse(cache).map_err(not_elf)?;
        let endian = elf.endian();
        let code = elf.elf_program_headers().iter().filter(|program| {
            program.p_type(endian) == PT_LOAD && program.p_flags(endian).0 & PF_X.0 != 0
        });
        let mut segments: Vec<Segment> = code
            .map(|program| Segment {
                offset: program.p_offset(endian).into(),
                size_in_file: program.p_filesz(endian).into(),
                size: program.p_memsz(endian).into(),
                address: program.p_vaddr(endian).into(),
            })
            .collect();
        segments.sort_by_key(|segment| segment.offset);
        let table = elf.elf_section_table();
        let sections = table.iter().take(MOST_SECTIONS).filter_map(|section| {
            let name = table.section_name(endian, section).ok()?;
            let is_compressed = section.sh_flags(endian).0 & SHF_COMPRESSED.0 != 0;
            let (offset, size) = (section.sh_offset(endian).into(), section.sh_size(endian).into());
            let is_there = section.sh_type(endian) != SHT_NOBITS && size <= LARGEST_SECTION;
            (is_there && name.starts_with(b".debug_")).then(|| DebugSection {
                name: name.into(),
                offset,
                size,
                is_compressed,
            })
        });
        let sections = sections.collect();
        let link = elf.gnu_debuglink().ok().flatten();
        Ok(Self {
            // Set by the caller.
            file: SourceFile::new(file.try_clone()?),
            machine: elf.elf_header().e_machine(endian).0,
            is_big_endian: endian == Endianness::Big,
            is_64: elf.elf_header().is_class_64(),
            build_id: elf.build_id().ok().flatten().map(<[u8]>::to_vec),
            debug_link: link.map(|(name, _)| name.to_vec()),
            segments,
            symbols: Symbols::read(&elf),
            sections,
        })
    }

    /// Whether it has symbols other than those for the dynamic linker.
    pub fn has_symbols(&self) -> bool {
        self.symbols.are_complete()
    }

    /// Whether it has debug info with lines.
    pub fn has_lines(&self) -> bool {
        self.sections.iter().any(|section| &*section.name == b".debug_info" && section.size > 0)
    }

    /// The address of the code at an offset in the file.
    pub fn address(&self, offset: u64) -> Option<u64> {
        let behind = self.segments.partition_point(|segment| segment.offset <= offset);
        let segment = self.segments.get(behind.checked_sub(1)?)?;
        // What is mapped are whole pages. Images without bytes have a text in memory alone.
        let size = segment.size.checked_next_multiple_of(1 << 12)?;
        let into = offset.checked_sub(segment.offset)?;
        (into < size).then(|| segment.address.wrapping_add(into))
    }

    /// The symbol at an address.
    pub fn symbol(&self, address: u64) -> Option<FoundSymbol> {
        self.symbols.at(address, &self.file)
    }

    /// The name of an address outside of the file's functions, to which they refer.
    pub fn label(&self, address: u64) -> Option<Vec<u8>> {
        self.symbols.label(address, &self.file)
    }

    /// Passes the names of all functions to `each`.
    pub fn each_name(&self, mut each: impl FnMut(&[u8])) {
        self.symbols.each_name(&self.file, &mut each);
    }

    /// The bytes of code in a range of addresses; `None` if the file does not have them.
    pub fn bytes(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let size = range.end.checked_sub(range.start).filter(|size| *size <= LARGEST_CODE)?;
        let segment = self.segments.iter().find(|segment| {
            let into = range.start.checked_sub(segment.address);
            let end = into.and_then(|into| into.checked_add(size));
            end.is_some_and(|end| end <= segment.size_in_file)
        })?;
        let into = range.start.checked_sub(segment.address)?;
        self.read_exact(segment.offset.checked_add(into)?, size)
    }

    /// The content of a section with debug info; empty if there is none.
    pub fn debug_section(&self, name: &str) -> Arc<[u8]> {
        let section = self.sections.iter().find(|section| *section.name == *name.as_bytes());
        let content = section.and_then(|section| {
            let content = self.read_exact(section.offset, section.size)?;
            match section.is_compressed {
                true => self.uncompressed(&content),
                false => Some(content),
            }
        });
        content.unwrap_or_default().into()
    }

    /// The content of a section that is compressed by zlib, as distributions compress debug info.
    fn uncompressed(&self, content: &[u8]) -> Option<Vec<u8>> {
        let head = if self.is_64 { 24 } else { 12 };
        let (head, compressed) = content.split_at_checked(head)?;
        let kind = head.first_chunk()?;
        let kind = match self.is_big_endian {
            true => u32::from_be_bytes(*kind),
            false => u32::from_le_bytes(*kind),
        };
        let largest = usize::try_from(LARGEST_SECTION).ok()?;
        let is_zlib = kind == ELFCOMPRESS_ZLIB.0;
        is_zlib.then(|| decompress_to_vec_zlib_with_limit(compressed, largest).ok()).flatten()
    }

    /// Reads bytes, no more than there are.
    fn read_exact(&self, offset: u64, size: u64) -> Option<Vec<u8>> {
        let end = offset.checked_add(size)?;
        if self.file.metadata().ok()?.len() < end {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(size).ok()?];
        let mut done = 0;
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = offset.checked_add(u64::try_from(done).ok()?)?;
            match ReadAt::read_at(&self.file, rest, at) {
                Ok(count @ 1..) => done = done.saturating_add(count),
                _ => return None,
            }
        }
        Some(bytes)
    }
}

fn not_elf(error: object::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    #[inline(never)]
    extern "C" fn named() -> usize {
        std::hint::black_box(1)
    }

    #[test]
    fn this_program_has_names_bytes_and_lines() {
        let file = std::fs::File::open("/proc/self/exe").expect("this program");
        let elf = Elf::read(SourceFile::new(file)).expect("an ELF file");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("its mappings");
        let address = named as *const () as u64;
        let offset = maps.lines().find_map(|line| {
            let mut words = line.split([' ', '-']);
            let mut number = || u64::from_str_radix(words.next()?, 16).ok();
            let (start, end) = (number()?, number()?);
            let offset = u64::from_str_radix(line.split(' ').nth(2)?, 16).ok()?;
            (start..end).contains(&address).then(|| address - start + offset)
        });
        let address = elf.address(offset.expect("its mapping")).expect("its address");
        let symbol = elf.symbol(address).expect("a symbol");
        assert!(crate::demangle::demangled(&symbol.name).ends_with(b"::named"));
        assert_eq!(symbol.range.start, address);
        assert!(elf.bytes(&symbol.range).is_some_and(|bytes| !bytes.is_empty()));
        assert!(elf.has_symbols() && elf.has_lines());
        assert_eq!(elf.address(u64::MAX), None);
        assert_eq!(elf.bytes(&(u64::MAX - 1..u64::MAX)), None);
    }

    proptest! {
        // Each case writes a file.
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn any_bytes_are_read_or_refused(
            at in prop::collection::vec((0usize..4096, any::<u8>()), 0..8),
            kept in 0usize..(1 << 16),
        ) {
            let mut bytes = std::fs::read("/proc/self/exe").expect("this program");
            bytes.truncate(kept.max(64));
            for (at, byte) in at {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&bytes).expect("it is written");
            if let Ok(elf) = Elf::read(SourceFile::new(file)) {
                for offset in (0..kept as u64).step_by(97) {
                    elf.symbol(offset);
                    elf.address(offset);
                    elf.bytes(&(offset..offset + 16));
                }
                elf.debug_section(".debug_info");
            }
        }
    }
}
