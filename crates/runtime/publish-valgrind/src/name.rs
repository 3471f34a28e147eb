//! Names that tools can print.

use fallible::Vec;

/// Longer names are cut: tools store names in buffers.
const LONGEST: usize = 2000;
const CUT: &[u8] = b"...";

/// Appends a name and a NUL. Control characters would end the line of a profile, or control a terminal.
pub(crate) fn push(out: &mut Vec<u8>, name: &[u8]) {
    let name = if name.is_empty() { b"<unnamed>" } else { name };
    let kept = if name.len() > LONGEST { cut(name, LONGEST - CUT.len()) } else { name };
    printable::replaced(kept, "?").for_each(|piece| out.extend_from_slice(piece));
    if kept.len() < name.len() {
        out.extend_from_slice(CUT);
    }
    out.push(0);
}

/// The first `length` bytes, or slightly fewer, to avoid cutting a UTF-8 character.
fn cut(name: &[u8], length: usize) -> &[u8] {
    let within = |at: &usize| name.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    let length = (length.saturating_sub(3)..=length).rev().find(within).unwrap_or(length);
    &name[..length.min(name.len())]
}

#[cfg(test)]
mod tests {
    use super::push;

    fn shown(name: &[u8]) -> Vec<u8> {
        let mut out = fallible::Vec::new();
        push(&mut out, name);
        assert_eq!(out.pop(), Some(0));
        out.into_inner()
    }

    #[test]
    fn names_fit_a_line() {
        assert_eq!(shown(b"fib"), b"fib");
        assert_eq!(shown("größe(λ)".as_bytes()), "größe(λ)".as_bytes());
        assert_eq!(shown(b"a\nb\0c\x7f"), b"a?b?c?");
        assert_eq!(shown("\u{9b}31m\u{202e}gnp".as_bytes()), b"?31m?gnp");
        assert_eq!(shown(b""), b"<unnamed>");
        let long = shown("ö".repeat(2000).as_bytes());
        assert!(long.len() <= 2000 && long.ends_with(b"...") && String::from_utf8(long).is_ok());
    }
}
