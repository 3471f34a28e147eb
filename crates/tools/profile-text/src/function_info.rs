//! What is said of a function.

use printable::floor_char_boundary;
use profile::{FunctionId, FunctionKey, Profile, name_with_place};
use serde::Serialize;

use crate::line::{Line, Style};

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionInfo {
    /// Its name.
    pub name: String,
    /// Its file; empty if it is not known.
    pub file: String,
    /// The line where it begins; 0 if it is not known.
    pub line: u32,
    /// The column where it begins; 0 if it is not known.
    pub column: u32,
    /// What it is: `native`, `kernel`, `jitted`, `interpreted`, `unknown`, `end of stack`.
    pub kind: &'static str,
    /// What it is recognized by in other recordings, in 16 hexadecimal digits: [`FunctionKey::id`].
    pub key: String,
    /// Whether other functions have its name, file and line, so that text has the column, too.
    #[serde(skip)]
    pub shares_line: bool,
}

/// The longest name or path in a line of text, in bytes.
const LONGEST: usize = 200;

impl FunctionInfo {
    /// Of a function of a profile.
    #[must_use]
    pub fn of(profile: &Profile, id: FunctionId) -> Self {
        let function = profile.function(id);
        Self {
            name: lossy(profile.text(function.name)),
            file: lossy(profile.text(function.file)),
            line: function.line,
            column: function.column,
            kind: function.kind.name(),
            key: format!("{:016x}", FunctionKey::of(profile, function).id()),
            shares_line: profile.shares_line(id),
        }
    }

    /// Its name for a line of text.
    #[must_use]
    pub fn short_name(&self) -> String {
        shortened(&self.name)
    }

    /// The same for views that show names alone: with its place if others have the same name on the same line.
    #[must_use]
    pub fn distinct_name(&self) -> String {
        let name = self.short_name();
        if !self.shares_line {
            return name;
        }
        let place = (self.line, self.column);
        lossy(&name_with_place(name.as_bytes(), self.file.as_bytes(), place))
    }

    /// Its file and line for a line of text, with the column if others have the same name on the same line; empty if the file is not known.
    #[must_use]
    pub fn place(&self) -> String {
        let place = place(&self.file, self.line);
        let has_line = !self.file.is_empty() && self.line > 0;
        if self.shares_line && has_line { format!("{place}:{}", self.column) } else { place }
    }

    /// Adds its file and line at the end of a line, if the file is known.
    pub(crate) fn push_place(&self, line: &mut Line) {
        let place = self.place();
        if !place.is_empty() {
            line.push(Style::Faint, format!("  {place}"));
        }
    }

    /// Its name and place: what `annotate` takes for a function whose name others have too.
    #[must_use]
    pub fn full(&self) -> String {
        let place = self.place();
        let name = self.short_name();
        if place.is_empty() { name } else { format!("{name} {place}") }
    }

    /// The same with the column, if it is known: functions of minified scripts share a line.
    #[must_use]
    pub fn exact(&self) -> String {
        let has_line = !self.file.is_empty() && self.line > 0;
        let has_column = has_line && self.column > 0;
        Self { shares_line: has_column, ..self.clone() }.full()
    }

    /// Whether a user means it by a name and a place, with or without the column, or by a name with a place as views show it.
    pub(crate) fn is_called(&self, typed: &str) -> bool {
        typed == self.exact()
            || typed == Self { shares_line: false, ..self.clone() }.full()
            || (self.shares_line && typed == self.distinct_name())
    }
}

/// Text of which invalid bytes are replaced.
pub fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// The beginning of a text that is too long for a line.
pub fn shortened(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let end = floor_char_boundary(text, LONGEST);
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// A file and a line: `src/a.rs:12`. The end of a long path is what tells files apart.
pub fn place(file: &str, line: u32) -> String {
    let mut short = file.to_owned();
    if file.len() > LONGEST {
        let begin = floor_char_boundary(file, file.len().saturating_sub(LONGEST));
        short = format!("…{}", file.get(begin..).unwrap_or_default());
    }
    match (short.is_empty(), line) {
        (true, _) => short,
        (false, 0) => short,
        (false, line) => format!("{short}:{line}"),
    }
}
