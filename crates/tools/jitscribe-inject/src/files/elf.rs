//! The parts of an ELF file: segments of code, build-id, sections, and the symbols in a section.

use std::io;
use std::ops::Range;

use jitdump::ReadAt;
use object::Endianness;
use object::elf::{ELFMAG, NT_GNU_BUILD_ID, PF_X, PT_LOAD, PT_NOTE};
use object::endian::Endian as _;
use object::pod::{self, Pod};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

/// Symbols behind this many are not read. Large programs have a million.
pub const MOST_SYMBOLS: u64 = 1 << 22;
/// Number of symbols that are read at a time.
const AT_A_TIME: u64 = 1 << 15;
/// Segments of notes behind this many are not read; programs have one to three.
const MOST_NOTES: usize = 16;
/// Of a segment of notes, no more bytes are read; it has about a hundred.
const LARGEST_NOTES: u64 = 1 << 16;

/// What the headers of an ELF file describe.
pub struct Parts<Elf: FileHeader> {
    pub endian: Endianness,
    pub code: CodeSegments,
    pub build_id: Option<Vec<u8>>,
    sections: Pods<Elf::SectionHeader>,
    /// The index of the section with the names of sections.
    pub section_names: usize,
}

/// The segments of code of a file.
#[derive(Debug, Default)]
pub struct CodeSegments {
    /// By offset in the file.
    segments: Vec<Segment>,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

impl<Elf: FileHeader<Endian = Endianness>> Parts<Elf> {
    /// Reads the headers of a file.
    ///
    /// # Errors
    /// If they cannot be read, or it is no ELF file of this class.
    pub fn read(file: &impl ReadAt) -> io::Result<Self> {
        let header = Pods::<Elf>::read(file, 0, 1)?;
        let [header, ..] = header.as_slice() else { return Err(invalid()) };
        let of_class = header.is_class_64() == header.is_type_64();
        if header.e_ident().magic != ELFMAG || !of_class {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "not an ELF file of this class",
            ));
        }
        let endian = header.endian().map_err(|_| invalid())?;
        let count = header.e_phnum(endian).into();
        let programs =
            Pods::<Elf::ProgramHeader>::read(file, header.e_phoff(endian).into(), count)?;
        let programs = programs.as_slice();
        let code = programs.iter().filter(|program| {
            program.p_type(endian) == PT_LOAD && program.p_flags(endian).0 & PF_X.0 != 0
        });
        let code = code.map(|program| Segment {
            offset: program.p_offset(endian).into(),
            size: program.p_filesz(endian).into(),
            address: program.p_vaddr(endian).into(),
        });
        let notes = programs.iter().filter(|program| program.p_type(endian) == PT_NOTE);
        let build_id = notes.take(MOST_NOTES).find_map(|program| {
            build_id(file, endian, program.p_offset(endian).into(), program.p_filesz(endian).into())
        });
        let count = header.e_shnum(endian).into();
        let sections = Pods::read(file, header.e_shoff(endian).into(), count)?;
        let section_names = header.e_shstrndx(endian).0.into();
        Ok(Self { endian, code: CodeSegments::new(code), build_id, sections, section_names })
    }

    pub fn sections(&self) -> &[Elf::SectionHeader] {
        self.sections.as_slice()
    }

    /// The section that this one refers to; for a table of symbols, that with their names.
    pub fn linked(&self, section: &Elf::SectionHeader) -> Option<&Elf::SectionHeader> {
        self.sections().get(section.sh_link(self.endian) as usize)
    }

    /// Passes the symbols in a section to `each`, at most `left`, which is counted down.
    ///
    /// # Errors
    /// If not all of them can be read. Those before the first that cannot were passed on.
    pub fn each_symbol(
        &self,
        file: &impl ReadAt,
        table: &Elf::SectionHeader,
        left: &mut u64,
        mut each: impl FnMut(&Elf::Sym),
    ) -> io::Result<()> {
        let (offset, size): (u64, u64) =
            (table.sh_offset(self.endian).into(), table.sh_size(self.endian).into());
        let entry = size_of::<Elf::Sym>() as u64;
        let count = (size / entry).min(*left);
        *left -= count;
        let mut at = 0;
        while at < count {
            let some = AT_A_TIME.min(count - at);
            let offset = offset.checked_add(at * entry).ok_or_else(invalid)?;
            Pods::read(file, offset, some)?.as_slice().iter().for_each(&mut each);
            at += some;
        }
        Ok(())
    }
}

impl CodeSegments {
    fn new(segments: impl Iterator<Item = Segment>) -> Self {
        let mut segments: Vec<Segment> = segments.collect();
        segments.sort_by_key(|segment| segment.offset);
        Self { segments }
    }

    /// The last segment that begins at this offset in the file or before.
    fn before(&self, offset: u64) -> Option<&Segment> {
        let behind = self.segments.partition_point(|segment| segment.offset <= offset);
        self.segments.get(behind.checked_sub(1)?)
    }

    /// The address of the code at this offset in the file.
    pub fn address(&self, offset: u64) -> Option<u64> {
        let segment = self.before(offset)?;
        let into = offset.checked_sub(segment.offset).filter(|into| *into < segment.size)?;
        segment.address.checked_add(into)
    }

