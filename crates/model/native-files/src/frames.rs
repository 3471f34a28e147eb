//! What a program or library tells of its frames: unwind tables, and the functions where stacks begin.

use std::ops::Range;
use std::rc::Rc;

use jitdump::ReadAt;
use object::Endianness;
use object::elf::{SHT_DYNSYM, SHT_SYMTAB, STT_FUNC};
use stack_unwind::{Body, Section, Sections, Tables};

use crate::code_segments::CodeSegments;
use crate::elf::Elf;
use crate::symbol::{MOST_SYMBOLS, Symbol};

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

/// Those of [`BOTTOMS`] that call `main`, or the function of a thread. The C library of some distributions does not set the frame pointer to zero
/// before (Debian's from 2.41 on): what walks the stack by frame pointers then finds frames behind them that are none.
const CALLERS: [&[u8]; 5] = [
    b"__libc_start_main",
    b"__libc_start_main_impl",
    b"__libc_start_call_main",
    b"_start_c",
    b"start_thread",
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
    /// Those of them that call `main`, or the function of a thread.
    callers: Vec<Range<u64>>,
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
    /// What a file tells of its frames; `None` if it is no file of 64 bits.
    pub fn read(elf: &Elf<impl ReadAt>) -> Option<Self> {
        if !elf.is_64() {
            return None;
        }
        // Addresses in the tables of a file that was not linked are yet to be relocated.
        let has_usual_order = elf.endian() == Endianness::Little && !elf.is_unplaced();
        let mut found = Self {
            tables: has_usual_order.then(|| tables(elf)).flatten().map(Rc::new),
            bottoms: Vec::new(),
            callers: Vec::new(),
            exported: Vec::new(),
            behind_bottoms: Vec::new(),
            php: None,
            has_symbols: false,
            code: elf.code().clone(),
            build_id: elf.build_id().map(<[u8]>::to_vec),
        };
        if elf.entry() != 0 {
            // `_start`, which has no symbol in a stripped program.
            found.bottoms.push(elf.entry()..elf.entry().saturating_add(ASSEMBLY));
        }
        found.add_symbols(elf);
        found.add_unnamed_bottoms();
        Some(found)
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
        self.callers.extend(other.callers);
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

    /// Whether the function at this address of the file calls `main`, or the function of a thread: no frame of a stack is behind it.
    pub fn is_caller_of_first(&self, address: u64) -> bool {
        self.callers.iter().any(|range| range.contains(&address))
    }

    /// The frame of PHP's interpreter, if it is in this file.
    pub fn php_frame(&self) -> Option<Body> {
        self.tables.as_ref()?.body(self.php?)
    }

    fn add_symbols(&mut self, elf: &Elf<impl ReadAt>) {
        let mut left = MOST_SYMBOLS;
        for table in elf.symbol_tables() {
            let names = elf.linked(table).filter(|names| !names.is_compressed());
            let names = names.and_then(|names| elf.content(names, LARGEST_NAMES));
            let Some(names) = names else { continue };
            self.has_symbols |= table.kind == SHT_SYMTAB;
            let is_exported = table.kind == SHT_DYNSYM;
            // What was read before the end counts.
            _ = elf.each_symbol(table, &mut left, |symbol| {
                self.add_symbol(&symbol, is_exported, &names);
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
                self.callers.push(before.end..behind);
            }
        }
    }

    /// Adds a symbol, which may be one for the dynamic linker.
    fn add_symbol(&mut self, symbol: &Symbol, is_exported: bool, names: &[u8]) {
        let Some(name) = name(names, symbol.name) else { return };
        let name = name.split(|&byte| byte == b'@').next().unwrap_or(name);
        let (start, size) = (symbol.value, symbol.size);
        if start == 0 {
            return;
        }
        if is_exported && symbol.kind == STT_FUNC {
            self.exported.push(start..start.saturating_add(size));
            if BEHIND_BOTTOMS.contains(&name) {
                self.behind_bottoms.push(start);
            }
        }
        if BOTTOMS.contains(&name) {
            let size = if size == 0 { ASSEMBLY } else { size };
            let range = start..start.saturating_add(size);
            if CALLERS.contains(&name) {
                self.callers.push(range.clone());
            }
            self.bottoms.push(range);
        } else if name == PHP {
            self.php = Some(start);
        }
    }
}

/// The sections that unwinding takes.
fn tables(elf: &Elf<impl ReadAt>) -> Option<Tables> {
    let read = |name| {
        let section = elf.section(name).filter(|section| !section.is_compressed())?;
        let bytes = elf.content(section, LARGEST_TABLES)?;
        Some(Section { address: section.address, bytes })
    };
    let address = |name| elf.section(name).map_or(0, |section| section.address);
    Tables::new(Sections {
        eh_frame: read(b".eh_frame"),
        debug_frame: read(b".debug_frame"),
        text: address(b".text"),
        got: address(b".got"),
    })
}

/// A name in a table of them.
fn name(names: &[u8], at: u32) -> Option<&[u8]> {
    let rest = names.get(usize::try_from(at).ok()?..)?;
    let rest = rest.get(..LONGEST_NAME).unwrap_or(rest);
    rest.split(|&byte| byte == 0).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(path: &str) -> FileFrames {
        let file = std::fs::File::open(path).expect("a file");
        FileFrames::read(&Elf::read(file).expect("an ELF file")).expect("of 64 bits")
    }

    #[test]
    fn the_start_of_this_program_is_a_bottom() {
        let frames = frames("/proc/self/exe");
        let bytes = std::fs::read("/proc/self/exe").expect("this program");
        let entry = u64::from_le_bytes(*bytes[24..].first_chunk().expect("a header"));
        assert!(frames.is_bottom(entry), "{entry:#x}");
        assert!(frames.tables.as_ref().is_some_and(|tables| tables.is_bottom(entry)));
        assert!(!frames.is_stripped() && !frames.is_bottom(0) && !frames.is_bottom(u64::MAX));
        assert_eq!(frames.above_offset(u64::MAX), None);
    }

    /// In the C library of this machine.
    #[test]
    fn callers_of_main_and_of_threads_are_found_without_their_symbols() {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("mappings");
        let library = maps.lines().find_map(|line| {
            line.find('/').and_then(|at| line.get(at..)).filter(|path| path.contains("/libc.so.6"))
        });
        let frames = frames(library.expect("the C library"));
        assert!(frames.is_stripped());
        assert!(frames.behind_bottoms.len() >= BEHIND_BOTTOMS.len(), "{frames:x?}");
        for &start in &frames.behind_bottoms {
            assert!(frames.is_bottom(start - 8), "{start:x}");
            assert!(!frames.is_bottom(start + 0x1000), "{start:x}");
            assert!(frames.is_caller_of_first(start - 8), "{start:x}");
            assert!(!frames.is_caller_of_first(start + 0x1000), "{start:x}");
        }
    }
}
