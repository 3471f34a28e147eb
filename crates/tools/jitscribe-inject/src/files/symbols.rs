//! Which addresses of a program or library have symbols in the file itself.
//!
//! Separate files with debug symbols are not looked for.

use std::io;
use std::ops::Range;

use jitdump::ReadAt;
use object::Endianness;
use object::elf::{
    FileHeader32, FileHeader64, NT_GNU_BUILD_ID, PF_X, PT_LOAD, PT_NOTE, SHN_UNDEF, SHT_DYNSYM,
    SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC,
};
use object::endian::Endian as _;
use object::pod::{self, Pod};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};

use super::open::SourceFile;

/// Symbols behind this many are not read. Large programs have a million.
pub(super) const MOST_SYMBOLS: u64 = 1 << 22;
/// Number of symbols that are read at a time.
pub(super) const AT_A_TIME: u64 = 1 << 15;
/// Segments of notes behind this many are not read; programs have one to three.
pub(super) const MOST_NOTES: usize = 16;
/// Of a segment of notes, no more bytes are read; it has about a hundred.
const LARGEST_NOTES: u64 = 1 << 16;
/// Of a name, no more bytes are read.
const LONGEST_NAME: usize = 1 << 9;

/// The addresses of an ELF file for which it has the name of a function.
#[derive(Debug)]
pub struct FileSymbols {
    /// The addresses, ascending and disjoint.
    named: Vec<Range<u64>>,
    layout: Layout,
}

/// The functions of an ELF file, with their names. Names are read from the file when they are asked for.
#[derive(Debug)]
pub struct FileFunctions {
    file: SourceFile,
    /// By address.
    functions: Vec<Function>,
    layout: Layout,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    start: u64,
    end: u64,
    /// Offset of its name in the file.
    name: u64,
}

/// Where an ELF file has its code.
#[derive(Debug)]
struct Layout {
    /// The segments of code, by their offset.
    segments: Vec<Segment>,
    build_id: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) address: u64,
}

impl FileSymbols {
    /// Reads the symbol tables of an ELF file.
    ///
    /// # Errors
    /// If it cannot be read, or is no ELF file.
    pub fn read(file: &impl ReadAt) -> io::Result<Self> {
        let mut named = Vec::new();
        let layout = Layout::read(file, |range, _| named.push(range))?;
        named.sort_by_key(|range: &Range<u64>| range.start);
        Ok(Self { named: code_timeline::ranges::merge(named, |_| false), layout })
    }

    /// The file's build-id, if it has one.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.layout.build_id.as_deref()
    }

    /// Where the segments of code are in the file.
    pub fn code(&self) -> impl Iterator<Item = Range<u64>> {
        let ranges = self
            .layout
            .segments
            .iter()
            .map(|segment| segment.offset..segment.offset.saturating_add(segment.size));
        ranges.filter(|range| !range.is_empty())
    }

    /// Whether the file names the code at this offset in it.
    pub fn name(&self, offset: u64) -> bool {
        self.layout.address(offset).is_some_and(|address| {
            let first = self.named.partition_point(|range| range.end <= address);
            self.named.get(first).is_some_and(|range| range.start <= address)
        })
    }
}

impl FileFunctions {
    /// Reads the symbol tables of an ELF file.
    ///
    /// # Errors
    /// If it cannot be read, or is no ELF file.
    pub fn read(file: SourceFile) -> io::Result<Self> {
        let mut functions = Vec::new();
        let layout = Layout::read(&file, |range, name| {
            functions.push(Function { start: range.start, end: range.end, name });
        })?;
        functions.sort_by_key(|function| (function.start, function.end));
        Ok(Self { file, functions, layout })
    }

    /// The file's build-id, if it has one.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.layout.build_id.as_deref()
    }

    /// The address of the code at this offset in the file.
    pub fn address(&self, offset: u64) -> Option<u64> {
        self.layout.address(offset)
    }

    /// The name of the function at this offset in the file, or its beginning if it is long.
    pub fn name(&self, offset: u64) -> Option<Vec<u8>> {
        self.name_at(self.layout.address(offset)?)
    }

    /// The name of the function at this address as the file has it, or its beginning if it is long.
    pub fn name_at(&self, address: u64) -> Option<Vec<u8>> {
        let behind = self.functions.partition_point(|function| function.start <= address);
        let function = self.functions.get(behind.checked_sub(1)?)?;
        (address < function.end).then(|| self.read_name(function))
    }

    /// The name of the function that begins at this offset in the file, or its beginning if it is long.
    pub fn name_of_start(&self, offset: u64) -> Option<Vec<u8>> {
        let address = self.layout.address(offset)?;
        let first = self.functions.partition_point(|function| function.start < address);
        let function = self.functions.get(first).filter(|function| function.start == address)?;
        Some(self.read_name(function)).filter(|name| !name.is_empty())
    }

    fn read_name(&self, function: &Function) -> Vec<u8> {
        let mut name = vec![0; LONGEST_NAME];
        let mut read = 0;
        while let Some(rest) = name.get_mut(read..).filter(|rest| !rest.is_empty()) {
            let at = function.name.saturating_add(read as u64);
            match self.file.read_at(rest, at) {
                Ok(count @ 1..) => read += count,
                _ => break,
            }
        }
        name.truncate(read);
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        name.truncate(end);
        name
    }
}

