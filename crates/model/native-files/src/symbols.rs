//! The symbols of an ELF file by address, as perf chooses among them.

use std::ops::Range;

use jitdump::ReadAt;
use object::elf::{
    SHF_EXECINSTR, SHN_ABS, SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, STB_GLOBAL, STB_WEAK, STT_FUNC,
    STT_GNU_IFUNC, STT_NOTYPE, STV_HIDDEN, STV_INTERNAL, SectionType,
};

use crate::elf::Elf;
use crate::symbol::MOST_SYMBOLS;
use crate::{pods, stubs};

/// Longer names are cut off.
const LONGEST_NAME: usize = 1 << 16;
/// No more bytes of names are read at once. Chromium has 300 MB.
const LARGEST_NAMES: u64 = 1 << 28;
/// So many symbols before an address are looked at for one that covers it.
const MOST_BEFORE: usize = 32;

/// The symbols of a file.
#[derive(Debug, Default)]
pub struct Symbols {
    /// By address.
    list: Vec<NamedSymbol>,
    /// Where their names are in the file.
    names: Range<u64>,
    are_complete: bool,
    /// The sections with code.
    code: Vec<Range<u64>>,
    /// Addresses outside of the file, and where their names are in it; by address.
    labels: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct NamedSymbol {
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
    pub fn read(elf: &Elf<impl ReadAt>) -> Self {
        let mut all = Self::default();
        all.add(elf, SHT_SYMTAB);
        all.are_complete = !all.list.is_empty();
        if all.list.is_empty() {
            all.add(elf, SHT_DYNSYM);
        }
        all.list.extend(stubs::of(elf).into_iter().map(|stub| NamedSymbol {
            start: stub.start,
            size: stub.size,
            name: stub.name,
            is_stub: true,
            is_function: true,
            is_weak: false,
            is_global: false,
        }));
        let code = elf.sections().iter();
        let code = code.filter(|section| section.flags & SHF_EXECINSTR.0 != 0);
        // Functions of unknown size do not reach farther.
        all.code.extend(
            code.map(|section| section.address..section.address.saturating_add(section.size)),
        );
        all.list.sort_by_key(|symbol| symbol.start);
        all.list.shrink_to_fit();
        all.labels.sort_unstable();
        all
    }

    /// Whether there are symbols other than those for the dynamic linker.
    #[must_use]
    pub fn are_complete(&self) -> bool {
        self.are_complete
    }

    fn add(&mut self, elf: &Elf<impl ReadAt>, kind: SectionType) {
        let Some(table) = elf.sections().iter().find(|section| section.kind == kind) else {
            return;
        };
        let Some(names) = elf.linked(table) else { return };
        let end = names.offset.saturating_add(names.size.min(LARGEST_NAMES));
        self.names = names.offset..end;
        let mut left = MOST_SYMBOLS;
        // Those before the first that cannot be read count.
        _ = elf.each_symbol(table, &mut left, |symbol| {
            let is_function = matches!(symbol.kind, STT_FUNC | STT_GNU_IFUNC);
            let is_label = symbol.kind == STT_NOTYPE
                && symbol.section != SHN_ABS
                && !matches!(symbol.visibility, STV_HIDDEN | STV_INTERNAL);
            let name = names.offset.saturating_add(symbol.name.into());
            if symbol.kind == STT_NOTYPE && symbol.section == SHN_ABS && symbol.name != 0 {
                self.labels.push((symbol.value, name));
            }
            if symbol.section == SHN_UNDEF || symbol.name == 0 || !(is_function || is_label) {
                return;
            }
            self.list.push(NamedSymbol {
                start: symbol.value,
                size: symbol.size,
                name,
                is_stub: false,
                is_function,
                is_weak: symbol.bind == STB_WEAK,
                is_global: symbol.bind == STB_GLOBAL,
            });
        });
    }

    /// The symbol at `address`: a function that covers it or, if there is none, the label before it. `file` is the one that they were read from.
    pub fn at(&self, address: u64, file: &impl ReadAt) -> Option<FoundSymbol> {
        let behind = self.list.partition_point(|symbol| symbol.start <= address);
        let before = self.list.get(behind.saturating_sub(MOST_BEFORE)..behind)?;
        let next = self.list.get(behind).map(|symbol| symbol.start);
        let end = |symbol: &NamedSymbol| match symbol.size {
            // It ends where the next one begins: behind the address, as this is the nearest one, or not at all.
            0 if before.last().is_some_and(|last| last.start == symbol.start) => {
                let next = next.unwrap_or_else(|| symbol.start.saturating_add(1 << 12));
                let section = self.code.iter().find(|section| section.contains(&symbol.start));
                section.map_or(next, |section| section.end.min(next))
            }
            size => symbol.start.saturating_add(size),
        };
        let covers = |symbol: &&NamedSymbol| address < end(symbol);
        let nearest = |is_function: bool| {
            let is_it = move |symbol: &&NamedSymbol| symbol.is_function == is_function;
            before.iter().rev().filter(is_it).find(covers)
        };
        let first = nearest(true).or_else(|| nearest(false))?;
        let same = before.iter().filter(|symbol| {
            symbol.start == first.start && symbol.is_function == first.is_function
        });
        let best = same.filter(covers).max_by_key(|symbol| {
            let name = pods::name(file, symbol.name, LONGEST_NAME);
            let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
            let rank = (symbol.size > 0, !symbol.is_weak, symbol.is_global);
            (rank, std::cmp::Reverse(underscores), name.len())
        });
        let best = best.unwrap_or(first);
        let mut name = pods::name(file, best.name, LONGEST_NAME);
        if best.is_stub {
            name.extend_from_slice(b"@plt");
        }
        Some(FoundSymbol { name, range: best.start..end(best) })
    }

    /// The name of an address outside of the file.
    pub fn label(&self, address: u64, file: &impl ReadAt) -> Option<Vec<u8>> {
        let place = self.labels.binary_search_by_key(&address, |&(address, _)| address).ok()?;
        self.labels.get(place).map(|&(_, name)| pods::name(file, name, LONGEST_NAME))
    }

    /// Passes the names of all functions to `each`.
    pub fn each_name(&self, file: &impl ReadAt, each: &mut dyn FnMut(&[u8])) {
        let size = self.names.end.saturating_sub(self.names.start);
        let mut names = Vec::new();
        let mut at = self.names.start;
        let mut part = vec![0; 1 << 16];
        while u64::try_from(names.len()).is_ok_and(|read| read < size) {
            let Ok(count @ 1..) = file.read_at(&mut part, at) else { break };
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
