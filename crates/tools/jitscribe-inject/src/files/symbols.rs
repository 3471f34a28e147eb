//! Which addresses of a program or library have symbols in the file itself.
//!
//! Separate files with debug symbols are not looked for.

use std::collections::{BTreeMap, BTreeSet};
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

/// Symbols behind this many are not read. Large programs have a million.
const MOST_SYMBOLS: u64 = 1 << 22;
/// Number of symbols that are read at a time.
const AT_A_TIME: u64 = 1 << 15;
/// Segments of notes behind this many are not read; programs have one to three.
const MOST_NOTES: usize = 16;
/// Of a segment of notes, no more bytes are read; it has about a hundred.
const LARGEST_NOTES: u64 = 1 << 16;

/// The addresses of an ELF file for which it has the name of a function.
#[derive(Debug)]
pub struct FileSymbols {
    /// The addresses, ascending and disjoint.
    named: Vec<Range<u64>>,
    /// The segments of code, by their offset.
    segments: Vec<Segment>,
    build_id: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

impl FileSymbols {
    /// Reads the symbol tables of an ELF file.
    ///
    /// # Errors
    /// If it cannot be read, or is no ELF file.
    pub fn read(file: &impl ReadAt) -> io::Result<Self> {
        let mut ident = [0; 5];
        exact(file, &mut ident, 0)?;
        match ident {
            [0x7f, b'E', b'L', b'F', 1] => Self::of::<FileHeader32<Endianness>>(file),
            [0x7f, b'E', b'L', b'F', 2] => Self::of::<FileHeader64<Endianness>>(file),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "not an ELF file")),
        }
    }

    fn of<Elf: FileHeader<Endian = Endianness>>(file: &impl ReadAt) -> io::Result<Self> {
        let header = Pods::<Elf>::read(file, 0, 1)?;
        let [header, ..] = header.as_slice() else { return Err(invalid()) };
        let endian = header.endian().map_err(|_| invalid())?;
        let count = header.e_phnum(endian).into();
        let programs =
            Pods::<Elf::ProgramHeader>::read(file, header.e_phoff(endian).into(), count)?;
        let segments = code_segments::<Elf>(programs.as_slice(), endian);
        let count = header.e_shnum(endian).into();
        let notes = programs.as_slice().iter().filter(|program| program.p_type(endian) == PT_NOTE);
        let build_id = notes.take(MOST_NOTES).find_map(|program| {
            build_id(file, endian, program.p_offset(endian).into(), program.p_filesz(endian).into())
        });
        let sections =
            Pods::<Elf::SectionHeader>::read(file, header.e_shoff(endian).into(), count)?;
        let mut named = Vec::new();
        let mut left = MOST_SYMBOLS;
        for section in sections.as_slice() {
            if matches!(section.sh_type(endian), SHT_SYMTAB | SHT_DYNSYM) {
                let table = (section.sh_offset(endian).into(), section.sh_size(endian).into());
                functions::<Elf>(file, endian, table, &mut left, &mut named)?;
            }
        }
        named.sort_by_key(|range: &Range<u64>| range.start);
        Ok(Self { named: code_timeline::ranges::merge(named, |_| false), segments, build_id })
    }

    /// The names of the functions that begin at these offsets in an ELF file.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub fn names(
        file: &impl ReadAt,
        offsets: &BTreeSet<u64>,
    ) -> io::Result<BTreeMap<u64, Vec<u8>>> {
        let mut ident = [0; 5];
        exact(file, &mut ident, 0)?;
        match ident[4] {
            1 => names::<FileHeader32<Endianness>>(file, offsets),
            _ => names::<FileHeader64<Endianness>>(file, offsets),
        }
    }

    /// The file's build-id, if it has one.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    /// Whether the file names the code at this offset in it.
    pub fn name(&self, offset: u64) -> bool {
        let behind = self.segments.partition_point(|segment| segment.offset <= offset);
        let Some(segment) = behind.checked_sub(1).and_then(|last| self.segments.get(last)) else {
            return false;
        };
        let into = offset - segment.offset;
        let address = segment.address.checked_add(into).filter(|_| into < segment.size);
        address.is_some_and(|address| {
            let first = self.named.partition_point(|range| range.end <= address);
            self.named.get(first).is_some_and(|range| range.start <= address)
        })
    }
}

/// Whether a recorded build-id, which perf pads with zeros up to 20 bytes, is that of a file.
pub fn is_build_id(recorded: &[u8], of_file: Option<&[u8]>) -> bool {
    of_file.is_some_and(|id| {
        let id = id.get(..20).unwrap_or(id);
        recorded.strip_prefix(id).is_some_and(|rest| rest.iter().all(|&byte| byte == 0))
    })
}

