//! Unsafe characters are never shown, and safe ones are shown unchanged.

use std::fmt::Write;

use jitscribe_printable::{
    Escape, Escaped, Part, is_plain, is_printable, is_safe, parts, replaced,
};
use proptest::prelude::*;

/// Characters that must never be shown, defined a second time and independently: by number ranges from the Unicode
/// Character Database (`Bidi_Control`, general categories Cc, Zl and Zp, noncharacters), plus invisible characters.
fn is_dangerous(c: char) -> bool {
    let code = u32::from(c);
    let bidi = [0x61c, 0x200e, 0x200f].contains(&code)
        || (0x202a..=0x202e).contains(&code)
        || (0x2066..=0x2069).contains(&code);
    let hidden =
        [0xad, 0x200b, 0x2060, 0xfeff].contains(&code) || (0xe0000..=0xe007f).contains(&code);
    let noncharacter = (0xfdd0..=0xfdef).contains(&code) || code % 0x1_0000 >= 0xfffe;
    c.is_control() || code == 0x2028 || code == 0x2029 || bidi || hidden || noncharacter
}

#[test]
fn no_dangerous_character_is_printable() {
    let wrong: Vec<char> =
        ('\0'..=char::MAX).filter(|&c| is_dangerous(c) && is_printable(c)).collect();
    assert_eq!(wrong, []);
}

#[test]
fn letters_marks_digits_and_signs_of_all_scripts_are_printable() {
    // Letters and numbers according to Unicode, except the three invisible fillers.
    let fillers = ['\u{115f}', '\u{1160}', '\u{3164}', '\u{ffa0}'];
    let wrong: Vec<char> = ('\0'..=char::MAX)
        .filter(|&c| c.is_alphanumeric() && !is_printable(c) && !fillers.contains(&c))
        .collect();
    assert_eq!(wrong, []);
    for name in [
        "größe",
        "e\u{301}",
        "функция",
        "दिल्ली",
        "می\u{200c}خواهم",
        "数える",
        "葛\u{e0100}",
        "👩\u{200d}🚀",
        "❤\u{fe0f}",
        "a\u{a0}b",
        "全\u{3000}角",
        "λ<'a>::{closure#0}",
        r"App\Main",
        "\u{e0b0}",
        "\u{fffd}",
    ] {
        assert!(is_safe(name.as_bytes()), "{name}");
        assert_eq!(Escaped(name.as_bytes()).to_string(), name);
    }
}

#[test]
fn the_rest_is_spelled_out() {
    for (text, shown) in [
        (&b"a\nb\tc\r"[..], r"a\nb\tc\r"),
        (b"\x1b]0;x\x07\0\x7f", r"\x1b]0;x\x07\x00\x7f"),
        (
            "\u{9b}31m\u{202e}gnp\u{2066}\u{2028}".as_bytes(),
            r"\u{9b}31m\u{202e}gnp\u{2066}\u{2028}",
        ),
        (b"\xff\xfe \x9b31m", r"\xff\xfe \x9b31m"),
        // Cut off within a character, and an overlong encoding.
        (b"\xe2\x80", r"\xe2\x80"),
        (b"\xc0\x9b", r"\xc0\x9b"),
        (b"", ""),
    ] {
        assert_eq!(Escaped(text).to_string(), shown);
    }
}

fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any::<char>().prop_map(|c| c.to_string().into_bytes()),
        any::<u8>().prop_map(|byte| vec![byte]),
        "[a-z\\x00-\\x1f]{0,5}".prop_map(String::into_bytes),
        prop::sample::select(vec!["\u{202e}", "\u{9b}", "\u{200b}", "\u{2066}"])
            .prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn parts_are_the_whole(text in hostile()) {
        let mut whole = Vec::new();
        for part in parts(&text) {
            match part {
                Part::Plain(text) => {
                    prop_assert!(!text.is_empty() && text.chars().all(is_printable));
                    whole.extend(text.bytes());
                }
                Part::Character(c) => {
                    prop_assert!(!is_printable(c));
                    whole.extend(c.encode_utf8(&mut [0; 4]).bytes());
                }
                Part::Byte(&byte) => whole.push(byte),
            }
        }
        prop_assert_eq!(whole, text);
    }

    #[test]
    fn what_is_shown_is_harmless(text in hostile()) {
        let shown = Escaped(&text).to_string();
        prop_assert!(!shown.chars().any(is_dangerous), "{:?}", shown);
        prop_assert_eq!(is_safe(&text), shown.as_bytes() == text);
        prop_assert_eq!(is_plain(&text), text.iter().all(|byte| (b' '..=b'~').contains(byte)));
        let kept: Vec<u8> = replaced(&text, "?").flatten().copied().collect();
        prop_assert!(kept.len() <= text.len());
        prop_assert!(!String::from_utf8_lossy(&kept).chars().any(is_dangerous), "{:?}", kept);
        prop_assert!(!kept.utf8_chunks().any(|chunk| chunk.invalid().iter().any(|byte| *byte < 0xa0)), "{:?}", kept);
        prop_assert!(!is_safe(&text) || kept == text);
        // Escaping twice changes nothing.
        prop_assert_eq!(Escaped(shown.as_bytes()).to_string(), shown);
    }

    #[test]
    fn who_writes_into_an_escape_is_shown_the_same(text in any::<String>()) {
        let mut out = Escape(String::new());
        write!(out, "{text}").expect("a string takes all");
        prop_assert_eq!(out.0, Escaped(text.as_bytes()).to_string());
    }
}
