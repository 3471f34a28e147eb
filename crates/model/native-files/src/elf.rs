//! The headers of an ELF file, and its sections.

use std::cell::OnceCell;
use std::io;
use std::ops::Range;

use jitdump::ReadAt;
use object::Endianness;
use object::elf::{
    ELFMAG, ET_NONE, ET_REL, FileHeader32, FileHeader64, PF_X, PT_LOAD, PT_NOTE, SHF_COMPRESSED,
    SHF_EXECINSTR, SHN_XINDEX, SHT_DYNSYM, SHT_NOBITS, SHT_NOTE, SHT_PROGBITS, SHT_SYMTAB,
    SectionType,
};
use object::endian::Endian as _;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

use crate::code_segments::{CodeSegments, Segment};
use crate::notes::build_id;
use crate::pods::{self, Pods, exact, invalid};

/// Segments and sections of notes behind this many are not read; programs have one to three.
const MOST_NOTES: usize = 16;
/// More sections are not read, if the file says that it has more than fit into its header.
const MOST_SECTIONS: u64 = 1 << 17;
/// The names of sections have a few hundred bytes.
const LARGEST_SECTION_NAMES: u64 = 1 << 22;
/// No more bytes of one code are read.
const LARGEST_CODE: u64 = 1 << 24;
/// Links have a path, and a checksum or a build-id.
const LARGEST_LINK: u64 = 1 << 13;

/// An ELF file, and what its headers describe.
#[derive(Debug)]
pub struct Elf<File> {
    file: File,
    headers: Headers,
    /// The names of sections, read when the first one is searched.
    section_names: OnceCell<Vec<u8>>,
}

#[derive(Debug)]
struct Headers {
    endian: Endianness,
    is_64: bool,
    machine: u16,
    entry: u64,
    code: CodeSegments,
    is_unplaced: bool,
    build_id: Option<Vec<u8>>,
    sections: Vec<Section>,
    /// The index of the section with the names of sections.
    section_names: usize,
}

/// A section of a file.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Where its name is among the names of sections.
    name: u32,
    /// What it is.
    pub kind: SectionType,
    /// `sh_flags`.
    pub flags: u64,
    /// The address of its content when the program runs; 0 if it has none. Of code in a file that was not linked, its offset in the file.
    pub address: u64,
    /// How far this is above the address that the file gives.
    pub(crate) moved_by: u64,
    /// Where its content is in the file.
    pub offset: u64,
    /// The size of its content.
    pub size: u64,
    /// The index of the section that it refers to; for a table of symbols, that with their names.
    pub link: u32,
}

impl Section {
    /// Whether it has code, and this is in the file.
    fn has_code(&self) -> bool {
        self.flags & SHF_EXECINSTR.0 != 0 && self.kind == SHT_PROGBITS
    }

    /// Whether it has content that is compressed.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.flags & SHF_COMPRESSED.0 != 0
    }
}

