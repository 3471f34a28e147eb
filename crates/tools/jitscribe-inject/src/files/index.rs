//! An index of the files in searched folders.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::SourceFiles;
use super::name::pid_of_v8_log;

/// The files in some folders, by name, in the order in which the folders were added.
#[derive(Debug, Default)]
pub struct Index {
    by_name: BTreeMap<Box<OsStr>, Vec<PathBuf>>,
    jitdumps: Vec<(u32, PathBuf)>,
    /// The first jitdump of each process.
    by_pid: HashMap<u32, PathBuf>,
    /// The code logs of V8 of each process.
    v8_logs: HashMap<u32, Vec<PathBuf>>,
    /// The number of files visited.
    seen: usize,
}

/// The depth to which subfolders are searched: LLVM's dumps are in `.debug/jit/llvm-IR-jit-…/`.
const DEPTH: usize = 6;

/// The maximum number of files that are visited.
const MANY_FILES: usize = 100_000;

impl Index {
    /// Adds all files of a folder and its subfolders.
    pub fn add_all(&mut self, folder: &Path, files: &dyn SourceFiles) {
        self.add(folder, DEPTH, &|_| true, files);
    }

    /// Adds the files directly in a folder whose names are `wanted`.
    pub fn add_some(
        &mut self,
        folder: &Path,
        wanted: &dyn Fn(&[u8]) -> bool,
        files: &dyn SourceFiles,
    ) {
        self.add(folder, 1, wanted, files);
    }

    /// Adds the files of a folder and its subfolders whose names are `wanted`.
    pub fn add_some_within(
        &mut self,
        folder: &Path,
        wanted: &dyn Fn(&[u8]) -> bool,
        files: &dyn SourceFiles,
    ) {
        self.add(folder, DEPTH, wanted, files);
    }

    fn add(
        &mut self,
        folder: &Path,
        depth: usize,
        wanted: &dyn Fn(&[u8]) -> bool,
        files: &dyn SourceFiles,
    ) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        let left = MANY_FILES.saturating_sub(self.seen);
        let mut entries: Vec<fs::DirEntry> = entries.flatten().take(left).collect();
        self.seen += entries.len();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() && depth > 1 {
                self.add(&path, depth - 1, wanted, files);
            } else if kind.is_file() && wanted(entry.file_name().as_bytes()) {
                if let Some(pid) = pid_of_v8_log(entry.file_name().as_bytes()) {
                    self.v8_logs.entry(pid).or_default().push(path.clone());
                } else if let Some(pid) = files.jitdump_pid(&path) {
                    self.jitdumps.push((pid, path.clone()));
                    self.by_pid.entry(pid).or_insert_with(|| path.clone());
                }
                self.by_name.entry(entry.file_name().into()).or_default().push(path);
            }
        }
    }

    /// The files with this name.
    pub fn named(&self, name: &OsStr) -> impl Iterator<Item = &Path> {
        self.by_name.get(name).into_iter().flatten().map(PathBuf::as_path)
    }

    /// The first jitdump with this process in its header.
    pub fn jitdump_of(&self, pid: u32) -> Option<PathBuf> {
        self.by_pid.get(&pid).cloned()
    }

    /// The code logs of V8 with this process in their names.
    pub fn v8_logs_of(&self, pid: u32) -> &[PathBuf] {
        self.v8_logs.get(&pid).map(Vec::as_slice).unwrap_or_default()
    }

    /// All jitdumps, with the pids in their headers.
    pub fn jitdumps(&self) -> Vec<(u32, PathBuf)> {
        self.jitdumps.clone()
    }
}
