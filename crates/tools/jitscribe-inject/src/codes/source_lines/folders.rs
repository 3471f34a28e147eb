//! Files in folders that the user named.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::files::base_name;

/// No more files and folders are visited.
const MANY: usize = 1 << 20;

/// The files in some folders and their subfolders, by base name.
#[derive(Debug, Default)]
pub struct Folders {
    by_name: HashMap<Box<[u8]>, Vec<PathBuf>>,
    /// The folders that are not read yet.
    unread: Vec<PathBuf>,
    /// Number of files and folders that were not visited.
    skipped: bool,
}

impl Folders {
    /// Nothing is read before the first search.
    pub fn new(folders: &[PathBuf]) -> Self {
        Self { unread: folders.to_vec(), ..Self::default() }
    }

    /// Whether there are no folders to search.
    pub fn is_empty(&self) -> bool {
        self.unread.is_empty() && self.by_name.is_empty()
    }

    /// Whether there were too many files to visit all.
    pub fn is_incomplete(&self) -> bool {
        self.skipped
    }

    /// The file that ends like `path`: the one with the most folders in common, counted from the end. `None` if several have as many.
    ///
    /// Of a path with folders, at least one must agree.
    pub fn find(&mut self, path: &[u8]) -> Option<&Path> {
        self.read();
        let candidates = self.by_name.get(base_name(path))?;
        let has_folders = path.iter().rposition(|&byte| byte == b'/').is_some_and(|at| at > 0);
        let in_common = |candidate: &Path| {
            let both = parts(path).zip(parts(candidate.as_os_str().as_bytes()));
            both.take_while(|(a, b)| a == b).count()
        };
        let best = candidates.iter().map(|candidate| in_common(candidate)).max()?;
        let mut longest = candidates.iter().filter(|candidate| in_common(candidate) == best);
        let found = longest.next().filter(|_| longest.next().is_none());
        found.map(PathBuf::as_path).filter(|_| best > usize::from(has_folders))
    }

    fn read(&mut self) {
        let mut left = MANY;
        let mut unread: VecDeque<PathBuf> = self.unread.drain(..).collect();
        // perf and objdump look for the files in other working directories.
        for folder in &mut unread {
            if let Ok(absolute) = std::path::absolute(&*folder) {
                *folder = absolute;
            }
        }
        while let Some(folder) = unread.pop_front() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                if left == 0 {
                    self.skipped = true;
                    return;
                }
                left -= 1;
                // Links are not followed: they may lead in circles.
                let Ok(kind) = entry.file_type() else { continue };
                let name = entry.file_name();
                if kind.is_dir() && name != OsStr::new(".git") {
                    unread.push_back(entry.path());
                } else if kind.is_file() {
                    let files = self.by_name.entry(name.as_bytes().into()).or_default();
                    files.push(entry.path());
                }
            }
        }
    }
}

/// The parts of a path, the last one first.
fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.rsplit(|&byte| byte == b'/').filter(|part| !matches!(*part, b"" | b"."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_common_end_wins() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["a/util/map.erl", "b/util/map.erl", "b/list.erl", "b/x/java/util/Map.java"] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let mut folders = Folders::new(&[folder.path().to_owned()]);
        assert!(!folders.is_empty());
        for (path, found) in [
            ("list.erl", Some("b/list.erl")),
            ("map.erl", None),
            ("util/map.erl", None),
            ("b/util/map.erl", Some("b/util/map.erl")),
            ("/build/src/b/util/map.erl", Some("b/util/map.erl")),
            ("/list.erl", Some("b/list.erl")),
            ("java/util/Map.java", Some("b/x/java/util/Map.java")),
            ("other/Map.java", None),
            ("none.erl", None),
            ("", None),
        ] {
            let expected = found.map(|found| folder.path().join(found));
            assert_eq!(folders.find(path.as_bytes()), expected.as_deref(), "{path}");
        }
        assert!(!folders.is_incomplete());
    }
}