impl Layout {
    /// Calls `each` for each function in the symbol tables, with its addresses and the offset of its name in the file.
    fn read(file: &impl ReadAt, each: impl FnMut(Range<u64>, u64)) -> io::Result<Self> {
        let mut ident = [0; 5];
        exact(file, &mut ident, 0)?;
        match ident {
            [0x7f, b'E', b'L', b'F', 1] => Self::of::<FileHeader32<Endianness>>(file, each),
            [0x7f, b'E', b'L', b'F', 2] => Self::of::<FileHeader64<Endianness>>(file, each),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "not an ELF file")),
        }
    }

    fn of<Elf: FileHeader<Endian = Endianness>>(
        file: &impl ReadAt,
        mut each: impl FnMut(Range<u64>, u64),
    ) -> io::Result<Self> {
        let header = Pods::<Elf>::read(file, 0, 1)?;
        let [header, ..] = header.as_slice() else { return Err(invalid()) };
        let endian = header.endian().map_err(|_| invalid())?;
        let count = header.e_phnum(endian).into();
        let programs =
            Pods::<Elf::ProgramHeader>::read(file, header.e_phoff(endian).into(), count)?;
        let code = programs.as_slice().iter().filter(|program| {
            program.p_type(endian) == PT_LOAD && program.p_flags(endian).0 & PF_X.0 != 0
        });
        let mut segments: Vec<Segment> = code
            .map(|program| Segment {
                offset: program.p_offset(endian).into(),
                size: program.p_filesz(endian).into(),
                address: program.p_vaddr(endian).into(),
            })
            .collect();
        segments.sort_by_key(|segment| segment.offset);
        let count = header.e_shnum(endian).into();
        let notes = programs.as_slice().iter().filter(|program| program.p_type(endian) == PT_NOTE);
        let build_id = notes.take(MOST_NOTES).find_map(|program| {
            build_id(file, endian, program.p_offset(endian).into(), program.p_filesz(endian).into())
        });
        let sections =
            Pods::<Elf::SectionHeader>::read(file, header.e_shoff(endian).into(), count)?;
        let mut left = MOST_SYMBOLS;
        for section in sections.as_slice() {
            if matches!(section.sh_type(endian), SHT_SYMTAB | SHT_DYNSYM) {
                let table = (section.sh_offset(endian).into(), section.sh_size(endian).into());
                let strings = sections.as_slice().get(section.sh_link(endian) as usize);
                let strings = strings.map_or(0, |strings| strings.sh_offset(endian).into());
                let mut named = |range, name| each(range, strings.saturating_add(name));
                functions::<Elf>(file, endian, table, &mut left, &mut named)?;
            }
        }
        Ok(Self { segments, build_id })
    }

    /// The address of the code at this offset in the file.
    fn address(&self, offset: u64) -> Option<u64> {
        let behind = self.segments.partition_point(|segment| segment.offset <= offset);
        let segment = self.segments.get(behind.checked_sub(1)?)?;
        let into = offset.checked_sub(segment.offset).filter(|into| *into < segment.size)?;
        segment.address.checked_add(into)
    }
}

/// The build-id among the notes of a segment.
pub(super) fn build_id(
    file: &impl ReadAt,
    endian: Endianness,
    offset: u64,
    size: u64,
) -> Option<Vec<u8>> {
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

/// Adds the addresses of the functions in a symbol table, which is at an offset in the file and has a size.
fn functions<Elf: FileHeader<Endian = Endianness>>(
    file: &impl ReadAt,
    endian: Endianness,
    (offset, size): (u64, u64),
    left: &mut u64,
    each: &mut impl FnMut(Range<u64>, u64),
) -> io::Result<()> {
    let entry = size_of::<Elf::Sym>() as u64;
    let count = (size / entry).min(*left);
    *left -= count;
    let mut at = 0;
    while at < count {
        let some = AT_A_TIME.min(count - at);
        let offset = offset.checked_add(at * entry).ok_or_else(invalid)?;
        for symbol in Pods::<Elf::Sym>::read(file, offset, some)?.as_slice() {
            let is_function = matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC);
            if is_function && symbol.st_shndx(endian) != SHN_UNDEF {
                let (start, size): (u64, u64) =
                    (symbol.st_value(endian).into(), symbol.st_size(endian).into());
                // Of a function of unknown size, at least its beginning has a name.
                each(start..start.saturating_add(size.max(1)), symbol.st_name(endian).into());
            }
        }
        at += some;
    }
    Ok(())
}

