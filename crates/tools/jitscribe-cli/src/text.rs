//! Foreign text and standard output.
//!
//! Names of functions and processes, paths, and quotations from files come from the author of the inspected program. None of
//! them may control the user's terminal. All output therefore goes through [`Out`] for standard output or [`crate::note`] for
//! standard error; this crate's lints (`clippy.toml`) reject anything else. Both make every line printable
//! ([`printable::is_printable`]).
//!
//! [`printable::Foreign`] is for text known to be foreign: it escapes the text the same way and also bounds its length. [`shell_word`]
//! is for words that the user may paste into a shell.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the one place that writes to standard output"
)]

use std::fmt::{self, Display, Write as _};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use printable::{Escape, Part, is_plain, parts};
pub use printable::{name, path, said, shell_path, shell_word, short, whole};
pub use profile_text::percent_in_text as percent;
use profile_text::{Line, Style};
use serde::{Serialize, Serializer};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

use crate::pager::{self, Pager};
use crate::{Error, Result, console};

/// Whether standard output is a terminal.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Fails if standard output is a terminal, which cannot show a file's content. `what` is the file.
pub fn refuse_terminal(what: &str) -> Result<()> {
    match is_terminal() {
        true => Err(Error::Refused(format!(
            "standard output is a terminal; write the {what} to a file with -o FILE"
        ))),
        false => Ok(()),
    }
}

/// The file that the user named; `None` for `-`, which is standard input or output.
pub fn named_file(path: &Path) -> Option<&Path> {
    Some(path).filter(|path| path.as_os_str() != "-")
}

/// The terminal, for a program that draws on it. All text that is drawn must be printable.
pub fn terminal() -> impl Write {
    io::stdout()
}

/// Standard output.
///
/// [`line`](Self::line) and [`json`](Self::json) are safe for every terminal and print the same text everywhere. The [`Write`]
/// implementation is for file content: it passes bytes through unchanged, except on a terminal, where it escapes them as text.
pub struct Out {
    to: Box<dyn Write>,
    is_terminal: bool,
    is_coloured: bool,
    line: String,
    /// The first bytes of a character whose remaining bytes have not been written yet.
    begun: Vec<u8>,
    /// What shows the output. The last field, so that its input is closed before it is waited for.
    #[expect(dead_code, reason = "it is there to be dropped")]
    pager: Option<Pager>,
}

impl fmt::Debug for Out {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Out").field("is_terminal", &self.is_terminal).finish_non_exhaustive()
    }
}

impl Out {
    /// Buffered output. It must be [finished](Self::finish).
    pub fn new() -> Self {
        Self::to(Box::new(BufWriter::new(io::stdout().lock())), is_terminal())
    }

    /// Output that is written line by line.
    pub fn by_lines() -> Self {
        Self::to(Box::new(io::stdout().lock()), is_terminal())
    }

    /// Buffered output through a pager, if the user has one. Standard output must be a terminal.
    pub fn paged() -> Self {
        match pager::start() {
            Some((input, pager)) => {
                let out = Self::to(Box::new(BufWriter::new(input)), true);
                Self { pager: Some(pager), ..out }
            }
            None => Self::new(),
        }
    }

    fn to(to: Box<dyn Write>, is_terminal: bool) -> Self {
        let is_coloured = console::is_coloured(is_terminal);
        let (line, begun) = (String::new(), Vec::new());
        Self { to, is_terminal, is_coloured, line, begun, pager: None }
    }

    /// Prints one line. Unprintable characters in it are escaped, including newlines.
    pub fn line(&mut self, what: impl Display) -> Result<()> {
        self.line.clear();
        // Writing into a String cannot fail.
        let _ = write!(Escape(&mut self.line), "{what}");
        self.line.push('\n');
        self.to.write_all(self.line.as_bytes()).map_err(Error::Stdout)
    }

