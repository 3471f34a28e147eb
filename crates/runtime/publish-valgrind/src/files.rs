//! The source files in line tables: one list for all object files.

use fallible::{HashMap, Text, Vec};

use crate::encode::Encode;

/// All files so far, encoded as in the header of a line table, so that an object file can use the
/// first part of the list unchanged.
#[derive(Debug, Default)]
pub(crate) struct Files {
    numbers: HashMap<Vec<u8>, u32>,
    directories: HashMap<Vec<u8>, u32>,
    /// `include_directories` and `file_names`, without the zeros that end them.
    encoded_directories: Vec<u8>,
    encoded_files: Vec<u8>,
    /// By file: how much of both lists is needed for it.
    ends: Vec<(usize, usize)>,
    last: (Text, u32),
}

impl Files {
    /// A list whose first file is a placeholder, for rows that belong to no code.
    pub(crate) fn new() -> Self {
        let mut files = Self::default();
        files.number("jitscribe");
        files
    }

    /// The file's number, from 1.
    pub(crate) fn number(&mut self, path: &str) -> u32 {
        if self.last.1 != 0 && *self.last.0 == *path {
            return self.last.1;
        }
        let number = match self.numbers.get(path.as_bytes()) {
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
        self.numbers.insert(Vec::from(path.as_bytes()), number);
        number
    }

    fn directory(&mut self, path: &str) -> u32 {
        if let Some(&number) = self.directories.get(path.as_bytes()) {
            return number;
        }
        push_text(&mut self.encoded_directories, path);
        let number = self.directories.len() as u32 + 1;
        self.directories.insert(Vec::from(path.as_bytes()), number);
        number
    }

    /// The directories and files that a line table with this highest file number needs.
    pub(crate) fn up_to(&self, number: u32) -> (&[u8], &[u8]) {
        let last = (number as usize).checked_sub(1).and_then(|last| self.ends.get(last));
        let (directories, files) = last.copied().unwrap_or_default();
        (&self.encoded_directories[..directories], &self.encoded_files[..files])
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    printable::replaced(text.as_bytes(), "?").for_each(|piece| out.extend_from_slice(piece));
    out.push(0);
}
