//! Foreign strings in a form that object files and tools can handle.

use std::ops::Deref;

use fallible::Vec;

use ::printable::{Part, is_safe, parts};

/// Appends `text`. What is not [printable](::printable::is_printable) is escaped: `\xNN` for ASCII control
/// characters, including NUL; `\u202e` or `\U000e0001` for others. A byte that is not UTF-8 is kept, unless it would
/// be a control character by itself (0x80 to 0x9f): other encodings have their letters above these.
pub(crate) fn push_printable(text: &[u8], out: &mut Vec<u8>) {
    if is_safe(text) {
        out.extend_from_slice(text);
        return;
    }
    for part in parts(text) {
        let spelled = match part {
            Part::Plain(text) => {
                out.extend_from_slice(text.as_bytes());
                continue;
            }
            Part::Byte(&byte) if byte >= 0xa0 => {
                out.push(byte);
                continue;
            }
            Part::Byte(byte) => fallible::text!("\\x{byte:02x}"),
            Part::Character(c) => match u32::from(c) {
                code @ ..0x80 => fallible::text!("\\x{code:02x}"),
                code @ ..0x1_0000 => fallible::text!("\\u{code:04x}"),
                code => fallible::text!("\\U{code:08x}"),
            },
        };
        out.extend_from_slice(spelled.as_bytes());
    }
}

/// The result of [`ascii`].
#[derive(Debug)]
pub(crate) enum Ascii<'a> {
    Same(&'a [u8]),
    Spelled(Vec<u8>),
}

impl Deref for Ascii<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Same(text) => text,
            Self::Spelled(text) => text,
        }
    }
}

/// `text` in ASCII, with other characters in the form that C uses in identifiers: `\u00f6`.
///
/// This is for text that addr2line prints. perf reads addr2line's output as signed characters (tools/lib/api/io.h in
/// 6.12), takes the first non-ASCII character for the end, and trusts no further output about that file. A path must
/// be kept as it is. A function's name can be changed: the symbol has the true one.
pub(crate) fn ascii(text: &[u8]) -> Ascii<'_> {
    if text.is_ascii() {
        return Ascii::Same(text);
    }
    let mut out = Vec::with_capacity(text.len() + 16);
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            match u32::from(character) {
                code @ ..0x80 => out.push(code as u8),
                code @ ..0x1_0000 => {
                    out.extend_from_slice(fallible::text!("\\u{code:04x}").as_bytes())
                }
                code => out.extend_from_slice(fallible::text!("\\U{code:08x}").as_bytes()),
            }
        }
        for byte in chunk.invalid() {
            out.extend_from_slice(fallible::text!("\\x{byte:02x}").as_bytes());
        }
    }
    Ascii::Spelled(out)
}

#[cfg(test)]
mod tests {
    use super::{ascii, push_printable};

    #[test]
    fn ascii_spells_what_it_lacks() {
        assert_eq!(*ascii(b"plain <x>"), *b"plain <x>");
        assert_eq!(*ascii("größe 数 🦀".as_bytes()), *br"gr\u00f6\u00dfe \u6570 \U0001f980");
        assert_eq!(*ascii(b"a\xffb"), *br"a\xffb");
    }

    #[test]
    fn control_characters_are_spelled_out_and_nothing_else_changes() {
        let mut out = fallible::vec![b'<'];
        push_printable(b"a\tb\0c\n\x7f\\\xc3\xa9 ", &mut out);
        assert_eq!(out, b"<a\\x09b\\x00c\\x0a\\x7f\\\xc3\xa9 ");
    }

    #[test]
    fn what_commands_terminals_beyond_ascii_is_spelled_out_too() {
        for (text, spelled) in [
            ("a\u{9b}31m".as_bytes(), &br"a\u009b31m"[..]),
            ("\u{202e}gnp\u{e0001}".as_bytes(), br"\u202egnp\U000e0001"),
            (b"\x9b31m \xe9t\xe9", b"\\x9b31m \xe9t\xe9"),
            ("die Größe 数 🦀".as_bytes(), "die Größe 数 🦀".as_bytes()),
        ] {
            let mut out = fallible::Vec::new();
            push_printable(text, &mut out);
            assert_eq!(&out[..], spelled, "{}", out.escape_ascii());
        }
    }
}
