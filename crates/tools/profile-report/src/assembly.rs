//! The instructions of a code, as the page shows them.

use disassembly::{Assembly, Syntax};
use profile::{CodeId, CodeSource, Listing};

/// The instructions of a code.
#[derive(Debug)]
pub struct Disassembled {
    /// By offset.
    pub lines: Vec<Line>,
    /// Whether there are more.
    pub is_cut: bool,
}

/// An instruction.
#[derive(Debug)]
pub struct Line {
    /// Its offset in the code.
    pub offset: u64,
    /// Its number of bytes.
    pub length: u64,
    /// Whether it is a run of zeros.
    pub is_zeros: bool,
    /// The number of its label; 0 if it has none.
    pub label: u32,
    /// Its text: foreign, as it has names.
    pub text: String,
    /// The offset in the code that it refers to.
    pub target: Option<u64>,
    /// The name of the function that it refers to, or empty.
    pub name: Vec<u8>,
}

impl Disassembled {
    /// `None` if instructions of the code's machine cannot be decoded.
    pub fn of(code: CodeId, listing: &Listing, source: &mut dyn CodeSource) -> Option<Self> {
        let assembly = Assembly::of(code, listing, source, Syntax::Intel)?;
        let line = |line: disassembly::Line| {
            let (target, name) = match line.target {
                Some(target) => (target.inside, target.name),
                None => (None, Vec::new()),
            };
            Line {
                offset: line.offset,
                length: line.length,
                is_zeros: line.is_zeros,
                label: line.label.unwrap_or_default(),
                text: line.text,
                target,
                name,
            }
        };
        Some(Self {
            lines: assembly.lines.into_iter().map(line).collect(),
            is_cut: assembly.is_cut,
        })
    }
}
