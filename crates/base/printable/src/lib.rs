//! Decides which characters of foreign text may be shown, and how the others are written.
//!
//! Function names, paths and process names are chosen by the author of the program that is examined. Printed as they
//! are, they can send commands to a terminal (escape sequences), end a line of a file early, or appear in another
//! order than they are read in (bidirectional overrides: "Trojan Source"). All code in this project that prints such
//! text, or writes it into a file of lines, uses this crate to find the characters that are harmless. Each writer
//! decides how to replace the others; [`Escaped`] is the form for human readers.
//!
//! ```
//! use jitscribe_printable::Escaped;
//!
//! let name = b"fib\x1b]0;owned\x07\xff";
//! assert_eq!(Escaped(name).to_string(), r"fib\x1b]0;owned\x07\xff");
//! ```

#![no_std]
#![forbid(unsafe_code)]

#[cfg(all(feature = "std", unix))]
extern crate std;

mod cut;
#[cfg(all(feature = "std", unix))]
mod foreign;
mod hexadecimal;
#[cfg(all(feature = "std", unix))]
mod shell;

use core::fmt::{self, Display, Write};
use core::str::Utf8Chunks;

pub use cut::beginning;
#[cfg(all(feature = "std", unix))]
pub use foreign::{Foreign, name, path, said, short, whole};
pub use hexadecimal::Hexadecimal;
#[cfg(all(feature = "std", unix))]
pub use shell::{shell_path, shell_word};

/// Whether a terminal shows this character at its place and does nothing else.
///
/// These are not printable:
///
/// - control characters: C0, DEL and C1 (U+0080 to U+009F), including newline and tab;
/// - the line separator and the paragraph separator;
/// - the controls of bidirectional text, which reorder the text around them;
/// - invisible characters that have no use in a name: U+00AD, U+200B, U+2060 to U+206F, U+FEFF, tags…;
/// - noncharacters (U+FFFE, U+10FFFF…).
///
/// All others are printable. This includes characters that need a neighbour (combining marks, U+200C and U+200D
/// between letters, variation selectors), spaces of all widths, private-use characters, and characters that a later
/// version of Unicode may assign. So the answer is the same for every version of Unicode, and names in ordinary
/// scripts are unchanged.
#[must_use]
pub const fn is_printable(c: char) -> bool {
    !matches!(c,
        // C0, DEL and C1.
        '\0'..='\x1f' | '\x7f'..='\u{9f}'
        // Soft hyphen, Arabic letter mark, Hangul fillers, Mongolian vowel separator.
        | '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{180e}'
        // Zero-width space; the direction marks. (Between the two are the joiners.)
        | '\u{200b}' | '\u{200e}' | '\u{200f}'
        // Line and paragraph separator; direction embeddings and overrides.
        | '\u{2028}'..='\u{202e}'
        // Word joiner, invisible operators, isolates, deprecated controls.
        | '\u{2060}'..='\u{206f}'
        // Byte-order mark; unassigned default-ignorable characters; interlinear annotation.
        | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
        // Noncharacters of the first plane.
        | '\u{fdd0}'..='\u{fdef}' | '\u{fffe}' | '\u{ffff}'
        // Shorthand and musical format controls.
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        // Tags, and the default-ignorable characters around the variation selectors (U+E0100 to U+E01EF).
        | '\u{e0000}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}'
    ) && (c as u32) & 0xfffe != 0xfffe
}

/// The last boundary between two characters of `text` that is not behind the byte `index`: where a text that is too long can be cut.
///
/// `str::floor_char_boundary` of the standard library, which has it since Rust 1.91.
#[must_use]
pub fn floor_char_boundary(text: &str, index: usize) -> usize {
    let mut at = index.min(text.len());
    while !text.is_char_boundary(at) {
        at = at.saturating_sub(1);
    }
    at
}

/// Whether a text is printable ASCII throughout, as nearly all names are. Such text needs no replacement.
#[must_use]
pub fn is_plain(text: &[u8]) -> bool {
    // No early exit, so that the compiler can process many bytes at a time.
    text.iter().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'))
}

