//! Where the shell looks for programs.

use std::ffi::OsStr;
use std::path::PathBuf;

/// The paths that a program of this name without a slash may have, in the order in which the shell tries them. Not all of them exist.
pub fn candidates(program: &OsStr) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&path).map(|folder| folder.join(program)).collect()
}
