//! The events of the log.

use crate::Cause;
use crate::escape::unescape;
use crate::fields::{Fields, address, decimal};
use crate::source_info::SourceInfo;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A code was created.
    Code(CodeCreation<'a>),
    /// The source positions of a code that was created before.
    SourceInfo(SourceInfo<'a>),
    /// The source of a script.
    Script(ScriptSource<'a>),
    /// A code was moved.
    CodeMove(Move),
    /// A function (a `SharedFunctionInfo`) was moved.
    FunctionMove(Move),
}

/// A code that was created: machine code, or bytecode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeCreation<'a> {
    /// What it is: `JS`, `Eval`, `Script`, `Builtin`, `RegExp`, …
    pub tag: &'a [u8],
    /// The number of its kind in V8's list of kinds, which differs among versions.
    pub kind: u32,
    /// When, in microseconds since the log was opened.
    pub time_us: u64,
    /// The address of its first byte.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Its name, escaped.
    pub escaped_name: &'a [u8],
    /// The address of the function's `SharedFunctionInfo`, which identifies it. Code that is of no function has none.
    pub function: Option<u64>,
    /// The mark of its tier: `~` interpreted, `^` baseline, `+` Maglev, `*` TurboFan; may be empty.
    pub mark: &'a [u8],
}

impl CodeCreation<'_> {
    /// Its name. For JavaScript: `NAME FILE:LINE:COLUMN`, with nothing before the blank in an anonymous function.
    #[must_use]
    pub fn name(&self) -> String {
        unescape(self.escaped_name)
    }
}

/// The source of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptSource<'a> {
    /// The script's number in its isolate.
    pub script: u64,
    /// Its URL or path, escaped.
    pub escaped_url: &'a [u8],
    /// Its text, escaped.
    pub escaped_text: &'a [u8],
}

impl ScriptSource<'_> {
    /// Its URL or path; may be empty.
    #[must_use]
    pub fn url(&self) -> String {
        unescape(self.escaped_url)
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> String {
        unescape(self.escaped_text)
    }
}

/// What was moved from where to where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Its old address.
    pub from: u64,
    /// Its new address.
    pub to: u64,
}

impl<'a> Event<'a> {
    /// Parses a line without its newline. `None` if it is another event.
    ///
    /// # Errors
    /// If a field is missing or not valid.
    pub fn parse(line: &'a [u8]) -> Result<Option<Self>, Cause> {
        let mut fields = Fields::new(line);
        Ok(Some(match fields.next() {
            Some(b"code-creation") => Self::Code(code_creation(fields)?),
            Some(b"code-source-info") => Self::SourceInfo(SourceInfo::parse(fields)?),
            Some(b"script-source") => Self::Script(ScriptSource {
                script: fields.decimal("number of the script")?,
                escaped_url: fields.text("URL")?,
                escaped_text: fields.text("text")?,
            }),
            Some(b"code-move") => Self::CodeMove(moved(fields)?),
            Some(b"sfi-move") => Self::FunctionMove(moved(fields)?),
            _ => return Ok(None),
        }))
    }
}

fn code_creation(mut fields: Fields<'_>) -> Result<CodeCreation<'_>, Cause> {
    let tag = fields.text("tag")?;
    let kind = fields.decimal("kind")?;
    Ok(CodeCreation {
        tag,
        kind: u32::try_from(kind).map_err(|_| Cause::Field { field: "kind" })?,
        time_us: fields.decimal("time")?,
        address: fields.address("address")?,
        size: fields.decimal("size")?,
        escaped_name: fields.text("name")?,
        function: fields.next().and_then(address),
        mark: fields.next().unwrap_or_default(),
    })
}

fn moved(mut fields: Fields<'_>) -> Result<Move, Cause> {
    Ok(Move { from: fields.address("old address")?, to: fields.address("new address")? })
}

/// Splits the name of a JavaScript function in the script `url` into the name alone, the line and the column where the
/// function begins: `leaf /a.js:2:14` → `leaf`, 2, 14. `None` if it has another form.
#[must_use]
pub fn split_name<'n>(name: &'n str, url: &str) -> Option<(&'n str, u32, u32)> {
    let (rest, column) = name.rsplit_once(':')?;
    let (rest, line) = rest.rsplit_once(':')?;
    let name = rest.strip_suffix(url)?;
    let name = name.strip_suffix(' ').or_else(|| name.is_empty().then_some(name))?;
    let number = |digits: &str| u32::try_from(decimal(digits.as_bytes())?).ok();
    Some((name, number(line)?, number(column)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_at_the_scripts_url() {
        assert_eq!(split_name("leaf /a b.js:2:14", "/a b.js"), Some(("leaf", 2, 14)));
        assert_eq!(split_name("get x node:url:3:4", "node:url"), Some(("get x", 3, 4)));
        assert_eq!(split_name(" /a.js:1:1", "/a.js"), Some(("", 1, 1)));
        assert_eq!(split_name("f :1:2", ""), Some(("f", 1, 2)));
        for other in ["leaf", "leaf /b.js:2:14", "x/a.js:1:1", "leaf /a.js:2:x", "leaf /a.js:2:+1"]
        {
            assert_eq!(split_name(other, "/a.js"), None, "{other}");
        }
    }
}
