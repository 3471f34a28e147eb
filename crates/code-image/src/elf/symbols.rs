//! `.symtab` and `.strtab`.

use crate::encode::Encoder;
use crate::target::Target;

/// Bytes that tools write into lines of text or cut names at.
fn is_control(byte: u8) -> bool {
    byte < 0x20 || byte == 0x7f
}

/// Appends `name` in a form that every tool shows on one line: control characters become `\xNN`,
/// and a code without a name is called `<unnamed>`, since a symbol without one counts as none.
pub(crate) fn push_printable(name: &[u8], out: &mut Vec<u8>) {
    if name.is_empty() {
        out.extend_from_slice(b"<unnamed>");
    } else if !name.iter().any(|&byte| is_control(byte)) {
        out.extend_from_slice(name);
    } else {
        for &byte in name {
            if is_control(byte) {
                out.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
            } else {
                out.push(byte);
            }
        }
    }
}

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

    /// Adds a function; returns its name as a tool will show it.
    pub(crate) fn function(&mut self, value: u64, size: u64, name: &[u8], section: u16) -> &[u8] {
        let at = self.strtab.len();
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
