//! The alphabet of base64, in mappings and in `data:` URLs.

/// The value of a character in the standard alphabet.
pub fn value(character: u8) -> Option<u8> {
    match character {
        b'A'..=b'Z' => Some(character.wrapping_sub(b'A')),
        b'a'..=b'z' => Some(character.wrapping_sub(b'a').wrapping_add(26)),
        b'0'..=b'9' => Some(character.wrapping_sub(b'0').wrapping_add(52)),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// Decodes text in base64, up to its padding. `None` if there is any other character.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let end = text.iter().rposition(|&byte| byte != b'=').map_or(0, |last| last.saturating_add(1));
    let text = text.get(..end)?;
    let mut bytes = Vec::with_capacity(text.len().saturating_mul(3) / 4);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for &character in text {
        // The URL-safe alphabet differs in two characters.
        let character = match character {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        };
        bits = (bits << 6 | u32::from(value(character)?)) & 0xffff;
        count = count.wrapping_add(6);
        if count >= 8 {
            count = count.wrapping_sub(8);
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn text_is_decoded_with_and_without_padding() {
        for (encoded, decoded) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zg", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("Zm9vYmE=", b"fooba"),
            ("-_8=", b"\xfb\xff"),
            ("+/8=", b"\xfb\xff"),
        ] {
            assert_eq!(decode(encoded.as_bytes()).as_deref(), Some(decoded), "{encoded}");
        }
        assert_eq!(decode(b"Zm 9v"), None);
        assert_eq!(decode(b"Z=g"), None);
    }
}