impl<File: ReadAt> Elf<File> {
    /// Reads the headers of a file.
    ///
    /// # Errors
    /// If they cannot be read, or it is no ELF file.
    pub fn read(file: File) -> io::Result<Self> {
        let mut ident = [0; 5];
        exact(&file, &mut ident, 0)?;
        let headers = match ident {
            [0x7f, b'E', b'L', b'F', 1] => Headers::read::<FileHeader32<Endianness>>(&file),
            [0x7f, b'E', b'L', b'F', 2] => Headers::read::<FileHeader64<Endianness>>(&file),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "not an ELF file")),
        }?;
        Ok(Self { file, headers, section_names: OnceCell::new() })
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its byte order.
    pub fn endian(&self) -> Endianness {
        self.headers.endian
    }

    /// Whether its addresses have 64 bits.
    pub fn is_64(&self) -> bool {
        self.headers.is_64
    }

    /// `e_machine`.
    pub fn machine(&self) -> u16 {
        self.headers.machine
    }

    /// `e_entry`: where the program begins; 0 in most libraries.
    pub fn entry(&self) -> u64 {
        self.headers.entry
    }

    /// Its build-id, if it has one.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.headers.build_id.as_deref()
    }

    /// Whether it was not linked, so that its code has no address in it: an object file of a compiler, or a module that wasmtime compiled (`.cwasm`). Then
    /// offsets in the file serve as addresses.
    pub fn is_unplaced(&self) -> bool {
        self.headers.is_unplaced
    }

    /// Its segments of code; its sections of code if it has no program headers for code.
    pub fn code(&self) -> &CodeSegments {
        &self.headers.code
    }

    /// The address of the code at this offset in the file.
    pub fn address(&self, offset: u64) -> Option<u64> {
        self.headers.code.address(offset)
    }

    /// The address of what is mapped at this offset in the file; see [`CodeSegments::mapped_address`].
    pub fn mapped_address(&self, offset: u64) -> Option<u64> {
        self.headers.code.mapped_address(offset)
    }

    /// The bytes of code in a range of addresses; `None` if the file does not have them.
    pub fn bytes(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let size = range.end.checked_sub(range.start).filter(|size| *size <= LARGEST_CODE)?;
        pods::bytes(&self.file, self.headers.code.offset(range)?, size)
    }

    /// Its sections.
    pub fn sections(&self) -> &[Section] {
        &self.headers.sections
    }

    /// The section that this one refers to.
    pub fn linked(&self, section: &Section) -> Option<&Section> {
        self.headers.sections.get(usize::try_from(section.link).ok()?)
    }

    /// The first section with this name.
    pub fn section(&self, name: &[u8]) -> Option<&Section> {
        let names = self.section_names();
        self.headers.sections.iter().find(|section| {
            let rest = usize::try_from(section.name).ok().and_then(|at| names.get(at..));
            rest.and_then(|rest| rest.strip_prefix(name)).is_some_and(|end| end.first() == Some(&0))
        })
    }

    fn section_names(&self) -> &[u8] {
        self.section_names.get_or_init(|| {
            let section = self.headers.sections.get(self.headers.section_names);
            let content = section.and_then(|names| self.content(names, LARGEST_SECTION_NAMES));
            content.unwrap_or_default()
        })
    }

    /// The content of a section as it is in the file; `None` if it is not in the file, or larger than `largest`.
    pub fn content(&self, section: &Section, largest: u64) -> Option<Vec<u8>> {
        let is_there = section.kind != SHT_NOBITS && section.size <= largest;
        is_there.then(|| pods::bytes(&self.file, section.offset, section.size)).flatten()
    }

    /// Whether it has symbols other than those for the dynamic linker.
    pub fn has_symbols(&self) -> bool {
        self.headers.sections.iter().any(|section| section.kind == SHT_SYMTAB && section.size > 0)
    }

    /// The tables of symbols: those for the dynamic linker, and all others.
    pub fn symbol_tables(&self) -> impl Iterator<Item = &Section> {
        let is_table = |section: &&Section| matches!(section.kind, SHT_SYMTAB | SHT_DYNSYM);
        self.headers.sections.iter().filter(is_table)
    }

    /// Whether it has debug info with lines.
    pub fn has_lines(&self) -> bool {
        let sections = [&b".debug_info"[..], b".zdebug_info"];
        let mut sections = sections.into_iter().filter_map(|name| self.section(name));
        sections.any(|section| section.kind != SHT_NOBITS && section.size > 0)
    }

    /// The name of the file with its debug info, and that file's checksum (`.gnu_debuglink`).
    pub fn debug_link(&self) -> Option<(Vec<u8>, u32)> {
        let content = self.content(self.section(b".gnu_debuglink")?, LARGEST_LINK)?;
        let name = content.split(|&byte| byte == 0).next()?;
        let after = name.len().checked_add(1)?.checked_next_multiple_of(4)?;
        let sum = content.get(after..)?.first_chunk()?;
        Some((name.to_vec(), self.endian().read_u32(*sum)))
    }

    /// The path of the file with the debug info that this file shares with others, and that file's build-id
    /// (`.gnu_debugaltlink`, which `dwz` writes).
    pub fn alternate_link(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let content = self.content(self.section(b".gnu_debugaltlink")?, LARGEST_LINK)?;
        let name = content.split(|&byte| byte == 0).next()?;
        let build_id = content.get(name.len().checked_add(1)?..)?;
        Some((name.to_vec(), build_id.to_vec()))
    }
}