/// The segments of code.
fn code_segments<Elf: FileHeader<Endian = Endianness>>(
    programs: &[Elf::ProgramHeader],
    endian: Endianness,
) -> Vec<Segment> {
    let code = programs.iter().filter(|program| {
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
    segments
}

/// Names of functions are read up to this length.
const LONGEST_NAME: usize = 1 << 10;

/// The names of the functions at some offsets.
fn names<Elf: FileHeader<Endian = Endianness>>(
    file: &impl ReadAt,
    offsets: &BTreeSet<u64>,
) -> io::Result<BTreeMap<u64, Vec<u8>>> {
    let header = Pods::<Elf>::read(file, 0, 1)?;
    let [header, ..] = header.as_slice() else { return Err(invalid()) };
    let endian = header.endian().map_err(|_| invalid())?;
    let count = header.e_phnum(endian).into();
    let programs = Pods::<Elf::ProgramHeader>::read(file, header.e_phoff(endian).into(), count)?;
    let mut wanted: BTreeMap<u64, u64> = BTreeMap::new();
    for segment in code_segments::<Elf>(programs.as_slice(), endian) {
        let end = segment.offset.saturating_add(segment.size);
        for &offset in offsets.range(segment.offset..end.max(segment.offset)) {
            wanted.insert(segment.address.saturating_add(offset - segment.offset), offset);
        }
    }
    let count = header.e_shnum(endian).into();
    let sections = Pods::<Elf::SectionHeader>::read(file, header.e_shoff(endian).into(), count)?;
    let (mut found, mut left) = (BTreeMap::new(), MOST_SYMBOLS);
    for section in sections.as_slice() {
        if !matches!(section.sh_type(endian), SHT_SYMTAB | SHT_DYNSYM) {
            continue;
        }
        let strings = sections.as_slice().get(section.sh_link(endian) as usize);
        let Some(strings) = strings.map(|strings| strings.sh_offset(endian).into()) else {
            continue;
        };
        let table = (section.sh_offset(endian).into(), section.sh_size(endian).into());
        each_function::<Elf>(file, endian, table, &mut left, |symbol| {
            let address: u64 = symbol.st_value(endian).into();
            let Some(&offset) = wanted.get(&address) else { return };
            let at: u64 = symbol.st_name(endian).into();
            let mut name = vec![0; LONGEST_NAME];
            let count =
                u64::checked_add(strings, at).and_then(|at| file.read_at(&mut name, at).ok());
            name.truncate(count.unwrap_or(0));
            if let Some(end) = name.iter().position(|&byte| byte == 0).filter(|&end| end > 0) {
                name.truncate(end);
                found.entry(offset).or_insert(name);
            }
        })?;
    }
    Ok(found)
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

/// Adds the addresses of the functions in a symbol table, which is at an offset in the file and has a size.
fn functions<Elf: FileHeader<Endian = Endianness>>(
    file: &impl ReadAt,
    endian: Endianness,
    table: (u64, u64),
    left: &mut u64,
    named: &mut Vec<Range<u64>>,
) -> io::Result<()> {
    each_function::<Elf>(file, endian, table, left, |symbol| {
        let (start, size): (u64, u64) =
            (symbol.st_value(endian).into(), symbol.st_size(endian).into());
        // Of a function of unknown size, at least its beginning has a name.
        named.push(start..start.saturating_add(size.max(1)));
    })
}

/// Passes each function in a symbol table to `take`.
fn each_function<Elf: FileHeader<Endian = Endianness>>(
    file: &impl ReadAt,
    endian: Endianness,
    (offset, size): (u64, u64),
    left: &mut u64,
    mut take: impl FnMut(&Elf::Sym),
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
                take(symbol);
            }
        }
        at += some;
    }
    Ok(())
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
        let room = pod::bytes_of_slice_mut(&mut words).get_mut(..bytes).ok_or_else(invalid)?;
        exact(file, room, offset)?;
        Ok(Self { words, count, of: std::marker::PhantomData })
    }

    fn as_slice(&self) -> &[T] {
        let bytes = pod::bytes_of_slice(&self.words);
        pod::slice_from_bytes(bytes, self.count).map_or(&[], |(all, _)| all)
    }
}

/// Fills `room`.
fn exact(file: &impl ReadAt, room: &mut [u8], offset: u64) -> io::Result<()> {
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

fn invalid() -> io::Error {
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
        let names = FileSymbols::names(&&program()[..], &BTreeSet::from([offset, offset + 1]));
        let names = names.expect("an ELF file");
        assert_eq!(names.keys().collect::<Vec<_>>(), [&offset], "the beginning alone");
        assert!(names[&offset].windows(5).any(|part| part == b"named"), "{names:?}");
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
            _ = FileSymbols::names(&&bytes[..], &(0..0x2000).collect());
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