/// Whether a text needs no replacement: it is UTF-8, and every character [`is_printable`].
#[must_use]
pub fn is_safe(text: &[u8]) -> bool {
    is_plain(text) || core::str::from_utf8(text).is_ok_and(|text| text.chars().all(is_printable))
}

/// A part of a foreign text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Printable characters.
    Plain(&'a str),
    /// A character that is not printable.
    Character(char),
    /// A byte that is not part of a character: the text is not UTF-8.
    Byte(&'a u8),
}

/// Splits a text into parts. Nothing is lost: the parts, in order, make up the text.
#[must_use]
pub fn parts(text: &[u8]) -> Parts<'_> {
    Parts { chunks: text.utf8_chunks(), valid: "", invalid: &[] }
}

/// The parts of a text. Returned by [`parts`].
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    chunks: Utf8Chunks<'a>,
    valid: &'a str,
    invalid: &'a [u8],
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        loop {
            if let Some(first) = self.valid.chars().next() {
                let plain = self.valid.find(|c| !is_printable(c)).unwrap_or(self.valid.len());
                let (part, length) = match self.valid.get(..plain) {
                    Some(text) if plain > 0 => (Part::Plain(text), plain),
                    _ => (Part::Character(first), first.len_utf8()),
                };
                self.valid = self.valid.get(length..).unwrap_or_default();
                return Some(part);
            }
            if let Some((first, rest)) = self.invalid.split_first() {
                self.invalid = rest;
                return Some(Part::Byte(first));
            }
            let chunk = self.chunks.next()?;
            (self.valid, self.invalid) = (chunk.valid(), chunk.invalid());
        }
    }
}

/// Prepares a text for a line of a file that other tools read and print: `with` replaces each character that is not
/// printable.
///
/// A byte that is not UTF-8 is kept, unless it would be a control character by itself (0x80 to 0x9f): other encodings
/// have their letters above these. If `with` is one byte long, the pieces together are no longer than the text. Text
/// that [`is_plain`] is one piece.
pub fn replaced<'a>(text: &'a [u8], with: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let (plain, rest) = if is_plain(text) { (text, &[][..]) } else { (&[][..], text) };
    let rest = parts(rest).map(move |part| match part {
        Part::Plain(text) => text.as_bytes(),
        Part::Byte(byte) if *byte >= 0xa0 => core::slice::from_ref(byte),
        Part::Byte(_) | Part::Character(_) => with.as_bytes(),
    });
    Some(plain).filter(|plain| !plain.is_empty()).into_iter().chain(rest)
}

/// Shows foreign text to people. What is not printable, or not UTF-8, is escaped as in Rust literals: `\n`, `\t`,
/// `\x1b`, `\u{202e}`, `\xff`.
///
/// A backslash in the text is not escaped, so that paths and names that contain one (`App\Main`) stay readable. The
/// output is therefore ambiguous: an escape may have been in the text itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escaped<'a>(pub &'a [u8]);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in parts(self.0) {
            part.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Plain(text) => f.write_str(text),
            Self::Character('\n') => f.write_str("\\n"),
            Self::Character('\r') => f.write_str("\\r"),
            Self::Character('\t') => f.write_str("\\t"),
            Self::Character(c) if c.is_ascii() => write!(f, "\\x{:02x}", u32::from(c)),
            Self::Character(c) => write!(f, "\\u{{{:x}}}", u32::from(c)),
            Self::Byte(byte) => write!(f, "\\x{byte:02x}"),
        }
    }
}

/// A text writer that passes on only what is printable and escapes the rest as [`Escaped`] does. Whatever is
/// formatted into it is harmless in the output.
#[derive(Debug)]
pub struct Escape<W>(pub W);

impl<W: Write> Write for Escape<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if is_plain(text.as_bytes()) {
            return self.0.write_str(text);
        }
        write!(self.0, "{}", Escaped(text.as_bytes()))
    }
}
