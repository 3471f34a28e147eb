//! Whether a command can be run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::{Error, Result, note};

/// Finds the program of a command as the shell would, or says with the shell's exit code that it
/// cannot be run: perf's own word would come after it has begun to record.
pub fn check_program(program: &OsStr) -> Result<()> {
    let refused = |cause: &str, code| {
        note::error(&format_args!("{}: {cause}", Path::new(program).display()));
        Err(Error::Child(code))
    };
    let candidates: Vec<PathBuf> = if program.as_encoded_bytes().contains(&b'/') {
        vec![program.into()]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        std::env::split_paths(&path).map(|folder| folder.join(program)).collect()
    };
    let mut there = candidates.iter().filter(|path| path.is_file()).peekable();
    if there.peek().is_none() {
        return refused("command not found", 127);
    }
    if there.any(|path| access(path, Access::EXEC_OK).is_ok()) {
        Ok(())
    } else {
        refused("permission denied", 126)
    }
}
