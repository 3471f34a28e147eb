//! Classes of characters.

use std::fmt::Write;

use super::pattern::in_class;

/// The characters below 256 of a class: its first 32 bytes have a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map([u8; 32]);

/// The characters of `\w` and `\s` in ASCII.
const WORD: [(u8, u8); 4] = [(b'0', b'9'), (b'A', b'Z'), (b'_', b'_'), (b'a', b'z')];
const SPACE: [(u8, u8); 2] = [(9, 13), (b' ', b' ')];

impl Map {
    /// From units of this many bytes.
    pub fn new(units: &[u32], width: usize) -> Option<Self> {
        let bytes = units.iter().flat_map(|unit| unit.to_le_bytes().into_iter().take(width));
        let bytes: Vec<u8> = bytes.collect();
        bytes.try_into().ok().map(Self)
    }

    /// All others.
    pub fn inverted(self) -> Self {
        Self(self.0.map(|byte| !byte))
    }

    /// Without those of `\w`, `\d` or `\s`, as with `(*UCP)`.
    pub fn without(self, class: char) -> Self {
        let is_in = |byte: u8| match class {
            'w' => byte == b'_' || char::from(byte).is_alphanumeric(),
            'd' => byte.is_ascii_digit(),
            _ => char::from(byte).is_whitespace(),
        };
        let mut map = self;
        for (first, bits) in (0..=u8::MAX).step_by(8).zip(&mut map.0) {
            let bit = |at: u8| u8::from(is_in(first.wrapping_add(at))).wrapping_shl(at.into());
            *bits &= !(0..8).fold(0, |bits, at| bits | bit(at));
        }
        map
    }

    /// As in a class. Where case does not matter, one case of letters says it.
    pub fn text(self, is_utf: bool, is_caseless: bool) -> String {
        let mut set: Vec<bool> = (0..=u8::MAX).map(|character| self.has(character)).collect();
        let mut text = String::new();
        for (name, ranges) in [("\\w", &WORD[..]), ("\\s", &SPACE)] {
            let all = || ranges.iter().flat_map(|(first, last)| *first..=*last).map(usize::from);
            if all().all(|at| set.get(at) == Some(&true)) {
                text.push_str(name);
                for at in all() {
                    if let Some(is_in) = set.get_mut(at) {
                        *is_in = false;
                    }
                }
            }
        }
        if is_caseless {
            for (upper, lower) in (b'A'..=b'Z').zip(b'a'..=b'z') {
                let has_lower = set.get(usize::from(lower)) == Some(&true);
                if let Some(is_in) = set.get_mut(usize::from(upper)) {
                    *is_in = *is_in && !has_lower;
                }
            }
        }
        let mut at = 0_u32;
        for run in set.chunk_by(|a, b| a == b) {
            let next = at.saturating_add(u32::try_from(run.len()).unwrap_or(u32::MAX));
            if run.first() == Some(&true) {
                push_range(&mut text, at, next.saturating_sub(1), is_utf);
            }
            at = next;
        }
        text
    }

    fn has(self, character: u8) -> bool {
        let byte = self.0.get(usize::from(character >> 3)).copied().unwrap_or_default();
        byte & 1_u8.wrapping_shl((character & 7).into()) != 0
    }
}

/// Adds a range of characters, as in a class.
pub fn push_range(text: &mut String, first: u32, last: u32, is_utf: bool) {
    text.push_str(&in_class(first, is_utf));
    match last.saturating_sub(first) {
        0 => {}
        1 => text.push_str(&in_class(last, is_utf)),
        _ => drop(write!(text, "-{}", in_class(last, is_utf))),
    }
}
