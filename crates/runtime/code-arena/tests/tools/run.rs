//! Running this program in a role, and tools.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// This program, in a role, with its files in a directory.
pub fn role(role: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env("ROLE", role).env("DIRECTORY", directory).env("RUST_BACKTRACE", "1");
    command
}

/// The output of a command, which must succeed.
pub fn output(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&stdout).into_owned();
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {status}\n{text}\n{said}");
    text
}

/// The one file that a role left.
pub fn file_in(directory: &Path) -> std::path::PathBuf {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "so"))
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}
