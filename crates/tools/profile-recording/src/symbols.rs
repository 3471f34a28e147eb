//! The symbols of an ELF file by address, as perf chooses among them.

use std::ops::Range;

use jitdump::ReadAt;
use jitscribe_inject::files::SourceFile;
use object::elf::{
    EM_AARCH64, SHF_EXECINSTR, SHN_ABS, SHN_UNDEF, STB_GLOBAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC,
    STT_NOTYPE, STV_HIDDEN, STV_INTERNAL,
};
use object::read::elf::{ElfFile, FileHeader, Rela, SectionHeader, Sym, SymbolTable};
use object::{Endianness, ReadRef};

/// Symbols behind this many are not read. Large programs have a million.
const MOST: usize = 1 << 22;
/// Longer names are cut off.
const LONGEST_NAME: usize = 1 << 16;
/// No more bytes of names are read at once. Chromium has 300 MB.
const LARGEST_NAMES: u64 = 1 << 28;
/// The size of a stub that calls a function of another file.
const STUB: u64 = 16;
/// So many symbols before an address are looked at for one that covers it.
const MOST_BEFORE: usize = 32;

/// The symbols of a file.
#[derive(Debug, Default)]
pub struct Symbols {
    /// By address.
    list: Vec<Symbol>,
    /// Where their names are in the file.
    names: Range<u64>,
    are_complete: bool,
    /// The sections with code.
    code: Vec<Range<u64>>,
    /// Addresses outside of the file, and where their names are in it; by address.
    labels: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Symbol {
    start: u64,
    /// 0 if it is not known.
    size: u64,
    /// Offset of its name in the file.
    name: u64,
    /// Whether it only jumps to the function with this name.
    is_stub: bool,
    is_function: bool,
    is_weak: bool,
    is_global: bool,
}

/// A symbol that covers an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSymbol {
    /// The name.
    pub name: Vec<u8>,
    /// Its addresses.
    pub range: Range<u64>,
}

