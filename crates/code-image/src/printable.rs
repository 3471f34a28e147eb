//! Foreign strings in a form that object files and tools can hold.

use std::borrow::Cow;

/// Bytes that end a string, or that tools would put into lines of text.
fn is_control(byte: u8) -> bool {
    byte < 0x20 || byte == 0x7f
}

/// Appends `text` with control characters, NUL among them, as `\xNN`.
pub(crate) fn push_printable(text: &[u8], out: &mut Vec<u8>) {
    if !text.iter().any(|&byte| is_control(byte)) {
        out.extend_from_slice(text);
        return;
    }
    for &byte in text {
        if is_control(byte) {
            out.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
        } else {
            out.push(byte);
        }
    }
}

/// `text` in ASCII, other characters as C spells them in identifiers: `\u00f6`.
///
/// For what addr2line prints: perf reads its answers as signed characters (tools/lib/api/io.h in
/// 6.12), takes the first one outside of ASCII for the end, and trusts no further answer about that
/// file. A path must stay what it is, a function's name need not: the symbol has the true one.
pub(crate) fn ascii(text: &[u8]) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len() + 16);
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            match u32::from(character) {
                code @ ..0x80 => out.push(code as u8),
                code @ ..0x1_0000 => out.extend_from_slice(format!("\\u{code:04x}").as_bytes()),
                code => out.extend_from_slice(format!("\\U{code:08x}").as_bytes()),
            }
        }
        for byte in chunk.invalid() {
            out.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
        }
    }
    Cow::Owned(out)
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
        let mut out = b"<".to_vec();
        push_printable(b"a\tb\0c\n\x7f\\\xc3\xa9 ", &mut out);
        assert_eq!(out, b"<a\\x09b\\x00c\\x0a\\x7f\\\xc3\xa9 ");
    }
}
