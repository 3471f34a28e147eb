//! The folder in which LLVM's listener for perf, oneDNN and others write their jitdumps.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::text;

/// The folder for programs that have our environment: below `$JITDUMPDIR`, or below the home.
pub fn of_environment() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let top = set("JITDUMPDIR").or_else(|| set("HOME"))?;
    Some(Path::new(&top).join(".debug/jit"))
}

/// Why this user cannot create files in a folder that its writer creates if it is not there; `None` if they can.
pub fn obstacle(folder: &Path) -> Option<String> {
    let there = folder.ancestors().find(|part| part.symlink_metadata().is_ok())?;
    let cause = if !there.is_dir() {
        "not a folder".to_owned()
    } else {
        access(there, Access::WRITE_OK | Access::EXEC_OK).err()?.to_string()
    };
    Some(format!(
        "its jitdump belongs into {}, where it cannot create a file: {}: {cause}; JITDUMPDIR=DIR chooses another folder",
        text::path(folder),
        text::path(there)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_created_is_named() {
        let top = tempfile::tempdir().expect("a folder");
        let folder = top.path().join(".debug/jit");
        assert_eq!(obstacle(&folder), None);
        std::fs::write(top.path().join(".debug"), "text").expect("a file");
        let why = obstacle(&folder).expect("an obstacle");
        assert!(why.contains("/.debug: not a folder"), "{why}");
    }
}
