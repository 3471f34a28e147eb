//! The functions of a Python file.

use std::collections::HashMap;

/// The lines of the definitions in a file.
#[derive(Debug, Default)]
pub struct Definitions {
    /// By qualified name; 0 if there are several of one name.
    lines: HashMap<Box<[u8]>, u32>,
}

/// A definition that encloses the current line.
struct Enclosing {
    indent: usize,
    /// Length of the qualified name up to here.
    name_end: usize,
}

/// Qualified names longer than this are not kept: nesting would make them quadratic.
const LONGEST_NAME: usize = 1 << 10;

impl Definitions {
    /// Reads the source text of a file.
    pub fn read(text: &[u8]) -> Self {
        let mut all = Self::default();
        let mut enclosing: Vec<Enclosing> = Vec::new();
        let mut name = Vec::new();
        for (line, statement) in Statements::of(text) {
            let indent = indent(statement);
            while enclosing.last().is_some_and(|last| last.indent >= indent) {
                enclosing.pop();
            }
            name.truncate(enclosing.last().map_or(0, |last| last.name_end));
            let Some((defined, is_function)) = definition(statement.trim_ascii_start()) else {
                continue;
            };
            name.extend_from_slice(defined);
            if name.len() > LONGEST_NAME {
                continue;
            }
            if is_function {
                all.lines
                    .entry(name.as_slice().into())
                    .and_modify(|known| *known = 0)
                    .or_insert(line);
            }
            name.extend_from_slice(if is_function { b".<locals>." } else { b"." });
            enclosing.push(Enclosing { indent, name_end: name.len() });
        }
        all
    }

    /// The line of the function with this qualified name; `None` if there is none, or more than one.
    pub fn line(&self, function: &[u8]) -> Option<u32> {
        match function {
            b"<module>" => Some(1),
            _ => self.lines.get(function).copied().filter(|&line| line != 0),
        }
    }
}

fn indent(statement: &[u8]) -> usize {
    let blank = statement.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\x0c'));
    blank.fold(0, |column, byte| match byte {
        b' ' => column + 1,
        b'\t' => (column / 8 + 1) * 8,
        _ => 0,
    })
}

/// The name that a statement defines, and whether it is a function's.
fn definition(statement: &[u8]) -> Option<(&[u8], bool)> {
    let word = |text: &[u8], word: &[u8]| {
        let rest = text.strip_prefix(word)?.trim_ascii_start().len();
        let blank = text.len() - word.len() - rest;
        text.get(text.len() - rest..).filter(|_| blank > 0).map(<[u8]>::len)
    };
    let behind = |text: &'_ [u8], keyword: &[u8]| word(text, keyword).map(|rest| text.len() - rest);
    let async_end = behind(statement, b"async").unwrap_or(0);
    let statement = statement.get(async_end..)?;
    let (start, is_function) = match behind(statement, b"def") {
        Some(start) => (start, true),
        None => (behind(statement, b"class")?, false),
    };
    let rest = statement.get(start..)?;
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    let end = rest.iter().position(|byte| !is_letter(byte)).unwrap_or(rest.len());
    rest.get(..end).filter(|name| !name.is_empty()).map(|name| (name, is_function))
}

/// The first lines of the statements of a text, with their numbers from 1: not those within strings and brackets.
struct Statements<'t> {
    text: &'t [u8],
    at: usize,
    line: u32,
}

impl<'t> Statements<'t> {
    fn of(text: &'t [u8]) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// Skips a string that begins at the current quote.
    fn skip_string(&mut self, quote: u8) {
        let is_triple = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(&[quote; 3]));
        self.at += if is_triple { 3 } else { 1 };
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\\' => {
                    self.line += u32::from(self.text.get(self.at + 1) == Some(&b'\n'));
                    self.at += 2;
                    continue;
                }
                b'\n' if !is_triple => return,
                b'\n' => self.line = self.line.saturating_add(1),
                byte if byte == quote && !is_triple => {
                    self.at += 1;
                    return;
                }
                byte if byte == quote
                    && self
                        .text
                        .get(self.at..)
                        .is_some_and(|rest| rest.starts_with(&[quote; 3])) =>
                {
                    self.at += 3;
                    return;
                }
                _ => {}
            }
            self.at += 1;
        }
    }
}

impl<'t> Iterator for Statements<'t> {
    type Item = (u32, &'t [u8]);

    fn next(&mut self) -> Option<(u32, &'t [u8])> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        let first = (self.line, rest.get(..end)?);
        let mut depth = 0_usize;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\n' => {
                    self.at += 1;
                    self.line = self.line.saturating_add(1);
                    if depth == 0 {
                        break;
                    }
                    continue;
                }
                b'"' | b'\'' => {
                    self.skip_string(byte);
                    continue;
                }
                b'#' => {
                    let rest = self.text.get(self.at..).unwrap_or_default();
                    self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
                    continue;
                }
                b'\\' if self.text.get(self.at + 1) == Some(&b'\n') => {
                    self.line = self.line.saturating_add(1);
                    self.at += 1;
                }
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
        }
        // Comments and blank lines do not end a block.
        let is_blank = matches!(first.1.trim_ascii_start(), [] | [b'#', ..]);
        if is_blank { self.next_behind_blanks() } else { Some(first) }
    }
}

impl<'t> Statements<'t> {
    /// The next statement behind blank lines: a loop, because there may be many.
    fn next_behind_blanks(&mut self) -> Option<(u32, &'t [u8])> {
        loop {
            let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
            let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            if !matches!(rest.get(..end)?.trim_ascii_start(), [] | [b'#', ..]) {
                return self.next();
            }
            self.at += (end + 1).min(rest.len());
            self.line = self.line.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &[u8] = b"\
import os
def f(a,
      b=')def no():'):
    '''def no2():
def no3(): pass
'''
    def inner(): return \"\\\"def\"
    # def no4():

    return inner
class C:
  async  def m(self): pass
  class D:
\tdef deep(self): pass
  def twice(self): pass
  def twice(self): pass
@wraps(f)
def g(): pass
if x: \\
  y
x = [
def_ = 1, # (
]
def h\xc3\xb6(): pass
";

    #[test]
    fn functions_are_found_by_their_qualified_names() {
        let all = Definitions::read(TEXT);
        for (name, line) in [
            ("<module>", Some(1)),
            ("f", Some(2)),
            ("f.<locals>.inner", Some(7)),
            ("C.m", Some(12)),
            ("C.D.deep", Some(14)),
            ("C.twice", None),
            ("g", Some(18)),
            ("h\u{f6}", Some(24)),
            ("no", None),
            ("no2", None),
            ("no3", None),
            ("no4", None),
            ("C", None),
        ] {
            assert_eq!(all.line(name.as_bytes()), line, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in r#"([a-c \t\n\\"'#()]|def |class |'''){0,60}"#) {
            let all = Definitions::read(text.as_bytes());
            let lines = text.lines().count().max(1) as u32;
            for (name, &line) in &all.lines {
                prop_assert!(line <= lines, "{:?}", name);
            }
        }

        #[test]
        fn any_bytes_are_read(text in any::<Vec<u8>>()) {
            _ = Definitions::read(&text);
        }
    }
}
