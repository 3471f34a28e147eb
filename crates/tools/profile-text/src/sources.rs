//! Lines of source files.

use std::collections::HashMap;

use profile::{CodeSource, Source};
use serde::Serialize;

use crate::function_info::{lossy, shortened};

/// A line of a function's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceLine {
    /// Its number, from 1; 0 stands for code without a line.
    pub line: u32,
    /// Its text; `None` if the file is not there.
    pub text: Option<String>,
    /// Samples in it.
    pub samples: u64,
    /// Samples in it or in what it called.
    pub inclusive: u64,
}

/// The files that were asked for, as lines.
#[derive(Default)]
pub struct Sources {
    files: HashMap<Vec<u8>, Option<File>>,
    /// Bytes of all files.
    bytes: usize,
}

/// A file as lines.
pub struct File {
    text: Vec<u8>,
    /// Where every [`BLOCK`]th line begins: a place for each line takes more than a text of empty lines.
    blocks: Vec<usize>,
    pub is_newer: bool,
}

/// The width of a tab.
const TAB: usize = 4;
/// Lines are found from the beginning of so many.
const BLOCK: usize = 64;
/// The most bytes of all files. Those that come after that are taken not to be there.
const MOST_BYTES: usize = 256 << 20;

impl Sources {
    /// A file.
    pub fn file(&mut self, source: &mut dyn CodeSource, path: &[u8]) -> Option<&File> {
        if path.is_empty() {
            return None;
        }
        // The path is copied once, and not for each line of each instruction.
        if !self.files.contains_key(path) {
            let read = source.source(path);
            let bytes = read.as_ref().map_or(0, |read| read.text.len());
            let together = self.bytes.saturating_add(bytes);
            let fits = together <= MOST_BYTES;
            if fits {
                self.bytes = together;
            }
            let file = read.filter(|_| fits).map(File::new);
            self.files.insert(path.to_vec(), file);
        }
        self.files.get(path)?.as_ref()
    }

    /// A line of a file, from 1.
    pub fn line(&mut self, source: &mut dyn CodeSource, path: &[u8], line: u32) -> Option<String> {
        self.file(source, path)?.line(line)
    }
}

impl File {
    fn new(source: Source) -> Self {
        let ends = source.text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at.saturating_add(1)));
        let blocks = starts.step_by(BLOCK).collect();
        Self { blocks, text: source.text, is_newer: source.is_newer }
    }

    /// Whether there is a line with this number, from 1.
    pub fn has(&self, number: u32) -> bool {
        self.bytes(number).is_some()
    }

    /// A line, from 1.
    pub fn line(&self, number: u32) -> Option<String> {
        self.bytes(number).map(line)
    }

    fn bytes(&self, number: u32) -> Option<&[u8]> {
        let place = (number as usize).checked_sub(1)?;
        let block = self.text.get(*self.blocks.get(place / BLOCK)?..)?;
        block.split(|byte| *byte == b'\n').nth(place % BLOCK)
    }
}

/// A line of text without tabs, and not longer than fits in a table.
fn line(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let bytes = bytes.get(..4096).unwrap_or(bytes);
    let text = lossy(bytes);
    let mut expanded = String::with_capacity(text.len());
    let mut column = 0_usize;
    for letter in text.chars() {
        let width = match letter {
            '\t' => TAB.saturating_sub(column % TAB),
            _ => 1,
        };
        match letter {
            '\t' => expanded.extend(std::iter::repeat_n(' ', width)),
            _ => expanded.push(letter),
        }
        column = column.saturating_add(width);
    }
    shortened(expanded.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Texts;

    impl CodeSource for Texts {
        fn listing(&mut self, _: profile::CodeId) -> Option<profile::Listing> {
            None
        }

        fn name_at(&mut self, _: profile::CodeId, _: u64) -> Option<(Vec<u8>, u64)> {
            None
        }

        fn source(&mut self, file: &[u8]) -> Option<Source> {
            let text = match file {
                b"empty" => Vec::new(),
                b"lines" => (1..=200)
                    .map(|number| format!("\tline {number}\r\n"))
                    .collect::<String>()
                    .into(),
                b"large" => vec![b'\n'; MOST_BYTES / 2],
                _ => return None,
            };
            Some(Source { text, is_newer: false })
        }
    }

    #[test]
    fn lines_have_the_numbers_of_an_editor() {
        let mut sources = Sources::default();
        let mut line = |path: &[u8], number| sources.line(&mut Texts, path, number);
        assert_eq!(line(b"lines", 0), None);
        for number in [1, 2, 63, 64, 65, 128, 129, 200] {
            assert_eq!(line(b"lines", number), Some(format!("    line {number}")));
        }
        // Behind the last line end.
        assert_eq!(line(b"lines", 201), Some(String::new()));
        assert_eq!(line(b"lines", 202), None);
        assert_eq!(line(b"empty", 1), Some(String::new()));
        assert_eq!(line(b"empty", 2), None);
        assert_eq!(line(b"", 1), None);
    }

    #[test]
    fn all_files_together_are_bounded() {
        let mut sources = Sources::default();
        let file = sources.file(&mut Texts, b"large").expect("it fits");
        assert!(file.blocks.len() <= MOST_BYTES / 2 / BLOCK + 1);
        assert!(file.has(u32::try_from(MOST_BYTES / 2).unwrap()));
        assert!(sources.file(&mut Texts, b"lines").is_some());
        sources.bytes = MOST_BYTES;
        assert!(
            sources.file(&mut Texts, b"other").is_none()
                && sources.file(&mut Texts, b"empty").is_some()
        );
        sources.files.clear();
        assert!(sources.file(&mut Texts, b"lines").is_none());
    }
}
