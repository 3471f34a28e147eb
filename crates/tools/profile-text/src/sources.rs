//! Lines of source files.

use std::collections::HashMap;

use profile::CodeSource;
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
}

/// A file as lines.
pub struct File {
    pub lines: Vec<String>,
    pub is_newer: bool,
}

/// The width of a tab.
const TAB: usize = 4;

impl Sources {
    /// A file.
    pub fn file(&mut self, source: &mut dyn CodeSource, path: &[u8]) -> Option<&File> {
        if path.is_empty() {
            return None;
        }
        // The path is copied once, and not for each line of each instruction.
        if !self.files.contains_key(path) {
            let file = source.source(path).map(|read| File {
                lines: read.text.split(|byte| *byte == b'\n').map(line).collect(),
                is_newer: read.is_newer,
            });
            self.files.insert(path.to_vec(), file);
        }
        self.files.get(path)?.as_ref()
    }

    /// A line of a file, from 1.
    pub fn line(&mut self, source: &mut dyn CodeSource, path: &[u8], line: u32) -> Option<&str> {
        self.file(source, path)?.line(line)
    }
}

impl File {
    /// A line, from 1.
    pub fn line(&self, line: u32) -> Option<&str> {
        let place = (line as usize).checked_sub(1)?;
        self.lines.get(place).map(String::as_str)
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
