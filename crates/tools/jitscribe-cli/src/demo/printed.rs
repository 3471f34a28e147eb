//! What other commands print.

use std::path::Path;
use std::process::{Command, Stdio};

/// What perf prints of a recording, a line each; nothing if it fails.
pub fn perf(recording: &Path, words: &[&str]) -> Vec<String> {
    let Some((verb, options)) = words.split_first() else { return Vec::new() };
    let mut command = Command::new("perf");
    printed(command.arg(verb).arg("-i").arg(recording).args(options))
}

/// What a command prints, a line each; nothing if it fails.
pub fn printed(command: &mut Command) -> Vec<String> {
    let printed = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let printed = printed.map(|printed| printed.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&printed);
    // perf fills columns that it has nothing for.
    let plain = |line: &str| {
        line.trim_end().trim_end_matches("-      -").trim_end().replace('\t', "        ")
    };
    text.lines().map(plain).collect()
}
