//! The source files in line tables: one list for all object files.

use fallible::Vec;

use crate::encode::Encode;
use crate::numbers::Numbers;

/// All files so far, encoded as in the header of a line table, so that an object file can use the
/// first part of the list unchanged.
#[derive(Debug, Default)]
pub(crate) struct Files {
    numbers: Numbers,
    directories: Numbers,
    /// `include_directories` and `file_names`, without the zeros that end them.
    encoded_directories: Vec<u8>,
    encoded_files: Vec<u8>,
    /// By file: how much of both lists is needed for it.
    ends: Vec<(usize, usize)>,
    last: (Vec<u8>, u32),
}

impl Files {
    /// A list whose first file is a placeholder, for rows that belong to no code.
    pub(crate) fn new() -> Self {
        let mut files = Self::default();
        files.number(b"jitscribe");
        files
    }

    /// The file's number, from 1.
    pub(crate) fn number(&mut self, path: &[u8]) -> u32 {
        if self.last.1 != 0 && self.last.0 == path {
            return self.last.1;
        }
        let number = match self.numbers.get(path) {
            Some(number) => number,
            None => self.add(path),
        };
        self.last.0.clear();
        self.last.0.extend_from_slice(path);
        self.last.1 = number;
        number
    }

    fn add(&mut self, path: &[u8]) -> u32 {
        let (directory, name): (&[u8], _) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(0) => (b"/", &path[1..]),
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (b"", path),
        };
        let in_directory = if directory.is_empty() { 0 } else { self.directory(directory) };
        push_text(&mut self.encoded_files, if name.is_empty() { b"?" } else { name });
        self.encoded_files.uleb(in_directory.into());
        self.encoded_files.extend_from_slice(&[0, 0]); // no time, no size
        self.ends.push((self.encoded_directories.len(), self.encoded_files.len()));
        self.numbers.add(path)
    }

    fn directory(&mut self, path: &[u8]) -> u32 {
        if let Some(number) = self.directories.get(path) {
            return number;
        }
        push_text(&mut self.encoded_directories, path);
        self.directories.add(path)
    }

    /// The directories and files that a line table with this highest file number needs.
    pub(crate) fn up_to(&self, number: u32) -> (&[u8], &[u8]) {
        let last = (number as usize).checked_sub(1).and_then(|last| self.ends.get(last));
        let (directories, files) = last.copied().unwrap_or_default();
        (&self.encoded_directories[..directories], &self.encoded_files[..files])
    }
}

fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    printable::replaced(text, "?").for_each(|piece| out.extend_from_slice(piece));
    out.push(0);
}
