//! Text in UTF-16.

use fallible::Vec;

/// The most units of a text, without its NUL.
const MOST: usize = 8000;

/// Bytes that should be UTF-8, as UTF-16 with NUL. What is not UTF-8 becomes U+FFFD, and a NUL too, as it would end the text. Cut between
/// characters.
pub(crate) fn utf16(bytes: &[u8]) -> Vec<u16> {
    let mut units = Vec::with_capacity(bytes.len().min(MOST) + 1);
    let mut put = |character: char| {
        let character = if character == '\0' { char::REPLACEMENT_CHARACTER } else { character };
        let fits = units.len() + character.len_utf16() <= MOST;
        if fits {
            units.extend_from_slice(character.encode_utf16(&mut [0; 2]));
        }
        fits
    };
    let all_fit = bytes.utf8_chunks().all(|chunk| {
        chunk.valid().chars().all(&mut put)
            && (chunk.invalid().is_empty() || put(char::REPLACEMENT_CHARACTER))
    });
    let _ = all_fit;
    units.push(0);
    units
}

/// FNV-1a of 64 bits: a number for a path that is the same in each process.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::{MOST, hash, utf16};

    fn text(bytes: &[u8]) -> String {
        let units = utf16(bytes);
        let (last, units) = units.split_last().unwrap();
        assert_eq!(*last, 0);
        assert!(units.len() <= MOST && !units.contains(&0));
        String::from_utf16(units).expect("whole characters")
    }

    #[test]
    fn text_is_utf_16_with_one_nul() {
        assert_eq!(text(b""), "");
        assert_eq!(text("fünf 🦀".as_bytes()), "fünf 🦀");
        assert_eq!(text(b"a\xff\0b"), "a\u{fffd}\u{fffd}b");
        // A character of two units at the limit.
        let long = format!("{}🦀more", "x".repeat(MOST - 1));
        assert_eq!(text(long.as_bytes()), "x".repeat(MOST - 1));
        let long = format!("{}🦀more", "x".repeat(MOST - 2));
        assert_eq!(text(long.as_bytes()), format!("{}🦀", "x".repeat(MOST - 2)));
    }

    /// Of the function's authors, "FNV test suite".
    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
