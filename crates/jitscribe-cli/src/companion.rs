//! The libraries that come with this command: where they lie.

use std::path::{Path, PathBuf};

/// The library of this name: beside this command, or where libraries of programs in `bin` lie.
pub fn library(name: &str) -> Option<PathBuf> {
    let own = own();
    let beside = own.parent().unwrap_or(Path::new("."));
    let folders = [beside.to_owned(), beside.join("../lib/jitscribe"), beside.join("../lib")];
    let mut paths = folders.iter().map(|folder| folder.join(name));
    paths.find_map(|path| path.canonicalize().ok())
}

/// This command's own file; empty if nothing says where it lies.
pub fn own() -> PathBuf {
    std::env::current_exe().and_then(std::fs::canonicalize).unwrap_or_default()
}
