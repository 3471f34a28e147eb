//! The functions that a program or library names in its own symbol tables.
//!
//! Separate files with debug symbols are not looked for.

use std::io;
use std::ops::Range;

use jitdump::ReadAt;
use object::Endianness;
use object::elf::{
    FileHeader32, FileHeader64, SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC,
};
use object::read::elf::{FileHeader, SectionHeader, Sym};

use super::elf::{CodeSegments, MOST_SYMBOLS, Parts, exact};

/// Of a name, no more bytes are read.
const LONGEST_NAME: usize = 1 << 9;

/// The functions of an ELF file. Their names are read from the file when they are asked for.
#[derive(Debug)]
pub struct FileSymbols<File> {
    file: File,
    /// By address.
    functions: Vec<Function>,
    /// The addresses of all functions, ascending and disjoint.
    named: Vec<Range<u64>>,
    code: CodeSegments,
    build_id: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    start: u64,
    end: u64,
    /// Offset of its name in the file.
    name: u64,
}

impl<File: ReadAt> FileSymbols<File> {
    /// Reads the symbol tables of an ELF file.
    ///
    /// # Errors
    /// If it cannot be read, or is no ELF file.
    pub fn read(file: File) -> io::Result<Self> {
        let mut ident = [0; 5];
        exact(&file, &mut ident, 0)?;
        match ident {
            [0x7f, b'E', b'L', b'F', 1] => Self::of::<FileHeader32<Endianness>>(file),
            [0x7f, b'E', b'L', b'F', 2] => Self::of::<FileHeader64<Endianness>>(file),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "not an ELF file")),
        }
    }

    fn of<Elf: FileHeader<Endian = Endianness>>(file: File) -> io::Result<Self> {
        let parts = Parts::<Elf>::read(&file)?;
        let endian = parts.endian;
        let mut functions = Vec::new();
        let mut left = MOST_SYMBOLS;
        for section in parts.sections() {
            if !matches!(section.sh_type(endian), SHT_SYMTAB | SHT_DYNSYM) {
                continue;
            }
            let names: u64 =
                parts.linked(section).map_or(0, |names| names.sh_offset(endian).into());
            parts.each_symbol(&file, section, &mut left, |symbol| {
                let is_function = matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC);
                if is_function && symbol.st_shndx(endian) != SHN_UNDEF {
                    let (start, size): (u64, u64) =
                        (symbol.st_value(endian).into(), symbol.st_size(endian).into());
                    // Of a function of unknown size, at least its beginning has a name.
                    let end = start.saturating_add(size.max(1));
                    let name = names.saturating_add(symbol.st_name(endian).into());
                    functions.push(Function { start, end, name });
                }
            })?;
        }
        functions.sort_by_key(|function| (function.start, function.end));
        let named = functions.iter().map(|function| function.start..function.end);
        let named = code_timeline::ranges::merge(named, |_| false);
        Ok(Self { file, functions, named, code: parts.code, build_id: parts.build_id })
    }

    /// The file's build-id, if it has one.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    /// The part of a mapping of this file that has code in the file; the whole mapping if none has. `offset` is where `range` begins in the file.
    pub fn filled(&self, range: &Range<u64>, offset: u64) -> Range<u64> {
        self.code.filled(range, offset)
    }

    /// Whether the file names the code at this offset in it.
    pub fn has_name(&self, offset: u64) -> bool {
        self.code.address(offset).is_some_and(|address| {
            let first = self.named.partition_point(|range| range.end <= address);
            self.named.get(first).is_some_and(|range| range.start <= address)
        })
    }

    /// The address of the code at this offset in the file.
    pub fn address(&self, offset: u64) -> Option<u64> {
        self.code.address(offset)
    }

    /// The name of the function at this offset in the file, or its beginning if it is long.
    pub fn name(&self, offset: u64) -> Option<Vec<u8>> {
        self.name_at(self.code.address(offset)?)
    }

    /// The name of the function at this address as the file has it, or its beginning if it is long.
    pub fn name_at(&self, address: u64) -> Option<Vec<u8>> {
        let behind = self.functions.partition_point(|function| function.start <= address);
        let function = self.functions.get(behind.checked_sub(1)?)?;
        (address < function.end).then(|| self.read_name(function))
    }

    /// The name of the function that begins at this offset in the file, or its beginning if it is long.
    pub fn name_of_start(&self, offset: u64) -> Option<Vec<u8>> {
        let address = self.code.address(offset)?;
        let first = self.functions.partition_point(|function| function.start < address);
        let function = self.functions.get(first).filter(|function| function.start == address)?;
        Some(self.read_name(function)).filter(|name| !name.is_empty())
    }

    fn read_name(&self, function: &Function) -> Vec<u8> {
        let mut name = vec![0; LONGEST_NAME];
        let mut read = 0;
        while let Some(rest) = name.get_mut(read..).filter(|rest| !rest.is_empty()) {
            let at = function.name.saturating_add(read as u64);
            match self.file.read_at(rest, at) {
                Ok(count @ 1..) => read += count,
                _ => break,
            }
        }
        name.truncate(read);
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        name.truncate(end);
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The function in the file that is made of this code.
    #[inline(never)]
    extern "C" fn named() -> usize {
        std::hint::black_box(1)
    }

    #[test]
    fn functions_of_this_program_have_names() {
        let program = std::fs::File::open("/proc/self/exe").expect("this program");
        let symbols = FileSymbols::read(program).expect("an ELF file");
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
        assert!(symbols.has_name(offset));
        let name = symbols.name(offset).expect("a name");
        assert!(name.windows(5).any(|part| part == b"named"), "{}", name.escape_ascii());
        assert_eq!(symbols.name_of_start(offset), Some(name));
        assert_eq!(symbols.name_of_start(offset + 1), None);
        assert_eq!(symbols.name(0), None);
        assert!(!symbols.has_name(0), "the head of the file is no function");
        assert!(!symbols.has_name(u64::MAX));
    }
}
