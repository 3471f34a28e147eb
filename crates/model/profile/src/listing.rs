//! What views of machine code need: bytes, lines, inlined calls, and sources.

use crate::id::CodeId;

/// The machine code of one [`Code`](crate::Code), and what is known of each of its addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The address of the first byte: what the code itself takes for its address where it refers to others.
    pub address: u64,
    /// The ELF number of the machine (`e_machine`).
    pub machine: u16,
    /// The machine code.
    pub bytes: Vec<u8>,
    /// The lines and inlined calls, by offset. Each applies up to the next.
    pub lines: Vec<ListedLine>,
}

/// The functions and lines from an offset on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedLine {
    /// The offset in the code.
    pub offset: u64,
    /// The functions, the innermost first; the last one is the code's own. Empty if the code has no line here.
    pub frames: Vec<ListedFrame>,
}

/// A function at an address, and its line there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListedFrame {
    /// The function's name, as in [`Function::name`](crate::Function::name).
    pub function: Vec<u8>,
    /// The file; empty if it is not known.
    pub file: Vec<u8>,
    /// The line from 1: of the instruction or, in an outer frame, of the inlined call. 0 if it is not known.
    pub line: u32,
    /// The column from 1; 0 if it is not known.
    pub column: u32,
}

/// The text of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its content: any bytes.
    pub text: Vec<u8>,
    /// Whether the file was changed after the recording, so that its lines may be others.
    pub is_newer: bool,
}

/// Where views of code get machine code, names of branch targets, and sources from.
pub trait CodeSource {
    /// The machine code of a code; `None` if its bytes are not known.
    fn listing(&mut self, code: CodeId) -> Option<Listing>;

    /// The name of the function at an address that `code` refers to (in the terms of [`Listing::address`]), and the offset of the address in it.
    fn name_at(&mut self, code: CodeId, address: u64) -> Option<(Vec<u8>, u64)>;

    /// The text of a source file, by the path of a function or line.
    fn source(&mut self, file: &[u8]) -> Option<Source>;
}

impl Listing {
    /// The functions and lines at an offset, the innermost first.
    #[must_use]
    pub fn frames_at(&self, offset: u64) -> &[ListedFrame] {
        let behind = self.lines.partition_point(|line| line.offset <= offset);
        let line = behind.checked_sub(1).and_then(|place| self.lines.get(place));
        line.map(|line| line.frames.as_slice()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_apply_up_to_the_next() {
        let frame = |line| ListedFrame { function: vec![], file: vec![], line, column: 0 };
        let at = |offset, line| ListedLine { offset, frames: vec![frame(line)] };
        let gap = ListedLine { offset: 8, frames: vec![] };
        let listing = Listing { lines: vec![at(2, 7), gap, at(9, 8)], ..Listing::default() };
        assert_eq!(listing.frames_at(1), []);
        assert_eq!(listing.frames_at(7), [frame(7)]);
        assert_eq!(listing.frames_at(8), []);
        assert_eq!(listing.frames_at(u64::MAX), [frame(8)]);
    }
}
