//! The functions that a program or library names in its own symbol tables.

use std::io;
use std::ops::Range;

use jitdump::ReadAt;
use object::elf::{SHN_UNDEF, STT_FUNC, STT_GNU_IFUNC};

use crate::elf::Elf;
use crate::pods;
use crate::symbol::MOST_SYMBOLS;

/// Of a name, no more bytes are read.
const LONGEST_NAME: usize = 1 << 9;

/// The functions of an ELF file. Their names are read from the file when they are asked for.
#[derive(Debug)]
pub struct Functions<File> {
    elf: Elf<File>,
    /// By address.
    functions: Vec<Function>,
    /// The addresses of all functions, ascending and disjoint.
    named: Vec<Range<u64>>,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    start: u64,
    end: u64,
    /// Offset of its name in the file.
    name: u64,
}

impl<File: ReadAt> Functions<File> {
    /// Reads the symbol tables of an ELF file.
    ///
    /// # Errors
    /// If it cannot be read, or is no ELF file.
    pub fn read(file: File) -> io::Result<Self> {
        Self::of(Elf::read(file)?)
    }

    /// The functions of a file.
    ///
    /// # Errors
    /// If a symbol table cannot be read.
    pub fn of(elf: Elf<File>) -> io::Result<Self> {
        let mut functions = Vec::new();
        let mut left = MOST_SYMBOLS;
        for table in elf.symbol_tables() {
            let names = elf.linked(table).map_or(0, |names| names.offset);
            elf.each_symbol(table, &mut left, |symbol| {
                let is_function = matches!(symbol.kind, STT_FUNC | STT_GNU_IFUNC);
                if is_function && symbol.section != SHN_UNDEF {
                    // Of a function of unknown size, at least its beginning has a name.
                    let end = symbol.value.saturating_add(symbol.size.max(1));
                    let name = names.saturating_add(symbol.name.into());
                    functions.push(Function { start: symbol.value, end, name });
                }
            })?;
        }
        functions.sort_by_key(|function| (function.start, function.end));
        let named = functions.iter().map(|function| function.start..function.end);
        let named = code_timeline::ranges::merge(named, |_| false);
        Ok(Self { elf, functions, named })
    }

    /// The file.
    pub fn elf(&self) -> &Elf<File> {
        &self.elf
    }

    /// The file's build-id, if it has one.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.elf.build_id()
    }

    /// The part of a mapping of this file that has code in the file; the whole mapping if none has. `offset` is where `range` begins in the file.
    pub fn filled(&self, range: &Range<u64>, offset: u64) -> Range<u64> {
        self.elf.code().filled(range, offset)
    }

    /// Whether the file names the code at this offset in it.
    pub fn has_name(&self, offset: u64) -> bool {
        self.elf.address(offset).is_some_and(|address| {
            let first = self.named.partition_point(|range| range.end <= address);
            self.named.get(first).is_some_and(|range| range.start <= address)
        })
    }

    /// The address of the code at this offset in the file.
    pub fn address(&self, offset: u64) -> Option<u64> {
        self.elf.address(offset)
    }

    /// The name of the function at this offset in the file, or its beginning if it is long.
    pub fn name(&self, offset: u64) -> Option<Vec<u8>> {
        self.name_at(self.elf.address(offset)?)
    }

    /// The name of the function at this address as the file has it, or its beginning if it is long.
    pub fn name_at(&self, address: u64) -> Option<Vec<u8>> {
        let behind = self.functions.partition_point(|function| function.start <= address);
        let function = self.functions.get(behind.checked_sub(1)?)?;
        (address < function.end).then(|| self.read_name(function))
    }

    /// The name of the function that begins at this offset in the file, or its beginning if it is long.
    pub fn name_of_start(&self, offset: u64) -> Option<Vec<u8>> {
        let address = self.elf.address(offset)?;
        let first = self.functions.partition_point(|function| function.start < address);
        let function = self.functions.get(first).filter(|function| function.start == address)?;
        Some(self.read_name(function)).filter(|name| !name.is_empty())
    }

    fn read_name(&self, function: &Function) -> Vec<u8> {
        pods::name(self.elf.file(), function.name, LONGEST_NAME)
    }
}