    /// Prints one line in colour, if that is wanted. Unprintable characters in it are escaped, including newlines.
    pub fn styled(&mut self, line: &Line) -> Result<()> {
        if !self.is_coloured {
            return self.line(line.text());
        }
        self.line.clear();
        for span in &line.spans {
            let code = colour(span.style);
            // Writing into a String cannot fail.
            let _ = self.line.write_str(code);
            let _ = Escape(&mut self.line).write_str(&span.text);
            let _ = self.line.write_str(if code.is_empty() { "" } else { "\x1b[0m" });
        }
        self.line.push('\n');
        self.to.write_all(self.line.as_bytes()).map_err(Error::Stdout)
    }

    /// Prints a value as JSON on one line.
    pub fn json(&mut self, value: &impl Serialize) -> Result<()> {
        self.json_as(value, CompactFormatter)
    }

    /// Prints a value as indented JSON.
    pub fn json_pretty(&mut self, value: &impl Serialize) -> Result<()> {
        self.json_as(value, PrettyFormatter::new())
    }

    fn json_as(&mut self, value: &impl Serialize, formatter: impl Formatter) -> Result<()> {
        let mut serializer = serde_json::Serializer::with_formatter(&mut self.to, Ascii(formatter));
        value.serialize(&mut serializer).map_err(|error| Error::Stdout(error.into()))?;
        self.to.write_all(b"\n").map_err(Error::Stdout)
    }

    /// Writes what is still buffered.
    pub fn finish(mut self) -> Result<()> {
        self.flush().map_err(Error::Stdout)
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.to.write(bytes);
        }
        self.begun.extend_from_slice(bytes);
        let whole = self.begun.len() - unfinished(&self.begun);
        let mut rest = self.begun.split_off(whole);
        std::mem::swap(&mut rest, &mut self.begun);
        write_text(&mut self.to, &rest)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let begun = std::mem::take(&mut self.begun);
        write_text(&mut self.to, &begun)?;
        self.to.flush()
    }
}

/// What begins text of a style on a terminal.
fn colour(style: Style) -> &'static str {
    match style {
        Style::Plain => "",
        Style::Heading => "\x1b[1m",
        Style::Faint => "\x1b[2m",
        Style::Source => "\x1b[36m",
        Style::Target => "\x1b[34m",
        Style::Hot => "\x1b[1;31m",
        Style::Warm => "\x1b[33m",
        Style::Cool => "\x1b[32m",
    }
}

/// How many bytes at the end are the start of an incomplete UTF-8 character.
fn unfinished(text: &[u8]) -> usize {
    let lengths = (1..=text.len().min(3)).rev();
    let begins = |length: &usize| {
        let end = text.get(text.len() - length..).unwrap_or_default();
        std::str::from_utf8(end)
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    lengths.into_iter().find(begins).unwrap_or(0)
}

/// Writes text of several lines: newlines and tabs are kept, other unprintable characters are escaped.
fn write_text(out: &mut dyn Write, text: &[u8]) -> io::Result<()> {
    for part in parts(text) {
        match part {
            Part::Plain(text) => out.write_all(text.as_bytes())?,
            Part::Character(c @ ('\n' | '\t')) => out.write_all(&[c as u8])?,
            part => write!(out, "{part}")?,
        }
    }
    Ok(())
}

/// JSON in which all unprintable characters are escaped, not only those that must be.
struct Ascii<F>(F);

impl<F: Formatter> Formatter for Ascii<F> {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if is_plain(fragment.as_bytes()) {
            return out.write_all(fragment.as_bytes());
        }
        for part in parts(fragment.as_bytes()) {
            match part {
                Part::Plain(text) => out.write_all(text.as_bytes())?,
                Part::Character(c) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        write!(out, "\\u{unit:04x}")?;
                    }
                }
                // A string has none.
                Part::Byte(_) => {}
            }
        }
        Ok(())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