impl Headers {
    fn read<Class: FileHeader<Endian = Endianness>>(file: &impl ReadAt) -> io::Result<Self> {
        let header = Pods::<Class>::read(file, 0, 1)?;
        let [header, ..] = header.as_slice() else { return Err(invalid()) };
        let of_class = header.is_class_64() == header.is_type_64();
        if header.e_ident().magic != ELFMAG || !of_class {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "not an ELF file of this class",
            ));
        }
        let endian = header.endian().map_err(|_| invalid())?;
        let programs = Pods::<Class::ProgramHeader>::read(
            file,
            header.e_phoff(endian).into(),
            header.e_phnum(endian).into(),
        )?;
        let programs = programs.as_slice();
        let code = programs.iter().filter(|program| {
            program.p_type(endian) == PT_LOAD && program.p_flags(endian).0 & PF_X.0 != 0
        });
        let code = code.map(|program| Segment {
            offset: program.p_offset(endian).into(),
            size_in_file: program.p_filesz(endian).into(),
            size_in_memory: program.p_memsz(endian).into(),
            address: program.p_vaddr(endian).into(),
        });
        let mut code: Vec<Segment> = code.collect();
        let (mut sections, section_names) = Self::sections(file, header, endian)?;
        let is_unplaced = code.is_empty() && matches!(header.e_type(endian), ET_NONE | ET_REL);
        if code.is_empty() {
            let of_code = sections.iter_mut().filter(|section| section.has_code());
            code.extend(of_code.map(|section| {
                if is_unplaced {
                    section.moved_by = section.offset.wrapping_sub(section.address);
                    section.address = section.offset;
                }
                let Section { offset, size, address, .. } = *section;
                Segment { offset, size_in_file: size, size_in_memory: size, address }
            }));
        }
        let code = CodeSegments::new(code.into_iter());
        let notes = programs.iter().filter(|program| program.p_type(endian) == PT_NOTE);
        let notes = notes
            .map(|program| (program.p_offset(endian).into(), program.p_filesz(endian).into()))
            .take(MOST_NOTES);
        let of_sections = sections
            .iter()
            .filter(|section| section.kind == SHT_NOTE)
            .map(|section| (section.offset, section.size))
            .take(MOST_NOTES);
        let build_id = notes
            .chain(of_sections)
            .find_map(|(offset, size)| build_id(file, endian, offset, size));
        Ok(Self {
            endian,
            is_64: header.is_class_64(),
            machine: header.e_machine(endian).0,
            entry: header.e_entry(endian).into(),
            code,
            is_unplaced,
            build_id,
            sections,
            section_names,
        })
    }

    /// The sections, and the index of the one with their names.
    fn sections<Class: FileHeader<Endian = Endianness>>(
        file: &impl ReadAt,
        header: &Class,
        endian: Endianness,
    ) -> io::Result<(Vec<Section>, usize)> {
        let offset: u64 = header.e_shoff(endian).into();
        let mut count = u64::from(header.e_shnum(endian));
        let mut names = u32::from(header.e_shstrndx(endian).0);
        let has_more = (count == 0 && offset != 0) || names == u32::from(SHN_XINDEX.0);
        // Numbers that do not fit into the header are in the first section.
        let first = has_more.then(|| Pods::<Class::SectionHeader>::read(file, offset, 1).ok());
        if let Some(first) = first.flatten()
            && let [first, ..] = first.as_slice()
        {
            if count == 0 {
                count = first.sh_size(endian).into();
            }
            if names == u32::from(SHN_XINDEX.0) {
                names = first.sh_link(endian);
            }
        }
        let count = usize::try_from(count.min(MOST_SECTIONS)).map_err(|_| invalid())?;
        let sections = Pods::<Class::SectionHeader>::read(file, offset, count)?;
        let sections = sections.as_slice().iter().map(|section| Section {
            name: section.sh_name(endian),
            kind: section.sh_type(endian),
            flags: section.sh_flags(endian).0,
            address: section.sh_addr(endian).into(),
            moved_by: 0,
            offset: section.sh_offset(endian).into(),
            size: section.sh_size(endian).into(),
            link: section.sh_link(endian),
        });
        Ok((sections.collect(), usize::try_from(names).map_err(|_| invalid())?))
    }
}
