//! The source files that line tables name, one list for all object files.

use std::collections::HashMap;

use crate::encode::Encode;

/// All files named so far, encoded as the header of a line table has them, so that an object file
/// takes the first so many of them as they are.
#[derive(Debug, Default)]
pub(crate) struct Files {
    numbers: HashMap<String, u32>,
    directories: HashMap<String, u32>,
    /// `include_directories` and `file_names`, without the zeros that end them.
    encoded_directories: Vec<u8>,
    encoded_files: Vec<u8>,
    /// By file: how far both lists must reach for it.
    ends: Vec<(usize, usize)>,
    last: (String, u32),
}

impl Files {
    /// A list whose first file is none: the one that a row names that is of no code.
    pub(crate) fn new() -> Self {
        let mut files = Self::default();
        files.number("jitscribe");
        files
    }

    /// The file's number, from 1.
    pub(crate) fn number(&mut self, path: &str) -> u32 {
        if self.last.1 != 0 && self.last.0 == path {
            return self.last.1;
        }
        let number = match self.numbers.get(path) {
            Some(&number) => number,
            None => self.add(path),
        };
        self.last.0.clear();
        self.last.0.push_str(path);
        self.last.1 = number;
        number
    }

    fn add(&mut self, path: &str) -> u32 {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let directory = match directory {
            "" if path.starts_with('/') => "/",
            other => other,
        };
        let in_directory = if directory.is_empty() { 0 } else { self.directory(directory) };
        push_text(&mut self.encoded_files, if name.is_empty() { "?" } else { name });
        self.encoded_files.uleb(in_directory.into());
        self.encoded_files.extend_from_slice(&[0, 0]); // no time, no size
        self.ends.push((self.encoded_directories.len(), self.encoded_files.len()));
        let number = self.ends.len() as u32;
        self.numbers.insert(path.to_owned(), number);
        number
    }

    fn directory(&mut self, path: &str) -> u32 {
        if let Some(&number) = self.directories.get(path) {
            return number;
        }
        push_text(&mut self.encoded_directories, path);
        let number = self.directories.len() as u32 + 1;
        self.directories.insert(path.to_owned(), number);
        number
    }

    /// The directories and files that a line table needs whose highest file number this is.
    pub(crate) fn up_to(&self, number: u32) -> (&[u8], &[u8]) {
        let last = (number as usize).checked_sub(1).and_then(|last| self.ends.get(last));
        let (directories, files) = last.copied().unwrap_or_default();
        (&self.encoded_directories[..directories], &self.encoded_files[..files])
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().map(|byte| if byte < b' ' || byte == 0x7f { b'?' } else { byte }));
    out.push(0);
}
