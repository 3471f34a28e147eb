//! The entries of a table of symbols, and the names of functions that are called through stubs.

use std::io;

use jitdump::ReadAt;
use object::Endianness;
use object::elf::{
    FileHeader32, FileHeader64, SHN_UNDEF, SHT_RELA, SymbolBind, SymbolSection, SymbolType,
    SymbolVisibility,
};
use object::read::elf::{FileHeader, Rela, Sym};

use crate::elf::{Elf, Section};
use crate::pods::{Pods, invalid};

/// Symbols behind this many are not read. Large programs have a million.
pub const MOST_SYMBOLS: usize = 1 << 22;
/// Number of symbols that are read at a time.
const AT_A_TIME: usize = 1 << 15;

/// An entry of a table of symbols.
#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    /// Where its name is in the section with the names.
    pub name: u32,
    /// What it is a symbol of.
    pub kind: SymbolType,
    /// Which files may use it.
    pub bind: SymbolBind,
    /// Which files may use it, when programs are loaded.
    pub visibility: SymbolVisibility,
    /// The section that it is in.
    pub section: SymbolSection,
    /// Its address.
    pub value: u64,
    /// Its size; 0 if it is not known.
    pub size: u64,
}

impl<File: ReadAt> Elf<File> {
    /// Passes the symbols in a section to `each`, at most `left`, which is counted down.
    ///
    /// # Errors
    /// If not all of them can be read. Those before the first that cannot were passed on.
    pub fn each_symbol(
        &self,
        table: &Section,
        left: &mut usize,
        each: impl FnMut(Symbol),
    ) -> io::Result<()> {
        match self.is_64() {
            true => self.each_of_class::<FileHeader64<Endianness>>(table, left, each),
            false => self.each_of_class::<FileHeader32<Endianness>>(table, left, each),
        }
    }

    fn each_of_class<Class: FileHeader<Endian = Endianness>>(
        &self,
        table: &Section,
        left: &mut usize,
        mut each: impl FnMut(Symbol),
    ) -> io::Result<()> {
        let endian = self.endian();
        let count = count::<Class::Sym>(table).min(*left);
        *left = left.saturating_sub(count);
        self.each_pod(table, count, |symbol: &Class::Sym| {
            let section = symbol.st_shndx(endian);
            let (section, moved_by) = match self.is_unplaced() {
                false => (section, 0),
                true => match self.sections().get(usize::from(section.0)) {
                    Some(of_file) => (section, of_file.moved_by),
                    // Where it is in the file is not known.
                    None => (SHN_UNDEF, 0),
                },
            };
            each(Symbol {
                name: symbol.st_name(endian),
                kind: symbol.st_type(),
                bind: symbol.st_bind(),
                visibility: symbol.st_visibility(),
                section,
                value: symbol.st_value(endian).into().wrapping_add(moved_by),
                size: symbol.st_size(endian).into(),
            });
        })
    }

    /// Passes the address of each relocation in a section, and the number of the symbol that it refers to.
    pub(crate) fn each_relocation(&self, table: &Section, mut each: impl FnMut(u64, u32)) {
        if table.kind != SHT_RELA {
            return;
        }
        let endian = self.endian();
        // Those before the first that cannot be read count.
        _ = match self.is_64() {
            true => {
                type Entry = object::elf::Rela64<Endianness>;
                let count = count::<Entry>(table).min(MOST_SYMBOLS);
                self.each_pod(table, count, |entry: &Entry| {
                    each(entry.r_offset.get(endian), entry.r_sym(endian, false));
                })
            }
            false => {
                type Entry = object::elf::Rela32<Endianness>;
                let count = count::<Entry>(table).min(MOST_SYMBOLS);
                self.each_pod(table, count, |entry: &Entry| {
                    each(entry.r_offset.get(endian).into(), Rela::r_sym(entry, endian, false));
                })
            }
        };
    }

    /// Passes the first `count` structures in a section to `each`.
    fn each_pod<T: object::pod::Pod>(
        &self,
        table: &Section,
        count: usize,
        mut each: impl FnMut(&T),
    ) -> io::Result<()> {
        let mut at = table.offset;
        let mut left = count;
        while left > 0 {
            let some = left.min(AT_A_TIME);
            Pods::read(self.file(), at, some)?.as_slice().iter().for_each(&mut each);
            let bytes = u64::try_from(some.saturating_mul(size_of::<T>())).unwrap_or(u64::MAX);
            at = at.checked_add(bytes).ok_or_else(invalid)?;
            left = left.saturating_sub(some);
        }
        Ok(())
    }
}

/// The number of structures in a section.
fn count<T>(table: &Section) -> usize {
    let size = usize::try_from(table.size).unwrap_or(usize::MAX);
    size.checked_div(size_of::<T>()).unwrap_or(0)
}