/// Structures of a file, aligned in memory.
pub(super) struct Pods<T> {
    words: Vec<u64>,
    count: usize,
    of: std::marker::PhantomData<T>,
}

impl<T: Pod> Pods<T> {
    /// Reads `count` of them, at most 65,536 program or section headers or [`AT_A_TIME`] symbols.
    pub(super) fn read(file: &impl ReadAt, offset: u64, count: u64) -> io::Result<Self> {
        let count = usize::try_from(count).map_err(|_| invalid())?;
        let bytes = count.checked_mul(size_of::<T>()).ok_or_else(invalid)?;
        let mut words = vec![0_u64; bytes.div_ceil(8)];
        let room = pod::bytes_of_slice_mut(&mut words).get_mut(..bytes).ok_or_else(invalid)?;
        exact(file, room, offset)?;
        Ok(Self { words, count, of: std::marker::PhantomData })
    }

    pub(super) fn as_slice(&self) -> &[T] {
        let bytes = pod::bytes_of_slice(&self.words);
        pod::slice_from_bytes(bytes, self.count).map_or(&[], |(all, _)| all)
    }
}

/// Fills `room`.
pub(super) fn exact(file: &impl ReadAt, room: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = room.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let at = offset.checked_add(done as u64).ok_or_else(invalid)?;
        match file.read_at(rest, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => done += count,
        }
    }
    Ok(())
}

pub(super) fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The function in the file that is made of this code.
    #[inline(never)]
    extern "C" fn named() -> usize {
        std::hint::black_box(1)
    }

    fn program() -> Vec<u8> {
        std::fs::read("/proc/self/exe").expect("this program")
    }

    #[test]
    fn functions_of_this_program_have_names() {
        let symbols = FileSymbols::read(&&program()[..]).expect("an ELF file");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("its mappings");
        let address = named as *const () as u64;
        let offset = maps.lines().find_map(|line| {
            let mut words = line.split([' ', '-']);
            let mut number = || u64::from_str_radix(words.next()?, 16).ok();
            let (start, end) = (number()?, number()?);
            let offset = u64::from_str_radix(line.split(' ').nth(2)?, 16).ok()?;
            (start..end).contains(&address).then(|| address - start + offset)
        });
        let offset = offset.expect("its mapping");
        assert!(symbols.name(offset));
        let file = std::fs::File::open("/proc/self/exe").expect("this program");
        let functions = FileFunctions::read(SourceFile::new(file)).expect("an ELF file");
        let name = functions.name(offset).expect("a name");
        assert!(name.windows(5).any(|part| part == b"named"), "{}", name.escape_ascii());
        assert_eq!(functions.name_of_start(offset), Some(name));
        assert_eq!(functions.name_of_start(offset + 1), None);
        assert_eq!(functions.name(0), None);
        assert!(!symbols.name(0), "the head of the file is no function");
        assert!(!symbols.name(u64::MAX));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            at in prop::collection::vec((0usize..4096, any::<u8>()), 0..8),
            kept in 0usize..(1 << 16),
        ) {
            let mut bytes = program();
            bytes.truncate(kept.max(64));
            for (at, byte) in at {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            if let Ok(symbols) = FileSymbols::read(&&bytes[..]) {
                symbols.name(0x1000);
            }
            let mut file = tempfile::tempfile().expect("a file");
            std::io::Write::write_all(&mut file, &bytes).expect("it is written");
            if let Ok(functions) = FileFunctions::read(SourceFile::new(file)) {
                for offset in (0..kept as u64).step_by(97) {
                    functions.name(offset);
                }
            }
        }

        #[test]
        fn heads_of_any_content(head in prop::collection::vec(any::<u8>(), 0..256), class in 1u8..3) {
            let mut bytes = vec![0x7f, b'E', b'L', b'F', class, 1, 1];
            bytes.extend(head);
            if let Ok(symbols) = FileSymbols::read(&&bytes[..]) {
                symbols.name(0x1000);
            }
        }
    }
}
