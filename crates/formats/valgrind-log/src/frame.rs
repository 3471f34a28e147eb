//! Valgrind's description of an address: `0x4A40044: ???`.

use crate::Frame;

/// An address without a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The address.
    pub address: u64,
    /// How many bytes at the beginning of the text are the address: `0x4A40044`.
    pub length: usize,
}

/// Parses a text that consists of an address without a name, in an object file or not.
pub fn unknown(text: &[u8]) -> Option<Unknown> {
    let (address, length) = address(text)?;
    let rest = text.get(length..)?.strip_prefix(b": ???")?;
    let in_object = rest.starts_with(b" (in ") && rest.ends_with(b")");
    (rest.is_empty() || in_object).then_some(Unknown { address, length })
}

/// The address at the beginning of a text, and its length in bytes.
pub fn address(text: &[u8]) -> Option<(u64, usize)> {
    let digits = text.strip_prefix(b"0x")?;
    let mut count: usize = 0;
    let mut address: u64 = 0;
    for &byte in digits {
        let Some(digit) = char::from(byte).to_digit(16) else { break };
        address = address.checked_mul(16)?.checked_add(digit.into())?;
        count = count.checked_add(1)?;
    }
    (count > 0).then_some((address, count.checked_add(2)?))
}

/// Parses a text that consists of a decimal number.
pub fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'))?.parse().ok()
}

/// Appends what valgrind would print behind the address of this frame: `fib (fib.js:10)`.
pub fn describe(frame: &Frame, out: &mut Vec<u8>) {
    if frame.function.is_empty() {
        out.extend(b"???");
    } else {
        push_plain(&frame.function, out);
    }
    if !frame.file.is_empty() && frame.line != 0 {
        out.extend(b" (");
        push_plain(&frame.file, out);
        out.push(b':');
        out.extend(frame.line.to_string().bytes());
        out.push(b')');
    } else if !frame.object.is_empty() {
        out.extend(b" (in ");
        push_plain(&frame.object, out);
        out.push(b')');
    }
}

/// Appends a name. A name from a dump must not end the line, or send commands to the terminal.
fn push_plain(name: &[u8], out: &mut Vec<u8>) {
    printable::replaced(name, "?").for_each(|piece| out.extend_from_slice(piece));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_a_name_are_known_by_their_question_marks() {
        let at = |address| Some(Unknown { address, length: 9 });
        assert_eq!(unknown(b"0x4A40044: ???"), at(0x4a40044));
        assert_eq!(unknown(b"0x4A40044: ??? (in /memfd:a (deleted))"), at(0x4a40044));
        for named in [
            &b"0x4A40044: ??a"[..],
            b"0x4A40044: ??? (a.c:1)",
            b"0x4A40044: main (in /bin/a)",
            b"0x: ???",
            b"0x11111111111111111: ???",
            b"4A40044: ???",
            b"0x4A40044:",
            b"",
        ] {
            assert_eq!(unknown(named), None, "{}", named.escape_ascii());
        }
    }

    #[test]
    fn frames_are_described_as_valgrind_does() {
        let description = |function: &[u8], file: &[u8], line, object: &[u8]| {
            let mut out = Vec::new();
            let (function, file, object) = (function.to_vec(), file.to_vec(), object.to_vec());
            describe(&Frame { function, file, line, object, ..Frame::default() }, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(description(b"f", b"a.c", 3, b"/lib"), "f (a.c:3)");
        assert_eq!(description(b"f", b"a.c", 0, b"/lib"), "f (in /lib)");
        assert_eq!(description(b"f\n\x1b", b"", 3, b""), "f??");
        assert_eq!(description(b"", b"a\n", 3, b""), "??? (a?:3)");
        assert_eq!(description("\u{9b}m \u{202e}größe".as_bytes(), b"", 3, b""), "?m ?größe");
    }
}
