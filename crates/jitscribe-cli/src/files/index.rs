//! Folders that are searched.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::jitdump_pid;

/// The files in some folders, by name, in the order in which the folders were added.
#[derive(Debug, Default)]
pub struct Index {
    by_name: BTreeMap<Box<OsStr>, Vec<PathBuf>>,
    jitdumps: Vec<(u32, PathBuf)>,
    /// How many files were looked at.
    seen: usize,
}

/// Folders within folders are searched to this depth: LLVM's lie in `.debug/jit/llvm-IR-jit-…/`.
const DEPTH: usize = 6;

/// More files than this are not looked at.
const MANY_FILES: usize = 100_000;

impl Index {
    /// Adds the files of a folder and of those within it, whatever their names.
    pub fn add_all(&mut self, folder: &Path) {
        self.add(folder, DEPTH, &|_| true);
    }

    /// Adds the files that lie in a folder itself and whose names are `wanted`.
    pub fn add_some(&mut self, folder: &Path, wanted: &dyn Fn(&[u8]) -> bool) {
        self.add(folder, 1, wanted);
    }

    /// Adds the files of a folder and of those within it whose names are `wanted`.
    pub fn add_some_within(&mut self, folder: &Path, wanted: &dyn Fn(&[u8]) -> bool) {
        self.add(folder, DEPTH, wanted);
    }

    fn add(&mut self, folder: &Path, depth: usize, wanted: &dyn Fn(&[u8]) -> bool) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        let left = MANY_FILES.saturating_sub(self.seen);
        let mut entries: Vec<fs::DirEntry> = entries.flatten().take(left).collect();
        self.seen += entries.len();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() && depth > 1 {
                self.add(&path, depth - 1, wanted);
            } else if kind.is_file() && wanted(entry.file_name().as_bytes()) {
                if let Some(pid) = jitdump_pid(&path) {
                    self.jitdumps.push((pid, path.clone()));
                }
                self.by_name.entry(entry.file_name().into()).or_default().push(path);
            }
        }
    }

    /// The files with this name.
    pub fn named(&self, name: &OsStr) -> impl Iterator<Item = &Path> {
        self.by_name.get(name).into_iter().flatten().map(PathBuf::as_path)
    }

    /// A jitdump whose header says this process.
    pub fn jitdump_of(&self, pid: u32) -> Option<PathBuf> {
        let mut of_pid = self.jitdumps.iter().filter(|(owner, _)| *owner == pid);
        of_pid.next().map(|(_, path)| path.clone())
    }

    /// All jitdumps, with the pid in the header.
    pub fn jitdumps(&self) -> Vec<(u32, PathBuf)> {
        self.jitdumps.clone()
    }
}
