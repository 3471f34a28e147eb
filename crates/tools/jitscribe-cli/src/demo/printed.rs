//! What other commands print, and excerpts of it.

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

/// So many lines around the one with the greatest share.
pub fn excerpt_around<L>(annotated: &[L], lines: usize, share: impl Fn(&L) -> u64) -> &[L] {
    let hottest = annotated.iter().enumerate().max_by_key(|(_, line)| share(line));
    let start = hottest.map_or(0, |(at, _)| at.saturating_sub(lines / 2));
    let end = (start + lines).min(annotated.len());
    annotated.get(start..end).unwrap_or_default()
}
