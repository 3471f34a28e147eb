//! `.symtab` and `.strtab`.

use fallible::Vec;

use crate::encode::Encoder;
use crate::functions::Functions;
use crate::printable::push_printable;
use crate::target::Target;

/// Symbols of functions in one section.
#[derive(Debug)]
pub(crate) struct SymbolTable {
    target: Target,
    pub(crate) symtab: Encoder,
    pub(crate) strtab: Vec<u8>,
    pub(crate) count: u64,
}

/// `STB_GLOBAL << 4 | STT_FUNC`.
///
/// Global, although names repeat, which only a linker would reject. Tools take local symbols with names such as `$d`
/// or `.L1` for special markers, and some tools examine only global symbols.
const GLOBAL_FUNCTION: u8 = 0x12;
/// `STB_GLOBAL << 4 | STT_NOTYPE`.
const GLOBAL_LABEL: u8 = 0x10;
/// `SHN_ABS`.
const ABSOLUTE: u16 = 0xfff1;

impl SymbolTable {
    pub(crate) fn new(target: Target) -> Self {
        let mut table = SymbolTable {
            target,
            symtab: Encoder::new(target),
            strtab: fallible::vec![0],
            count: 0,
        };
        table.push(0, 0, 0, 0, 0);
        table
    }

    /// Adds the functions in `part`, all in the section with this index, and empties it.
    pub(crate) fn append(&mut self, part: &mut Functions, section: u16) {
        let before = self.strtab.len();
        let functions = part.take(&mut self.strtab);
        for function in functions {
            // a table larger than 4 GiB is rejected when the file is finished
            let name = before.saturating_add(function.name) as u32;
            self.push(name, GLOBAL_FUNCTION, section, function.value, function.size);
            self.count = self.count.saturating_add(1);
        }
    }

    /// Adds a function in the section with this index.
    pub(crate) fn add(&mut self, value: u64, size: u64, name: &[u8], section: u16) {
        // a table larger than 4 GiB is rejected when the file is finished
        let at = self.strtab.len() as u32;
        self.strtab.extend_from_slice(name);
        self.strtab.push(0);
        self.push(at, GLOBAL_FUNCTION, section, value, size);
        self.count = self.count.saturating_add(1);
    }

    /// Adds a label at an address that is in no section. perf ignores such symbols; disassemblers show them as targets of branches.
    pub(crate) fn add_label(&mut self, value: u64, name: &[u8]) {
        // a table larger than 4 GiB is rejected when the file is finished
        let at = self.strtab.len() as u32;
        push_printable(name, &mut self.strtab);
        self.strtab.push(0);
        self.push(at, GLOBAL_LABEL, ABSOLUTE, value, 0);
    }

    fn push(&mut self, name: u32, info: u8, section: u16, value: u64, size: u64) {
        let out = &mut self.symtab;
        out.u32(name);
        if self.target.is_64 {
            out.u8(info);
            out.u8(0);
            out.u16(section);
            out.u64(value);
            out.u64(size);
        } else {
            out.word(value);
            out.word(size);
            out.u8(info);
            out.u8(0);
            out.u16(section);
        }
    }
}
