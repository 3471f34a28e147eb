//! What is answered of a code: its name, lines, inlined calls.

use std::hash::{DefaultHasher, Hash, Hasher};

use jitdump::extension::Kind;
use jitscribe_inject::{CodeLines, decoded_lines};

use crate::images::CodeImage;
use crate::only_code::only_code;
use crate::protocol::Frame;

/// The most bytes of a function's or a file's name in an answer. The rest is cut off.
const LONGEST_NAME: usize = 4096;

/// What is known of a code beside its place.
#[derive(Debug)]
pub(crate) struct Body {
    lines: CodeLines,
    pub(crate) size: u64,
    pub(crate) kind: &'static str,
    pub(crate) tier: Option<String>,
    /// How many codes of this name the process has loaded up to this one.
    pub(crate) generation: u64,
    pub(crate) image: CodeImage,
    /// About how many bytes this takes.
    pub(crate) cost: usize,
}

impl Body {
    /// Reads the code of a dump that has one.
    pub(crate) fn read(dump: &[u8], generation: u64, image: CodeImage) -> Option<Self> {
        let code = only_code(dump)?;
        let lines = decoded_lines(code.name, code.address, Some(&code));
        // A line, a call or a range takes up to 48 bytes; a name, about as much as in the dump.
        let cost =
            size_of::<Self>() + 48 * lines.len() + dump.len().saturating_sub(code.bytes.len());
        Some(Self {
            lines,
            size: code.size,
            kind: code.kind().name(),
            tier: code.tier().map(|tier| String::from_utf8_lossy(tier).into_owned()),
            generation,
            image,
            cost,
        })
    }

    /// A code of which only the name is known.
    pub(crate) fn named(name: &[u8], address: u64, size: u64, generation: u64) -> Self {
        let lines = decoded_lines(name, address, None);
        let cost = size_of::<Self>() + 48 * lines.len() + name.len();
        Self {
            lines,
            size,
            kind: Kind::default().name(),
            tier: None,
            generation,
            image: CodeImage::None,
            cost,
        }
    }

    /// The name of the code as its runtime wrote it.
    pub(crate) fn symbol(&self) -> String {
        shortened(self.lines.name())
    }

    /// The functions at an address, the innermost first.
    pub(crate) fn frames(&self, address: u64) -> Vec<Frame> {
        let frames = self.lines.at(address).map(|frame| Frame {
            function: shortened(frame.function),
            file: shortened(frame.file),
            line: frame.line,
            inlined: frame.inlined,
        });
        frames.collect()
    }
}

/// A number by which codes of one name are recognized. A process that makes names collide misleads only those who ask about it.
pub(crate) fn name_hash(dump: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    only_code(dump).map_or(&b""[..], |code| code.name).hash(&mut hasher);
    hasher.finish()
}

/// The text of a name, cut where it is too long.
fn shortened(name: &[u8]) -> String {
    let kept = printable::beginning(name, LONGEST_NAME);
    let mut text = String::from_utf8_lossy(kept).into_owned();
    if kept.len() < name.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_between_characters() {
        assert_eq!(shortened(b"f"), "f");
        assert_eq!(shortened(b"\xff"), "\u{fffd}");
        let long = "ä".repeat(LONGEST_NAME);
        assert_eq!(shortened(long.as_bytes()), format!("{}…", "ä".repeat(LONGEST_NAME / 2)));
        let odd = format!("x{long}");
        assert_eq!(shortened(odd.as_bytes()), format!("x{}…", "ä".repeat(LONGEST_NAME / 2 - 1)));
        let binary = vec![0xff; LONGEST_NAME + 1];
        assert_eq!(shortened(&binary), format!("{}…", "\u{fffd}".repeat(LONGEST_NAME)));
    }
}
