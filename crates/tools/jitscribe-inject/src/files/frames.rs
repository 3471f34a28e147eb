//! What a program or library tells of its frames: unwind tables, and the functions where stacks begin.

use std::io;
use std::ops::Range;
use std::rc::Rc;

use jitdump::ReadAt;
use object::Endianness;
use object::elf::{
    FileHeader64, SHF_COMPRESSED, SHT_DYNSYM, SHT_NOBITS, SHT_SYMTAB, STT_FUNC, SectionHeader64,
    Sym64,
};
use object::read::elf::{SectionHeader, Sym};
use stack_unwind::{Body, Section, Sections, Tables};

use super::elf::{CodeSegments, MOST_SYMBOLS, Parts, exact};

type Elf = FileHeader64<Endianness>;

/// The functions where a stack begins: of the C library, whose threads and `main` have these callers, and of runtimes that have stacks of
/// their own. Versions (`@@GLIBC_2.34`) are left out.
const BOTTOMS: [&[u8]; 16] = [
    b"_start",
    b"_dl_start_user",
    b"__libc_start_main",
    b"__libc_start_main_impl",
    b"__libc_start_call_main",
    b"_start_c",
    b"start_thread",
    b"thread_start",
    b"clone",
    b"__clone",
    b"clone3",
    b"__clone3",
    b"start",
    b"runtime.goexit.abi0",
    // What an Erlang process returns to.
    b"erts_beamasm:normal_exit/0",
    b"erts_beamasm:normal_exit/0-CodeInfoPrologue",
];

/// The C library's functions behind which a function begins stacks that has no exported symbol: `__libc_start_call_main` and `start_thread` are directly
/// before them (glibc 2.34 and later: csu/libc-start.c, nptl/pthread_create.c).
const BEHIND_BOTTOMS: [&[u8]; 2] = [b"__libc_start_main", b"pthread_create"];

/// The function in whose frame the code runs that PHP compiles.
const PHP: &[u8] = b"execute_ex";

/// Larger sections are not read. Chromium's unwind tables have 20 MB, its names 300 MB.
const LARGEST_TABLES: u64 = 1 << 27;
const LARGEST_NAMES: u64 = 1 << 29;
/// The size of functions in assembly that do not tell theirs, such as the `_start` of glibc's dynamic linker.
const ASSEMBLY: u64 = 64;
/// Names that are longer than the longest of [`BOTTOMS`] are not compared.
const LONGEST_NAME: usize = 64;

/// What an ELF file of 64 bits tells of its frames.
#[derive(Debug)]
pub struct FileFrames {
    /// Its unwind tables, if it has any, and its byte order is the usual one.
    pub tables: Option<Rc<Tables>>,
    /// The functions where stacks begin.
    bottoms: Vec<Range<u64>>,
    /// Of a library without other symbols: its exported functions, and the addresses of [`BEHIND_BOTTOMS`].
    exported: Vec<Range<u64>>,
    behind_bottoms: Vec<u64>,
    /// The main loop of PHP's interpreter.
    php: Option<u64>,
    has_symbols: bool,
    code: CodeSegments,
    build_id: Option<Vec<u8>>,
}

impl FileFrames {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or is no ELF file of 64 bits.
    pub fn read(file: &impl ReadAt) -> io::Result<Self> {
        let mut parts = Parts::<Elf>::read(file)?;
        let has_usual_order = parts.endian == Endianness::Little;
        let mut found = Self {
            tables: has_usual_order.then(|| tables(file, &parts)).flatten().map(Rc::new),
            bottoms: Vec::new(),
            exported: Vec::new(),
            behind_bottoms: Vec::new(),
            php: None,
            has_symbols: false,
            code: std::mem::take(&mut parts.code),
            build_id: parts.build_id.take(),
        };
        found.add_symbols(file, &parts);
        found.add_unnamed_bottoms();
        Ok(found)
    }

    /// The file's build-id, if it has one.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    /// Whether it has no symbols but those for the dynamic linker: others may be in a file of their own.
    pub fn is_stripped(&self) -> bool {
        !self.has_symbols
    }

    /// Adds the functions that the file's symbols are in, if they are in a file of their own.
    pub fn add_debug_file(&mut self, other: Self) {
        self.bottoms.extend(other.bottoms);
        self.has_symbols |= other.has_symbols;
    }

    /// How far addresses of the file are above its offsets, at this offset.
    pub fn above_offset(&self, offset: u64) -> Option<u64> {
        self.code.above_offset(offset)
    }

    /// Whether stacks begin in the function at this address of the file.
    pub fn is_bottom(&self, address: u64) -> bool {
        self.bottoms.iter().any(|range| range.contains(&address))
            || self.tables.as_ref().is_some_and(|tables| tables.is_bottom(address))
    }

    /// The frame of PHP's interpreter, if it is in this file.
    pub fn php_frame(&self) -> Option<Body> {
        self.tables.as_ref()?.body(self.php?)
    }

    fn add_symbols(&mut self, file: &impl ReadAt, parts: &Parts<Elf>) {
        let mut left = MOST_SYMBOLS;
        for section in parts.sections() {
            let kind = section.sh_type(parts.endian);
            if !matches!(kind, SHT_SYMTAB | SHT_DYNSYM) {
                continue;
            }
            let names = parts.linked(section);
            let names = names.and_then(|names| content(file, parts.endian, names, LARGEST_NAMES));
            let Some(names) = names else { continue };
            self.has_symbols |= kind == SHT_SYMTAB;
            let is_exported = kind == SHT_DYNSYM;
            // What was read before the end counts.
            _ = parts.each_symbol(file, section, &mut left, |symbol| {
                self.add_symbol(parts.endian, symbol, is_exported, &names);
            });
        }
    }

