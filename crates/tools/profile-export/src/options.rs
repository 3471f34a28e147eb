//! What is exported, and how functions are spelled.

use profile::{Frame, FunctionId, FunctionKind, Profile, Selection, StringId};

/// What is exported. The default is all samples, and the names of functions as they are.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Which samples.
    pub selection: Selection,
    /// Whether tiers are part of the names of functions, in formats that have no other place for them.
    pub tiers: bool,
    /// Whether lines are part of the names of functions, in formats that have no other place for them.
    pub lines: bool,
}

/// How many bytes of a name are written where names are repeated in each stack.
const LONGEST: usize = 4096;

/// What formats that know nothing but names merge frames by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    /// The function.
    pub function: FunctionId,
    /// The tier, if it is to be shown.
    pub tier: StringId,
    /// The line, if it is to be shown; 0 otherwise.
    pub line: u32,
    /// Whether the function was inlined.
    pub is_inlined: bool,
}

impl Options {
    /// The label of a frame.
    pub(crate) fn label(&self, profile: &Profile, frame: &Frame) -> Label {
        let tier = if self.tiers { tier(profile, frame) } else { StringId::EMPTY };
        let line = if self.lines { frame.line } else { 0 };
        Label { function: frame.function, tier, line, is_inlined: frame.is_inlined() }
    }
}

impl Label {
    /// Its function's name with what else is to be shown: `name [tier]:line`.
    pub(crate) fn name(&self, profile: &Profile) -> String {
        let mut name = short(profile.function_name(self.function));
        if !self.tier.is_empty() {
            name.push_str(" [");
            name.push_str(&short(profile.text(self.tier)));
            name.push(']');
        }
        if self.line > 0 {
            name.push(':');
            name.push_str(&self.line.to_string());
        }
        name
    }
}

/// The tier of the code of a frame; empty if there is none.
pub fn tier(profile: &Profile, frame: &Frame) -> StringId {
    frame.code.map_or(StringId::EMPTY, |code| profile.code(code).tier)
}

/// Whether a frame is in code that was compiled at run time.
pub fn is_jitted(profile: &Profile, frame: &Frame) -> bool {
    match frame.code {
        Some(code) => profile.code(code).process.is_some(),
        None => profile.function(frame.function).kind == FunctionKind::Jitted,
    }
}

/// A text that is repeated: it is cut if it is very long.
pub fn short(text: &[u8]) -> String {
    // A replaced byte becomes three.
    let begin = text.get(..LONGEST).unwrap_or(text);
    let mut short = String::from_utf8_lossy(begin).into_owned();
    if begin.len() < text.len() {
        // The cut may be within a character.
        while short.ends_with('\u{fffd}') {
            short.pop();
        }
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(short(b"gr\xc3\xbcn \xff"), "grün \u{fffd}");
        let long = "ü".repeat(LONGEST);
        assert_eq!(short(long.as_bytes()), format!("{}…", "ü".repeat(LONGEST / 2)));
        let odd = format!("a{long}");
        assert_eq!(short(odd.as_bytes()), format!("a{}…", "ü".repeat(LONGEST / 2 - 1)));
    }
}
