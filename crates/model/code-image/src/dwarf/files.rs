//! The file table of one unit.

use fallible::Vec;

use super::numbers::Numbers;
use crate::encode::Encoder;
use crate::printable::push_printable;
use crate::target::Target;

/// Assigns numbers to paths, with their directories split off.
#[derive(Debug, Clone)]
pub(super) struct FileTable {
    files: Numbers,
    directories: Numbers,
    file_entries: Encoder,
    directory_entries: Encoder,
    /// The last file requested: most rows request the same file again.
    latest: (Vec<u8>, u64),
}

impl FileTable {
    pub(super) fn new(target: Target) -> Self {
        FileTable {
            files: Numbers::default(),
            directories: Numbers::default(),
            file_entries: Encoder::new(target),
            directory_entries: Encoder::new(target),
            latest: (Vec::new(), 0),
        }
    }

    /// Removes everything, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.files.clear();
        self.directories.clear();
        self.file_entries.bytes.clear();
        self.directory_entries.bytes.clear();
        self.latest.1 = 0;
    }

    /// The number of `path`, from 1.
    pub(super) fn number(&mut self, path: &[u8]) -> u64 {
        if self.latest.0 == path && self.latest.1 != 0 {
            return self.latest.1;
        }
        let number = match self.files.get(path) {
            Some(number) => number,
            None => self.insert(path),
        };
        self.latest.0.clear();
        self.latest.0.extend_from_slice(path);
        self.latest.1 = number;
        number
    }

    fn insert(&mut self, path: &[u8]) -> u64 {
        let number = self.files.insert(path);
        let (directory, name) = split(path);
        let directory = self.directory(directory);
        push_printable(name, &mut self.file_entries.bytes);
        self.file_entries.u8(0);
        self.file_entries.uleb(directory);
        self.file_entries.uleb(0); // time of modification: unknown
        self.file_entries.uleb(0); // length: unknown
        number
    }

    /// The number of a directory, from 1; 0 means none.
    fn directory(&mut self, path: &[u8]) -> u64 {
        if path.is_empty() {
            return 0;
        }
        if let Some(number) = self.directories.get(path) {
            return number;
        }
        let number = self.directories.insert(path);
        push_printable(path, &mut self.directory_entries.bytes);
        self.directory_entries.u8(0);
        number
    }

    /// Writes the tables in the form of a line program's header.
    pub(super) fn write(&self, out: &mut Encoder) {
        out.raw(&self.directory_entries.bytes);
        out.u8(0);
        out.raw(&self.file_entries.bytes);
        out.u8(0);
    }
}

/// Splits a path such that `directory + "/" + name` restores it, or does not split it.
///
/// A reader joins the two with a slash. A file directly below the root, or a path that ends with a slash, would be
/// changed.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(at @ 1..) => match path.split_at_checked(at) {
            Some((directory, [_, name @ ..])) if !name.is_empty() => (directory, name),
            _ => (b"", path),
        },
        _ => (b"", path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Endian;

    #[test]
    fn paths_split_only_where_they_can_be_joined_again() {
        for (path, directory, name) in [
            ("/src/lib/a.js", "/src/lib", "a.js"),
            ("a.js", "", "a.js"),
            ("/a.js", "", "/a.js"),
            ("a/b/", "", "a/b/"),
            ("node:internal/main/x", "node:internal/main", "x"),
            ("file:///x.js", "file://", "x.js"),
        ] {
            assert_eq!(split(path.as_bytes()), (directory.as_bytes(), name.as_bytes()), "{path}");
        }
    }

    #[test]
    fn files_and_directories_are_numbered_once() {
        let mut table = FileTable::new(Target::new(62, Endian::Little));
        assert_eq!(table.number(b"/d/a"), 1);
        assert_eq!(table.number(b"/d/b"), 2);
        assert_eq!(table.number(b"/e/a"), 3);
        assert_eq!(table.number(b"/d/a"), 1);
        let mut many = FileTable::new(Target::new(62, Endian::Little));
        for _ in 0..2 {
            for number in 0..100 {
                let path = format!("/{}/{number}", number % 30);
                assert_eq!(many.number(path.as_bytes()), number + 1);
            }
        }
        assert_eq!(many.directories.len(), 30);
        let mut out = Encoder::new(Target::new(62, Endian::Little));
        table.write(&mut out);
        assert_eq!(out.bytes, b"/d\0/e\0\0a\0\x01\0\0b\0\x01\0\0a\0\x02\0\0\0");
    }
}
