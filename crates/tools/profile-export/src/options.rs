//! What is exported, and how functions are spelled.

use profile::{Code, Frame, FunctionId, FunctionKind, Profile, Selection, StringId};

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
    /// What OTLP is to say of each resource, in addition or instead: `service.name`, `deployment.environment.name`.
    pub resource: Vec<(String, String)>,
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
        let tier = if self.tiers { profile.tier_of(frame) } else { StringId::EMPTY };
        let line = if self.lines { frame.line } else { 0 };
        Label { function: frame.function, tier, line, is_inlined: frame.is_inlined() }
    }
}

impl Label {
    /// Its function's name with what else is to be shown: `name [tier]:line`.
    pub(crate) fn name(&self, profile: &Profile) -> String {
        self.with_name(profile, short(profile.function_name(self.function)))
    }

    /// The same for formats that have nothing but the name: with the function's place if others have its name on its line.
    pub(crate) fn distinct_name(&self, profile: &Profile) -> String {
        self.with_name(profile, short(&profile.distinct_name(self.function)))
    }

    fn with_name(&self, profile: &Profile, mut name: String) -> String {
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

/// The code of a frame, if a process compiled it.
pub fn jitted_code<'p>(profile: &'p Profile, frame: &Frame) -> Option<&'p Code> {
    frame.code.map(|code| profile.code(code)).filter(|code| code.process.is_some())
}

/// Whether a frame is in code that was compiled at run time.
pub fn is_jitted(profile: &Profile, frame: &Frame) -> bool {
    match frame.code {
        Some(code) => profile.code(code).process.is_some(),
        None => profile.function(frame.function).kind == FunctionKind::Jitted,
    }
}

/// The command that was recorded: perf's own words before it are left out.
pub fn command(profile: &Profile) -> String {
    let words = &profile.about.command[..];
    let is_perf = words.first().is_some_and(|word| {
        word.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.starts_with(b"perf"))
    });
    let dashes = words.iter().position(|word| word == b"--").filter(|_| is_perf);
    let from = dashes.map_or(0, |dashes| dashes.saturating_add(1));
    String::from_utf8_lossy(&words.get(from..).unwrap_or_default().join(&b' ')).into_owned()
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
    fn the_words_of_perf_are_no_part_of_the_command() {
        let recorded = |words: &[&str]| {
            let mut builder = profile::Builder::new();
            let mut about = profile::About::default();
            about.command = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            builder.about(about);
            command(&builder.finish())
        };
        assert_eq!(
            recorded(&["/usr/bin/perf_6.1", "record", "-g", "--", "app", "--", "x"]),
            "app -- x"
        );
        assert_eq!(recorded(&["perf", "record", "-a"]), "perf record -a");
        assert_eq!(recorded(&["app", "--", "x"]), "app -- x");
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(short(b"gr\xc3\xbcn \xff"), "grün \u{fffd}");
        let long = "ü".repeat(LONGEST);
        assert_eq!(short(long.as_bytes()), format!("{}…", "ü".repeat(LONGEST / 2)));
        let odd = format!("a{long}");
        assert_eq!(short(odd.as_bytes()), format!("a{}…", "ü".repeat(LONGEST / 2 - 1)));
    }
}