/// For `serialize_with`: a path in JSON, with U+FFFD in place of invalid UTF-8. Serde refuses to serialize such a path, and the
/// whole output would be lost.
pub fn path_in_json<P: PathInJson, S: Serializer>(path: &P, to: S) -> Result<S::Ok, S::Error> {
    path.text().serialize(to)
}

/// A path or an optional path.
pub trait PathInJson {
    /// What is serialized.
    fn text(&self) -> impl Serialize;
}

impl PathInJson for Option<&Path> {
    fn text(&self) -> impl Serialize {
        self.map(Path::to_string_lossy)
    }
}

impl PathInJson for PathBuf {
    fn text(&self) -> impl Serialize {
        self.to_string_lossy()
    }
}

impl PathInJson for Option<PathBuf> {
    fn text(&self) -> impl Serialize {
        self.as_ref().map(|path| path.to_string_lossy())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use printable::is_printable;
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Rc<RefCell<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What arrives, of a terminal or else.
    fn printed(is_terminal: bool, print: impl FnOnce(&mut Out)) -> Vec<u8> {
        let kept = Kept::default();
        let mut out = Out::to(Box::new(kept.clone()), is_terminal);
        print(&mut out);
        out.finish().expect("memory");
        kept.0.take()
    }

    fn is_harmless(text: &[u8]) -> bool {
        std::str::from_utf8(text)
            .is_ok_and(|text| text.chars().all(|c| c == '\n' || is_printable(c)))
    }

    #[test]
    fn percentages_have_one_digit_and_are_zero_without_samples() {
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(7, 7), "100.0 %");
        assert_eq!(percent(0, 0), "0.0 %");
        assert_eq!(percent(u64::MAX, u64::MAX), "100.0 %");
    }

    #[test]
    fn a_line_stays_one() {
        let line =
            printed(false, |out| out.line(format_args!("a\n\x1b[2J{}", "\u{202e}")).unwrap());
        assert_eq!(String::from_utf8(line).unwrap(), "a\\n\\x1b[2J\\u{202e}\n");
    }

    #[test]
    fn colours_are_ours_alone() {
        let line = Line::of(Style::Hot, "a\x1b[2J").with(Style::Plain, " b\n ");
        let shown = |is_coloured| {
            let printed = printed(true, |out| {
                out.is_coloured = is_coloured;
                out.styled(&line).unwrap();
            });
            String::from_utf8(printed).unwrap()
        };
        assert_eq!(shown(false), "a\\x1b[2J b\n");
        assert_eq!(shown(true), "\x1b[1;31ma\\x1b[2J\x1b[0m b\\n \n");
    }

    #[test]
    fn a_file_s_content_is_changed_for_terminals_alone() {
        let text = "\tgrün\n\x1b]0;\u{9b}\u{1f980}".as_bytes();
        // However it is cut into pieces.
        for size in 1..6 {
            let write = |out: &mut Out| {
                text.chunks(size).for_each(|piece| out.write_all(piece).unwrap());
            };
            assert_eq!(printed(false, write), text);
            let shown = String::from_utf8(printed(true, write)).unwrap();
            assert_eq!(shown, "\tgrün\n\\x1b]0;\\u{9b}\u{1f980}", "{size}");
        }
        let cut = printed(true, |out| out.write_all(b"a\xf0\x9f").unwrap());
        assert_eq!(cut, br"a\xf0\x9f");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn json_is_harmless_and_means_the_same(text in any::<String>()) {
            let value = serde_json::json!({ "a": [text], "b\u{9b}\x7f": {} });
            for pretty in [false, true] {
                let json = printed(false, |out| match pretty {
                    true => out.json_pretty(&value).unwrap(),
                    false => out.json(&value).unwrap(),
                });
                prop_assert!(is_harmless(&json), "{:?}", json);
                prop_assert_eq!(&serde_json::from_slice::<serde_json::Value>(&json).unwrap(), &value);
                let lines = json.iter().filter(|byte| **byte == b'\n').count();
                prop_assert_eq!(lines > 1, pretty);
            }
        }
    }
}