    /// How far addresses of the file are above its offsets, at this offset.
    pub fn above_offset(&self, offset: u64) -> Option<u64> {
        let segment = self.before(offset)?;
        // What is mapped are whole pages.
        let end = segment.offset.checked_add(segment.size)?.checked_next_multiple_of(1 << 12)?;
        (offset < end).then(|| segment.address.wrapping_sub(segment.offset))
    }

    /// The part of a mapping that a segment of code fills; the whole mapping if there is no code. Mappings begin and end at pages, also where
    /// segments do not, and samply rejects a part of a mapping that reaches beyond the segment.
    ///
    /// `offset` is where `range` begins in the file.
    pub fn filled(&self, range: &Range<u64>, offset: u64) -> Range<u64> {
        let end = offset.saturating_add(range.end - range.start);
        let parts = self.segments.iter().map(|segment| {
            let behind = segment.offset.saturating_add(segment.size);
            segment.offset.max(offset)..behind.min(end)
        });
        let parts = parts.filter(|part| !part.is_empty());
        match parts.max_by_key(|part| part.end - part.start) {
            Some(part) => range.start + (part.start - offset)..range.start + (part.end - offset),
            None => range.clone(),
        }
    }
}

/// The build-id among the notes of a segment.
fn build_id(file: &impl ReadAt, endian: Endianness, offset: u64, size: u64) -> Option<Vec<u8>> {
    let mut notes = vec![0; usize::try_from(size.min(LARGEST_NOTES)).ok()?];
    exact(file, &mut notes, offset).ok()?;
    let mut rest = notes.as_slice();
    while let Some((head, behind)) = rest.split_at_checked(12) {
        let number = |at: usize| {
            let bytes = head.get(at..at + 4)?.try_into().ok()?;
            Some(endian.read_u32(bytes))
        };
        let [name, content] = [0, 4].map(|at| number(at).map(|size| size as usize));
        let (name, behind) = behind.split_at_checked(name?.checked_next_multiple_of(4)?)?;
        let (content, padded) = (content?, content?.checked_next_multiple_of(4)?);
        let all = behind.get(..content)?;
        if number(8)? == NT_GNU_BUILD_ID.0 && name == b"GNU\0" {
            return Some(all.to_vec());
        }
        rest = behind.get(padded..)?;
    }
    None
}

/// Structures of a file, aligned in memory.
struct Pods<T> {
    words: Vec<u64>,
    count: usize,
    of: std::marker::PhantomData<T>,
}

impl<T: Pod> Pods<T> {
    /// Reads `count` of them, at most 65,536 program or section headers or [`AT_A_TIME`] symbols.
    fn read(file: &impl ReadAt, offset: u64, count: u64) -> io::Result<Self> {
        let count = usize::try_from(count).map_err(|_| invalid())?;
        let bytes = count.checked_mul(size_of::<T>()).ok_or_else(invalid)?;
        let mut words = vec![0_u64; bytes.div_ceil(8)];
        let space = pod::bytes_of_slice_mut(&mut words).get_mut(..bytes).ok_or_else(invalid)?;
        exact(file, space, offset)?;
        Ok(Self { words, count, of: std::marker::PhantomData })
    }

    fn as_slice(&self) -> &[T] {
        let bytes = pod::bytes_of_slice(&self.words);
        pod::slice_from_bytes(bytes, self.count).map_or(&[], |(all, _)| all)
    }
}

/// Fills `buffer`.
///
/// # Errors
/// If the file does not have so many bytes at this offset.
pub fn exact(file: &impl ReadAt, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let at = offset.checked_add(done as u64).ok_or_else(invalid)?;
        match file.read_at(rest, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => done += count,
        }
    }
    Ok(())
}

fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// For tests: the C library of this machine.
#[cfg(test)]
pub fn c_library() -> Vec<u8> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the mappings of this process");
    let path = maps.lines().find_map(|line| {
        let at = line.find('/')?;
        line.get(at..).filter(|path| path.contains("/libc.so.6"))
    });
    std::fs::read(path.expect("the C library")).expect("its content")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_mappings_end_with_the_segment() {
        let segment = |range: Range<u64>| Segment {
            offset: range.start,
            size: range.end - range.start,
            address: 0,
        };
        let code = CodeSegments::new([0x1180..0x3456, 0x100..0x1100].into_iter().map(segment));
        // As mapped: two segments share a page.
        assert_eq!(code.filled(&(0x50_0000..0x50_3000), 0x1000), 0x50_0180..0x50_2456);
        assert_eq!(code.filled(&(0x50_0200..0x50_0300), 0x1200), 0x50_0200..0x50_0300);
        assert_eq!(code.filled(&(0x50_0000..0x50_1000), 0), 0x50_0100..0x50_1000);
        // Without code.
        assert_eq!(code.filled(&(0x50_0000..0x50_1000), 0x4000), 0x50_0000..0x50_1000);
        let end = u64::MAX - 9..u64::MAX;
        assert_eq!(code.filled(&end, u64::MAX - 3), end);
    }
}
