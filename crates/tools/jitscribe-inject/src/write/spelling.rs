//! Different spellings of one path, for mappings that begin at different places of a file.
//!
//! hotspot's reader keeps the symbols of a file by its path as distances from the address at which the file was first mapped, and looks up other mappings of that
//! path as if they began there too (perfaddresscache.cpp, `findSymbol`). With another spelling of the path it reads the symbols again.
//! perf shows one row for both: it compares the names of files without their folders (sort.c, `_sort__dso_cmp`). Its unwinders do not, so that
//! recordings whose stacks are unwound later have one spelling.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::hash::Hash;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Number of symbols that readers read again because of all spellings of one path.
const SYMBOLS_AGAIN: usize = 1 << 20;
/// Number of further spellings of one path, of which each has its own combination of this many parts.
const PARTS: u32 = 10;

/// The spellings of the paths of some files.
#[derive(Debug)]
pub struct Spellings<File> {
    /// Number of spellings that a path may have.
    most: usize,
    /// Where the mappings of each file begin, in the order of their spellings.
    files: HashMap<File, Vec<u64>>,
}

impl<File: Eq + Hash> Spellings<File> {
    /// No mappings yet.
    pub fn new() -> Self {
        Self { most: 1 << PARTS, files: HashMap::new() }
    }

    /// Each path stays as it is.
    pub fn single() -> Self {
        Self { most: 1, ..Self::new() }
    }

    /// The path to use for a mapping of `file`, which has `symbols`, that begins at `start`: as given for the first mapping, and for others that
    /// begin there.
    pub fn path(&mut self, file: File, path: &[u8], symbols: usize, start: u64) -> Vec<u8> {
        let starts = self.files.entry(file).or_default();
        let known = starts.iter().position(|&known| known == start);
        let number = known.unwrap_or_else(|| {
            let most = (SYMBOLS_AGAIN / symbols.max(1)).clamp(1, self.most);
            if starts.len() < most {
                starts.push(start);
                starts.len() - 1
            } else {
                0
            }
        });
        spelling(path, number)
    }
}

/// The path that all spellings of a path lead to: without `//` and `/./`.
#[must_use]
pub fn without_spelling(path: &[u8]) -> Vec<u8> {
    let parts = Path::new(OsStr::from_bytes(path)).components();
    let path: PathBuf = parts.filter(|part| *part != Component::CurDir).collect();
    path.into_os_string().into_encoded_bytes()
}

/// The spelling of `path` with this number; 0 is the path itself.
fn spelling(path: &[u8], number: usize) -> Vec<u8> {
    let folder = path.iter().rposition(|&byte| byte == b'/').filter(|_| number > 0);
    let Some(folder) = folder else { return path.to_vec() };
    let (folder, name) = path.split_at(folder + 1);
    let mut spelling = folder.to_vec();
    for part in 0..PARTS {
        let bit = number >> part & 1 == 1;
        spelling.extend_from_slice(if bit { b"./" } else { b"/" });
    }
    spelling.extend_from_slice(name);
    spelling
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;

    use super::*;

    #[test]
    fn spellings_differ_and_lead_to_the_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file");
        fs::write(&path, "content").expect("a file");
        let path = path.as_os_str().as_bytes();
        let mut spellings = Spellings::new();
        let all: HashSet<Vec<u8>> =
            (0..100).map(|start| spellings.path(1, path, 10, start)).collect();
        assert_eq!(all.len(), 100);
        for spelling in &all {
            assert_eq!(without_spelling(spelling), path);
            let spelling = Path::new(OsStr::from_bytes(spelling));
            assert_eq!(fs::read(spelling).expect("the file"), b"content");
            assert_eq!(spelling.file_name(), Some("file".as_ref()));
        }
        assert_eq!(spellings.path(1, path, 10, 0), path);
        assert_eq!(spellings.path(1, path, 10, 7), spellings.path(1, path, 10, 7));
        assert_eq!(spellings.path(2, path, 10, 7), path);
    }

    #[test]
    fn large_files_are_not_read_again_and_again() {
        let mut spellings = Spellings::new();
        let mut of = |start| spellings.path(1, b"/a/b", SYMBOLS_AGAIN / 2, start);
        assert_eq!(of(1), b"/a/b");
        assert_ne!(of(2), b"/a/b");
        assert_eq!(of(3), b"/a/b");
    }

    #[test]
    fn a_single_spelling_is_the_path() {
        let mut spellings = Spellings::single();
        assert!((0..9).all(|start| spellings.path(1, b"/a/b", 1, start) == b"/a/b"));
    }

    #[test]
    fn spellings_of_a_path_are_one_file() {
        for path in ["/a/b.elf", "/a/./b.elf", "/a//b.elf", "//a/././b.elf"] {
            assert_eq!(without_spelling(path.as_bytes()), b"/a/b.elf", "{path}");
        }
        assert_eq!(without_spelling(b"[vdso]"), b"[vdso]");
    }
}