    /// Adds the functions where stacks begin that only separate symbols would name.
    fn add_unnamed_bottoms(&mut self) {
        let mut exported = std::mem::take(&mut self.exported);
        if self.has_symbols || self.behind_bottoms.is_empty() {
            return;
        }
        exported.sort_unstable_by_key(|function| function.end);
        for &behind in &self.behind_bottoms {
            let before = exported.partition_point(|function| function.end <= behind);
            if let Some(before) = before.checked_sub(1).and_then(|last| exported.get(last)) {
                self.bottoms.push(before.end..behind);
            }
        }
    }

    /// Adds a symbol, which may be one for the dynamic linker.
    fn add_symbol(
        &mut self,
        endian: Endianness,
        symbol: &Sym64<Endianness>,
        is_exported: bool,
        names: &[u8],
    ) {
        let Some(name) = name(names, symbol.st_name(endian)) else { return };
        let name = name.split(|&byte| byte == b'@').next().unwrap_or(name);
        let (start, size) = (symbol.st_value(endian), symbol.st_size(endian));
        if start == 0 {
            return;
        }
        if is_exported && symbol.st_type() == STT_FUNC {
            self.exported.push(start..start.saturating_add(size));
            if BEHIND_BOTTOMS.contains(&name) {
                self.behind_bottoms.push(start);
            }
        }
        if BOTTOMS.contains(&name) {
            let size = if size == 0 { ASSEMBLY } else { size };
            self.bottoms.push(start..start.saturating_add(size));
        } else if name == PHP {
            self.php = Some(start);
        }
    }
}

/// The sections that unwinding takes.
fn tables(file: &impl ReadAt, parts: &Parts<Elf>) -> Option<Tables> {
    let (endian, sections) = (parts.endian, parts.sections());
    let names = content(file, endian, sections.get(parts.section_names)?, LARGEST_TABLES)?;
    let named = |wanted: &[u8]| {
        let is_it = |section: &&SectionHeader64<Endianness>| {
            name(&names, section.sh_name(endian)) == Some(wanted)
        };
        sections.iter().find(is_it)
    };
    let read = |wanted| {
        let section = named(wanted)?;
        let bytes = content(file, endian, section, LARGEST_TABLES)?;
        Some(Section { address: section.sh_addr(endian), bytes })
    };
    let address = |wanted| named(wanted).map_or(0, |section| section.sh_addr(endian));
    Tables::new(Sections {
        eh_frame: read(b".eh_frame"),
        debug_frame: read(b".debug_frame"),
        text: address(b".text"),
        got: address(b".got"),
    })
}

/// The content of a section, as far as the file has it.
fn content(
    file: &impl ReadAt,
    endian: Endianness,
    section: &SectionHeader64<Endianness>,
    largest: u64,
) -> Option<Vec<u8>> {
    /// A file that is smaller than it says takes no more memory than it has.
    const AT_ONCE: usize = 1 << 20;
    let (offset, size) = (section.sh_offset(endian), section.sh_size(endian));
    let is_compressed = section.sh_flags(endian).0 & SHF_COMPRESSED.0 != 0;
    if section.sh_type(endian) == SHT_NOBITS || is_compressed || size > largest {
        return None;
    }
    let size = usize::try_from(size).ok()?;
    let mut bytes = Vec::new();
    while bytes.len() < size {
        let (done, some) = (bytes.len(), AT_ONCE.min(size - bytes.len()));
        bytes.resize(done + some, 0);
        exact(file, bytes.get_mut(done..)?, offset.checked_add(done as u64)?).ok()?;
    }
    Some(bytes)
}

/// A name in a table of them.
fn name(names: &[u8], at: u32) -> Option<&[u8]> {
    let rest = names.get(at as usize..)?;
    let rest = rest.get(..LONGEST_NAME).unwrap_or(rest);
    rest.split(|&byte| byte == 0).next()
}

#[cfg(test)]
mod tests {
    use object::read::elf::FileHeader;

    use super::super::elf::c_library;
    use super::*;

    #[test]
    fn the_start_of_this_program_is_a_bottom() {
        let bytes = std::fs::read("/proc/self/exe").expect("this program");
        let frames = FileFrames::read(&&bytes[..]).expect("an ELF file");
        let header = FileHeader64::<Endianness>::parse(&*bytes).expect("a header");
        let entry = header.e_entry(Endianness::Little);
        assert!(frames.is_bottom(entry), "{entry:#x}");
        assert!(frames.tables.as_ref().is_some_and(|tables| tables.is_bottom(entry)));
        assert!(!frames.is_stripped() && !frames.is_bottom(0) && !frames.is_bottom(u64::MAX));
        assert_eq!(frames.above_offset(u64::MAX), None);
    }

    /// In the C library of this machine.
    #[test]
    fn callers_of_main_and_of_threads_are_found_without_their_symbols() {
        let library = c_library();
        let frames = FileFrames::read(&&library[..]).expect("an ELF file");
        assert!(frames.is_stripped());
        assert!(frames.behind_bottoms.len() >= BEHIND_BOTTOMS.len(), "{frames:x?}");
        for &start in &frames.behind_bottoms {
            assert!(frames.is_bottom(start - 8), "{start:x}");
            assert!(!frames.is_bottom(start + 0x1000), "{start:x}");
        }
    }
}
