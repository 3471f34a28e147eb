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

    /// Adds the functions in `part`, all in the section with this number, and empties it.
    pub(crate) fn append(&mut self, part: &mut Functions, section: u16) {
        let before = self.strtab.len();
        self.strtab.append(&mut part.names);
        for function in part.functions.drain(..) {
            // a table beyond 4 GiB is refused when the file is finished
            let name = before.saturating_add(function.name) as u32;
            self.push(name, GLOBAL_FUNCTION, section, function.value, function.size);
            self.count = self.count.saturating_add(1);
        }
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

/// Functions that are to be symbols.
#[derive(Debug, Clone, Default)]
pub(crate) struct Functions {
    functions: Vec<Function>,
    /// Their names, each with a NUL behind it.
    names: Vec<u8>,
}

#[derive(Debug, Clone)]
struct Function {
    value: u64,
    size: u64,
    /// Where among the names its own is.
    name: usize,
}

/// Functions after which a part of an image ends that has no debug info.
const FUNCTIONS: usize = 1 << 10;

impl Functions {
    /// Whether there are many.
    pub(crate) fn is_full(&self) -> bool {
        self.functions.len() >= FUNCTIONS
    }

    /// Adds a function; returns its name as a tool will show it. One without a name is called
    /// `<unnamed>`, since readers take a symbol without a name for none at all.
    pub(crate) fn add(&mut self, value: u64, size: u64, name: &[u8]) -> &[u8] {
        let at = self.names.len();
        let name = if name.is_empty() { b"<unnamed>" } else { name };
        push_printable(name, &mut self.names);
        let end = self.names.len();
        self.names.push(0);
        self.functions.push(Function { value, size, name: at });
        self.names.get(at..end).unwrap_or_default()
    }
}
