//! An object in the list.

use std::ops::Range;

use crate::elf::{self, Header, RELOCATABLE, Section, Symbol, string};
use crate::frames::Frames;
use crate::limits;
use crate::lines::{self, SourceLine};

/// The section of symbol files that jitscribe's own library registers. They have no code: the code is in a log.
const OF_OURS: &[u8] = b".jitscribe.log";

/// An object that a process has registered.
///
/// Addresses are those in the process: the `sh_addr` of each section is where the runtime has put it. Its bytes are not those of the
/// process, as they are not relocated.
#[derive(Clone, Debug)]
pub struct Symfile<'o> {
    object: &'o [u8],
    header: Header,
    sections: Vec<Section>,
    /// The table of the names of sections.
    names: &'o [u8],
}

/// A function in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function<'o> {
    /// The address of its first byte.
    pub address: u64,
    /// Its size in bytes, never 0.
    pub size: u64,
    /// Its name, as the compiler spells it.
    pub name: &'o [u8],
}

impl Function<'_> {
    /// Its addresses.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.size)
    }
}

impl<'o> Symfile<'o> {
    /// Reads the headers of an object. `None` if it is none of 64 bits.
    #[must_use]
    pub fn parse(object: &'o [u8]) -> Option<Self> {
        let header = Header::read(object)?;
        let sections = header.sections(object)?;
        let names = sections.get(usize::from(header.names));
        let names = names.and_then(|names| names.bytes(object)).unwrap_or_default();
        Some(Self { object, header, sections, names })
    }

    /// The machine of its code, as `e_machine`.
    #[must_use]
    pub fn machine(&self) -> u16 {
        self.header.machine
    }

    /// Whether jitscribe's own library has registered it.
    #[must_use]
    pub fn is_of_jitscribe(&self) -> bool {
        self.sections.iter().any(|section| string(self.names, section.name) == Some(OF_OURS))
    }

    /// Its functions, sorted by address. Of several names for one address, this has the first that is not local.
    #[must_use]
    pub fn functions(&self) -> Vec<Function<'o>> {
        let mut found = Vec::new();
        let symbols = |kind| self.sections.iter().filter(move |section| section.kind == kind);
        let mut tables = symbols(elf::SECTION_SYMBOLS).chain(symbols(elf::SECTION_DYNAMIC_SYMBOLS));
        if let Some(table) = tables.next() {
            self.add_functions(table, &mut found);
        }
        found.sort_by_key(|(function, is_local)| (function.address, *is_local));
        found.dedup_by_key(|(function, _)| function.address);
        let nexts = found.iter().skip(1).map(|(next, _)| next.address);
        let nexts: Vec<u64> = nexts.chain([u64::MAX]).collect();
        let functions = found.into_iter().zip(nexts).filter_map(|((mut function, _), next)| {
            // A symbol without a size, or a damaged one, ends where the next one begins.
            function.size = function.size.min(next.saturating_sub(function.address));
            (function.size > 0).then_some(function)
        });
        functions.collect()
    }

    /// Its source lines, sorted by address.
    #[must_use]
    pub fn lines(&self) -> Vec<SourceLine> {
        lines::lines(self.object, &self.sections, self.names)
    }

    /// How to unwind from its functions.
    #[must_use]
    pub fn frames(&self) -> Frames {
        Frames::read(self.object, &self.sections, self.names)
    }

    fn add_functions(&self, table: &Section, found: &mut Vec<(Function<'o>, bool)>) {
        let names = usize::try_from(table.link).ok().and_then(|at| self.sections.get(at));
        let names = names.and_then(|names| names.bytes(self.object));
        let (Some(symbols), Some(names)) = (table.bytes(self.object), names) else { return };
        for symbol in symbols.as_chunks().0 {
            let symbol = Symbol::parse(symbol);
            if symbol.kind != elf::SYMBOL_FUNCTION || symbol.section == 0 {
                continue;
            }
            let Some(section) = self.sections.get(usize::from(symbol.section)) else { continue };
            let range = self.place(&symbol, section);
            let name = string(names, symbol.name).filter(|name| !name.is_empty());
            if let (Some(range), Some(name)) = (range, name) {
                let Range { start: address, end } = range;
                let size = end.saturating_sub(address);
                found.push((Function { address, size, name }, symbol.is_local));
            }
            if found.len() == limits::FUNCTIONS {
                return;
            }
        }
    }

    /// Where the code of a symbol is. A symbol without a size ends with the section.
    fn place(&self, symbol: &Symbol, section: &Section) -> Option<Range<u64>> {
        if section.address == 0 {
            return None;
        }
        let end = section.address.checked_add(section.size)?;
        let is_absolute =
            self.header.kind != RELOCATABLE && (section.address..end).contains(&symbol.value);
        // wasmtime's objects say that they are shared libraries, with the values of relocatable ones.
        let start = match is_absolute {
            true => symbol.value,
            false => section.address.checked_add(symbol.value)?,
        };
        let own_end = match symbol.size {
            0 => end,
            size => start.checked_add(size)?,
        };
        (start < own_end && own_end <= end).then_some(start..own_end)
    }
}
