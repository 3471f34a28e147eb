//! `.symtab` and `.strtab`.

use crate::encode::Encoder;
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
/// Global, although names repeat, which only a linker would mind: tools read names such as `$d` or
/// `.L1` of local symbols as marks of their own, and some look at global symbols alone.
const GLOBAL_FUNCTION: u8 = 0x12;

impl SymbolTable {
    pub(crate) fn new(target: Target) -> Self {
        let mut table =
            SymbolTable { target, symtab: Encoder::new(target), strtab: vec![0], count: 0 };
        table.push(0, 0, 0, 0, 0);
        table
    }

    /// Adds a function; returns its name as a tool will show it. One without a name is called
    /// `<unnamed>`, since readers take a symbol without a name for none at all.
    pub(crate) fn function(&mut self, value: u64, size: u64, name: &[u8], section: u16) -> &[u8] {
        let at = self.strtab.len();
        let name = if name.is_empty() { b"<unnamed>" } else { name };
        push_printable(name, &mut self.strtab);
        self.strtab.push(0);
        // a table beyond 4 GiB is refused when the file is finished
        self.push(at as u32, GLOBAL_FUNCTION, section, value, size);
        self.count = self.count.saturating_add(1);
        let end = self.strtab.len().saturating_sub(1);
        self.strtab.get(at..end).unwrap_or_default()
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
