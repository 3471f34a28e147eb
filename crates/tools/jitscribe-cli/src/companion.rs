//! The paths of the libraries and programs installed with this command.

use std::path::{Path, PathBuf};

use crate::search_path;

/// The library of this name: beside this command, in `../lib/jitscribe` or in `../lib`.
pub fn library(name: &str) -> Option<PathBuf> {
    let own = own();
    let beside = own.parent().unwrap_or(Path::new("."));
    let folders = [beside.to_owned(), beside.join("../lib/jitscribe"), beside.join("../lib")];
    let mut paths = folders.iter().map(|folder| folder.join(name));
    paths.find_map(|path| path.canonicalize().ok())
}

/// The library that the environment variable names, else the one of this name.
pub fn named_library(variable: &str, name: &str) -> Option<PathBuf> {
    match std::env::var_os(variable) {
        Some(named) => PathBuf::from(named).canonicalize().ok(),
        None => library(name),
    }
}

/// The program of this name: beside this command, or on the `PATH`.
pub fn program(name: &str) -> Option<PathBuf> {
    let beside = own().with_file_name(name);
    let on_path = search_path::candidates(name.as_ref());
    std::iter::once(beside).chain(on_path).find(|path| path.is_absolute() && path.is_file())
}

/// The path of this command's executable; empty if unknown.
pub fn own() -> PathBuf {
    std::env::current_exe().and_then(std::fs::canonicalize).unwrap_or_default()
}
