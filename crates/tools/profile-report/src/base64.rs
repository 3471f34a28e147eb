//! Base64, which needs no escapes in HTML.

use std::io::{self, Write};

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes bytes as base64.
pub fn write(bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    // A part at a time, each without padding but the last.
    for part in bytes.chunks(3 << 14) {
        let mut text = Vec::with_capacity(4 << 14);
        for three in part.chunks(3) {
            let at = |place: usize| three.get(place).copied().unwrap_or_default();
            let number = u32::from_be_bytes([0, at(0), at(1), at(2)]);
            for (place, shift) in [18, 12, 6, 0].into_iter().enumerate() {
                let digit = DIGITS.get((number >> shift & 63) as usize).copied();
                text.push(digit.filter(|_| place <= three.len()).unwrap_or(b'='));
            }
        }
        out.write_all(&text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 4648.
    #[test]
    fn lengths_that_are_no_multiple_of_three_are_padded() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut written = Vec::new();
            write(bytes.as_bytes(), &mut written).expect("written");
            assert_eq!(written, text.as_bytes());
        }
        let mut written = Vec::new();
        write(&[0xff; (3 << 14) + 1], &mut written).expect("written");
        assert_eq!(written.len(), (4 << 14) + 4);
        assert!(written.ends_with(b"///w=="));
    }
}