impl Symbols {
    /// The symbols of a file: those for the dynamic linker only if there are no others.
    pub fn read<'d, Header, File>(elf: &ElfFile<'d, Header, File>) -> Self
    where
        Header: FileHeader<Endian = Endianness>,
        File: ReadRef<'d>,
    {
        let mut all = Self::default();
        all.add(elf, elf.elf_symbol_table());
        all.are_complete = !all.list.is_empty();
        if all.list.is_empty() {
            all.add(elf, elf.elf_dynamic_symbol_table());
        }
        all.add_stubs(elf);
        all.add_code_sections(elf);
        all.list.sort_by_key(|symbol| symbol.start);
        all.list.shrink_to_fit();
        all.labels.sort_unstable();
        all
    }

    /// Whether there are symbols other than those for the dynamic linker.
    pub fn are_complete(&self) -> bool {
        self.are_complete
    }

    fn add<'d, Header, File>(
        &mut self,
        elf: &ElfFile<'d, Header, File>,
        table: &SymbolTable<'d, Header, File>,
    ) where
        Header: FileHeader<Endian = Endianness>,
        File: ReadRef<'d>,
    {
        let endian = elf.endian();
        let sections = elf.elf_section_table();
        let Ok(strings) = sections.section(table.string_section()) else { return };
        let size: u64 = strings.sh_size(endian).into();
        let strings: u64 = strings.sh_offset(endian).into();
        self.names = strings..strings.saturating_add(size.min(LARGEST_NAMES));
        for symbol in table.iter().take(MOST) {
            let kind = symbol.st_type();
            let place = symbol.st_shndx(endian);
            let is_function = matches!(kind, STT_FUNC | STT_GNU_IFUNC);
            let is_label = kind == STT_NOTYPE
                && place != SHN_ABS
                && !matches!(symbol.st_visibility(), STV_HIDDEN | STV_INTERNAL);
            let name = symbol.st_name(endian);
            if kind == STT_NOTYPE && place == SHN_ABS && name != 0 {
                let name = strings.saturating_add(name.into());
                self.labels.push((symbol.st_value(endian).into(), name));
            }
            if place == SHN_UNDEF || name == 0 || !(is_function || is_label) {
                continue;
            }
            let start: u64 = symbol.st_value(endian).into();
            self.list.push(Symbol {
                start,
                size: symbol.st_size(endian).into(),
                name: strings.saturating_add(name.into()),
                is_stub: false,
                is_function,
                is_weak: symbol.st_bind() == STB_WEAK,
                is_global: symbol.st_bind() == STB_GLOBAL,
            });
        }
    }

    /// Adds the stubs by which functions of other files are called (`.plt`), which have no symbols.
    fn add_stubs<'d, Header, File>(&mut self, elf: &ElfFile<'d, Header, File>) -> Option<()>
    where
        Header: FileHeader<Endian = Endianness>,
        File: ReadRef<'d>,
    {
        let endian = elf.endian();
        let sections = elf.elf_section_table();
        let named =
            |name: &[u8]| sections.section_by_name(endian, name).map(|(_, section)| section);
        let (relocations, _) = named(b".rela.plt")?.rela(endian, elf.data()).ok()??;
        let table = elf.elf_dynamic_symbol_table();
        let strings: u64 = sections.section(table.string_section()).ok()?.sh_offset(endian).into();
        // The first entry of `.plt` finds functions when they are first called; `.plt.sec` has none such.
        let head = if elf.elf_header().e_machine(endian) == EM_AARCH64 { 32 } else { STUB };
        for (name, head) in [(&b".plt"[..], head), (b".plt.sec", 0)] {
            let Some(section) = named(name) else { continue };
            let (start, size): (u64, u64) =
                (section.sh_addr(endian).into(), section.sh_size(endian).into());
            let starts = (head..size).step_by(STUB as usize);
            for (into, relocation) in starts.zip(relocations.iter().take(MOST)) {
                let symbol = relocation.symbol(endian, false);
                let symbol = symbol.and_then(|symbol| table.symbol(symbol).ok());
                let Some(name) = symbol.map(|symbol| symbol.st_name(endian)) else { continue };
                self.list.push(Symbol {
                    start: start.saturating_add(into),
                    size: STUB,
                    name: strings.saturating_add(name.into()),
                    is_stub: true,
                    is_function: true,
                    is_weak: false,
                    is_global: false,
                });
            }
        }
        Some(())
    }

    /// Adds where code is: functions of unknown size do not reach farther.
    fn add_code_sections<'d, Header, File>(&mut self, elf: &ElfFile<'d, Header, File>)
    where
        Header: FileHeader<Endian = Endianness>,
        File: ReadRef<'d>,
    {
        let endian = elf.endian();
        for section in elf.elf_section_table().iter() {
            if section.sh_flags(endian).0 & SHF_EXECINSTR.0 != 0 {
                let start: u64 = section.sh_addr(endian).into();
                self.code.push(start..start.saturating_add(section.sh_size(endian).into()));
            }
        }
    }

    /// The symbol at `address`: a function that covers it or, if there is none, the label before it.
    pub fn at(&self, address: u64, file: &SourceFile) -> Option<FoundSymbol> {
        let behind = self.list.partition_point(|symbol| symbol.start <= address);
        let before = self.list.get(behind.saturating_sub(MOST_BEFORE)..behind)?;
        let next = self.list.get(behind).map(|symbol| symbol.start);
        let end = |symbol: &Symbol| match symbol.size {
            // It ends where the next one begins: behind the address, as this is the nearest one, or not at all.
            0 if before.last().is_some_and(|last| last.start == symbol.start) => {
                let next = next.unwrap_or_else(|| symbol.start.saturating_add(1 << 12));
                let section = self.code.iter().find(|section| section.contains(&symbol.start));
                section.map_or(next, |section| section.end.min(next))
            }
            size => symbol.start.saturating_add(size),
        };
        let covers = |symbol: &&Symbol| address < end(symbol);
        let nearest = |is_function: bool| {
            let is_it = move |symbol: &&Symbol| symbol.is_function == is_function;
            before.iter().rev().filter(is_it).find(covers)
        };
        let first = nearest(true).or_else(|| nearest(false))?;
        let same = before.iter().filter(|symbol| {
            symbol.start == first.start && symbol.is_function == first.is_function
        });
        let best = same.filter(covers).max_by_key(|symbol| {
            let name = read_name(symbol.name, file);
            let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
            let rank = (symbol.size > 0, !symbol.is_weak, symbol.is_global);
            (rank, std::cmp::Reverse(underscores), name.len())
        });
        let best = best.unwrap_or(first);
        let mut name = read_name(best.name, file);
        if best.is_stub {
            name.extend_from_slice(b"@plt");
        }
        Some(FoundSymbol { name, range: best.start..end(best) })
    }

    /// The name of an address outside of the file.
    pub fn label(&self, address: u64, file: &SourceFile) -> Option<Vec<u8>> {
        let place = self.labels.binary_search_by_key(&address, |&(address, _)| address).ok()?;
        self.labels.get(place).map(|&(_, name)| read_name(name, file))
    }

    /// Passes the names of all functions to `each`.
    pub fn each_name(&self, file: &SourceFile, each: &mut dyn FnMut(&[u8])) {
        let mut names = Vec::new();
        let size = self.names.end.saturating_sub(self.names.start);
        let mut at = self.names.start;
        let mut part = vec![0; 1 << 16];
        while u64::try_from(names.len()).is_ok_and(|read| read < size) {
            let Ok(count @ 1..) = ReadAt::read_at(file, &mut part, at) else { break };
            names.extend_from_slice(part.get(..count).unwrap_or_default());
            at = at.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        }
        for symbol in self.list.iter().filter(|symbol| symbol.is_function) {
            let place = symbol.name.checked_sub(self.names.start);
            let rest = place.and_then(|place| names.get(usize::try_from(place).ok()?..));
            each(rest.and_then(|rest| rest.split(|&byte| byte == 0).next()).unwrap_or_default());
        }
    }
}

/// The name at an offset in a file, up to its NUL.
fn read_name(offset: u64, file: &SourceFile) -> Vec<u8> {
    let mut name = Vec::new();
    let mut part = [0; 256];
    while name.len() < LONGEST_NAME {
        let at = offset.saturating_add(u64::try_from(name.len()).unwrap_or(u64::MAX));
        let Ok(count @ 1..) = ReadAt::read_at(file, &mut part, at) else { break };
        let read = part.get(..count).unwrap_or_default();
        let end = read.iter().position(|&byte| byte == 0);
        name.extend_from_slice(read.get(..end.unwrap_or(count)).unwrap_or_default());
        if end.is_some() {
            break;
        }
    }
    name
}
