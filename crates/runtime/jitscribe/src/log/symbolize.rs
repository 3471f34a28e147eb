//! Names an address by the log.

use super::Log;
use super::description::Field;
use super::lookup::LogView;
use crate::crash::Symbol;

/// How often a code is looked up in whose chunk space is reused while it is read. Another thread that announces small codes without a pause disturbs
/// one of a hundred lookups, and more on a busy machine; a lookup takes some microseconds.
const ATTEMPTS: usize = 64;

impl Log {
    /// The function number `number` at `pc`, with its texts in `buffer`.
    pub(crate) fn symbolize<'b>(
        &self,
        pc: u64,
        number: u32,
        buffer: &'b mut [u8],
    ) -> Option<Symbol<'b>> {
        let written = self.written_symbol(pc, number, buffer)?;
        Some(written.in_buffer(buffer))
    }

    #[cfg(not(target_os = "linux"))]
    fn written_symbol(&self, pc: u64, number: u32, buffer: &mut [u8]) -> Option<WrittenSymbol> {
        self.own_view().symbolize(pc, number, buffer)
    }

    #[cfg(target_os = "linux")]
    fn written_symbol(&self, pc: u64, number: u32, buffer: &mut [u8]) -> Option<WrittenSymbol> {
        let mut found = None;
        // Until all is copied, what is in the parent's log is not in our own. Once it is, it is in both.
        self.each_view(|view| {
            if found.is_none() {
                found = view.symbolize(pc, number, buffer);
            }
        });
        found
    }

    /// [`Self::symbolize`] in the child of a fork that has no log yet: this is the parent's, which is read as of the fork.
    #[cfg(target_os = "linux")]
    pub(crate) fn symbolize_as_of_fork<'b>(
        &self,
        pc: u64,
        number: u32,
        buffer: &'b mut [u8],
    ) -> Option<Symbol<'b>> {
        let as_of_fork = LogView { mapping: &self.mapping, until: Some(self.chunks.last_change()) };
        let mut found = None;
        // The parent may be the child of a fork as well, and have left codes in the log of its own parent.
        self.each_view_with(as_of_fork, |view| {
            if found.is_none() {
                found = view.symbolize(pc, number, buffer);
            }
        });
        Some(found?.in_buffer(buffer))
    }

    pub(crate) fn own_view(&self) -> LogView<'_> {
        LogView { mapping: &self.mapping, until: None }
    }
}

/// A symbol whose texts are at the beginning of a buffer: the name and a NUL, the file and a NUL.
struct WrittenSymbol {
    name: usize,
    file: usize,
    symbol: Symbol<'static>,
}

impl WrittenSymbol {
    fn in_buffer(self, buffer: &mut [u8]) -> Symbol<'_> {
        let buffer: &[u8] = buffer;
        let (name, rest) = buffer.split_at_checked(self.name).unwrap_or_default();
        let file = rest.get(1..).and_then(|rest| rest.get(..self.file)).unwrap_or_default();
        Symbol { name, file, ..self.symbol }
    }
}

impl LogView<'_> {
    fn symbolize(&self, pc: u64, number: u32, buffer: &mut [u8]) -> Option<WrittenSymbol> {
        for _ in 0..ATTEMPTS {
            let code = self.find(pc)?;
            let function = self.function(&code, pc, number);
            let written = function.map(|function| {
                let (name, is_whole, rest) = write_text(buffer, function.name);
                let (file, is_whole_file, _) = write_text(rest, function.file);
                let symbol = Symbol {
                    name: &[],
                    file: &[],
                    line: function.line,
                    column: function.column,
                    address: code.address,
                    size: code.size,
                    functions: function.count,
                    is_cut: !(is_whole && is_whole_file),
                };
                WrittenSymbol { name, file, symbol }
            });
            if self.is_unchanged(&code) {
                return written;
            }
        }
        None
    }
}

/// Writes as much of a text as there is space for, and a NUL. Returns its length, whether it is all of it, and what is left.
fn write_text<'b>(buffer: &'b mut [u8], text: Field<'_>) -> (usize, bool, &'b mut [u8]) {
    let Some(space) = buffer.len().checked_sub(1) else { return (0, text.len() == 0, buffer) };
    let mut length = text.len().min(space);
    let is_whole = length == text.len();
    for (place, byte) in buffer.iter_mut().zip(text.bytes().take(length)) {
        *place = byte;
    }
    if !is_whole {
        // Not within a character.
        let is_within = |byte: Option<u8>| byte.is_some_and(|byte| byte & 0xc0 == 0x80);
        let mut behind = text.bytes().nth(length);
        while length > 0 && is_within(behind) {
            length -= 1;
            behind = buffer.get(length).copied();
        }
    }
    if let Some(end) = buffer.get_mut(length) {
        *end = 0;
    }
    (length, is_whole, buffer.get_mut(length + 1..).unwrap_or_default())
}
