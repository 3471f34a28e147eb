//! Text as V8 escapes it: one UTF-16 code unit is a printable ASCII character, `\\`, `\n`, `\xNN` or `\uNNNN`.

use crate::fields::number;

/// The UTF-16 code units of an escaped text. What V8 does not write is taken as it is: a byte is a unit.
#[derive(Clone, Debug)]
pub struct Units<'a> {
    rest: &'a [u8],
}

impl<'a> Units<'a> {
    /// The units of `escaped`.
    #[must_use]
    pub fn new(escaped: &'a [u8]) -> Self {
        Self { rest: escaped }
    }

    /// An escape at the beginning of `rest`, which is behind a backslash: the unit, and the length of the escape.
    fn escape(rest: &[u8]) -> Option<(u16, usize)> {
        let hex = |range: std::ops::Range<usize>| {
            let end = range.end;
            let unit = u16::try_from(number(rest.get(range)?, 16)?).ok()?;
            Some((unit, end))
        };
        match rest.first()? {
            b'\\' => Some((u16::from(b'\\'), 1)),
            b'n' => Some((u16::from(b'\n'), 1)),
            b'x' => hex(1..3),
            b'u' => hex(1..5),
            _ => None,
        }
    }
}

impl Iterator for Units<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        if *first == b'\\'
            && let Some((unit, len)) = Self::escape(rest)
        {
            self.rest = rest.get(len..).unwrap_or_default();
            return Some(unit);
        }
        Some(u16::from(*first))
    }
}

/// An escaped text as UTF-8, with U+FFFD for surrogates without a partner.
#[must_use]
pub fn unescape(escaped: &[u8]) -> String {
    let decoded = char::decode_utf16(Units::new(escaped));
    decoded.map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_v8_are_read_and_others_kept() {
        assert_eq!(unescape(br"a\x2C\nb\\x\u00e9\ud83d\ude00"), "a,\nb\\x\u{e9}\u{1f600}");
        assert_eq!(unescape(br"\q\x2\u12g4\"), r"\q\x2\u12g4\");
        assert_eq!(unescape(br"\ud83d!"), "\u{fffd}!");
        assert_eq!(unescape(br"\x+1"), r"\x+1");
    }
}
