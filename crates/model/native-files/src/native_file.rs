//! A program or library with its symbols and lines, wherever they are.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use jitdump::ReadAt;

use crate::debug_files::DebugFiles;
use crate::elf::Elf;
use crate::lines::Lines;
use crate::symbols::{FoundSymbol, Symbols};
use crate::xz;

/// A larger `.gnu_debugdata` is not read. That of Chromium would have 20 MB.
const LARGEST_COMPRESSED: u64 = 1 << 26;
/// Nor if it has more bytes when it is decompressed.
const LARGEST_DECOMPRESSED: usize = 1 << 28;

/// A program or library with its symbols and lines.
#[derive(Debug)]
pub struct NativeFile<File> {
    elf: Elf<File>,
    symbols: Symbols,
    /// The symbols that are not for the dynamic linker, if the file itself has none.
    others: Option<OtherSymbols>,
    debug: Option<Elf<File>>,
    /// The debug info that several debug files share.
    shared: Option<Elf<File>>,
    lines: OnceCell<Option<Lines>>,
}

#[derive(Debug)]
enum OtherSymbols {
    /// From a file of their own; all that the file has.
    Separate(Symbols),
    /// From `.gnu_debugdata`: those of functions that the dynamic linker does not need.
    Embedded(Elf<Memory>, Symbols),
}

/// A file in memory.
#[derive(Debug)]
struct Memory(Vec<u8>);

impl ReadAt for Memory {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }
}

impl<File: ReadAt> NativeFile<File> {
    /// A file that was mapped from `path`, with what there is in separate files.
    pub fn new(elf: Elf<File>, path: &[u8], debug_files: &DebugFiles<'_, File>) -> Self {
        let mut file = Self::alone(elf);
        if !file.symbols.are_complete() || !file.elf.has_lines() {
            file.add_debug_file(debug_files.find(&file.elf, path), debug_files);
        }
        if file.elf.has_lines() {
            let path = Path::new(OsStr::from_bytes(path));
            file.shared = debug_files.shared(&file.elf, path);
        }
        if !file.symbols.are_complete() && file.others.is_none() {
            file.others = embedded(&file.elf);
        }
        file
    }

    /// A file whose symbols and lines are all in it, such as an image of jitted code.
    pub fn alone(elf: Elf<File>) -> Self {
        let symbols = Symbols::read(&elf);
        Self { elf, symbols, others: None, debug: None, shared: None, lines: OnceCell::new() }
    }

    fn add_debug_file(
        &mut self,
        found: Option<(PathBuf, Elf<File>)>,
        debug_files: &DebugFiles<'_, File>,
    ) {
        let Some((path, debug)) = found else { return };
        if !self.symbols.are_complete() {
            let symbols = Symbols::read(&debug);
            self.others = symbols.are_complete().then_some(OtherSymbols::Separate(symbols));
        }
        self.shared = debug_files.shared(&debug, &path);
        self.debug = Some(debug);
    }

    /// The file itself.
    pub fn elf(&self) -> &Elf<File> {
        &self.elf
    }

    /// Whether functions that the file does not export have no names.
    pub fn is_stripped(&self) -> bool {
        !self.symbols.are_complete() && self.others.is_none()
    }

    /// The symbol at an address.
    pub fn symbol(&self, address: u64) -> Option<FoundSymbol> {
        let own = || self.symbols.at(address, self.elf.file());
        match &self.others {
            None => own(),
            Some(OtherSymbols::Separate(symbols)) => {
                let file = self.debug.as_ref()?.file();
                symbols.at(address, file).or_else(own)
            }
            // Of two, the one that begins nearer to the address: the other one may be of unknown size.
            Some(OtherSymbols::Embedded(embedded, symbols)) => {
                let embedded = symbols.at(address, embedded.file());
                own().into_iter().chain(embedded).max_by_key(|found| found.range.start)
            }
        }
    }

    /// The name of an address outside of the functions in the file, to which they refer.
    pub fn label(&self, address: u64) -> Option<Vec<u8>> {
        self.symbols.label(address, self.elf.file())
    }

    /// Passes the names of the functions that its own symbols are of to `each`.
    pub fn each_name(&self, mut each: impl FnMut(&[u8])) {
        self.symbols.each_name(self.elf.file(), &mut each);
    }

    /// Its lines and inlined calls, which are read when they are first asked for.
    pub fn lines(&self) -> Option<&Lines> {
        let read = || {
            let shared = self.shared.as_ref();
            let own = Lines::read(&self.elf, shared);
            own.or_else(|| Lines::read(self.debug.as_ref()?, shared))
        };
        self.lines.get_or_init(read).as_ref()
    }
}

/// The symbols in `.gnu_debugdata`: an ELF file with them, compressed by xz.
fn embedded(elf: &Elf<impl ReadAt>) -> Option<OtherSymbols> {
    let compressed = elf.content(elf.section(b".gnu_debugdata")?, LARGEST_COMPRESSED)?;
    let content = xz::decompress(&compressed, LARGEST_DECOMPRESSED)?;
    let inner = Elf::read(Memory(content)).ok()?;
    let symbols = Symbols::read(&inner);
    let has_any = symbols.are_complete();
    has_any.then_some(OtherSymbols::Embedded(inner, symbols))
}
