//! Whether a command can be run.

use std::ffi::OsStr;
use std::path::PathBuf;

use rustix::fs::{Access, access};

use crate::{Error, Result, note, search_path, text};

/// Searches the program of a command as the shell does. If it cannot be run, reports that and returns the shell's
/// exit code: perf would only notice after it has started recording.
pub fn check_program(program: &OsStr) -> Result<()> {
    let refused = |cause: &str, code| {
        note::error(&format_args!("{}: {cause}", text::path(program)));
        Err(Error::Child(code))
    };
    let candidates: Vec<PathBuf> = if program.as_encoded_bytes().contains(&b'/') {
        vec![program.into()]
    } else {
        search_path::candidates(program)
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
