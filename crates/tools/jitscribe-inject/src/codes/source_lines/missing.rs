//! Folders that do not exist on this machine.
//!
//! A recording of a container or of another machine names thousands of scripts in folders that are not here. Another process opens each file,
//! so that looking for all of them would take as long as the rest of the work.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Deeper folders are not remembered: a path may have thousands.
const DEEPEST: usize = 16;

/// The folders of files that were not found, and whether they exist.
#[derive(Debug, Default)]
pub struct MissingFolders {
    exist: HashMap<Box<[u8]>, bool>,
}

impl MissingFolders {
    /// Whether the file `path` cannot exist, because a folder of it is known to be missing.
    pub fn have(&self, path: &[u8]) -> bool {
        !self.exist.is_empty() && folders(path).any(|folder| self.exist.get(folder) == Some(&false))
    }

    /// Records that the file `path` was not found. `exists` tells whether a folder exists; it is called once for each.
    pub fn add(&mut self, path: &[u8], exists: impl Fn(&Path) -> bool) {
        for folder in folders(path) {
            let exists = match self.exist.get(folder) {
                Some(&exists) => exists,
                None => {
                    let exists = exists(Path::new(OsStr::from_bytes(folder)));
                    self.exist.insert(folder.into(), exists);
                    exists
                }
            };
            if !exists {
                return;
            }
        }
    }
}

/// The folders that an absolute path leads through, the outermost first, without the root.
fn folders(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = memchr::memchr_iter(b'/', path).skip(1).take(DEEPEST);
    ends.filter_map(|end| path.get(..end))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn each_folder_is_looked_for_once() {
        let asked = RefCell::new(Vec::new());
        let exists = |folder: &Path| {
            asked.borrow_mut().push(folder.to_str().map(str::to_owned).unwrap_or_default());
            folder == Path::new("/srv")
        };
        let mut missing = MissingFolders::default();
        assert!(!missing.have(b"/srv/app/src/a.js"));
        missing.add(b"/srv/app/src/a.js", exists);
        assert_eq!(*asked.borrow(), ["/srv", "/srv/app"]);
        for path in ["/srv/app/src/a.js", "/srv/app/b.js", "/srv/app/../b.js"] {
            assert!(missing.have(path.as_bytes()), "{path}");
        }
        for path in ["/srv/b.js", "/srv/app", "/srv/application/b.js", "/b.js", "/", ""] {
            assert!(!missing.have(path.as_bytes()), "{path}");
            missing.add(path.as_bytes(), exists);
        }
        assert_eq!(*asked.borrow(), ["/srv", "/srv/app", "/srv/application"]);
    }

    #[test]
    fn only_the_outer_folders_of_a_deep_path_are_looked_for() {
        let mut missing = MissingFolders::default();
        missing.add(&b"/a".repeat(1000), |_| true);
        assert_eq!(missing.exist.len(), DEEPEST);
    }
}
