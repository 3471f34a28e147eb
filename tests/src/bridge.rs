//! Commands run by `jitscribe run`, and what they run.

use std::fmt::Write as _;
use std::path::Path;

use tempfile::TempDir;

use crate::jitscribe::{jitscribe, preload};
use crate::tool::{ToolOutput, run, tool};

/// `jitscribe run --with TOOL OPTIONS -- COMMAND` in a folder of its own.
pub fn run_with(dir: &Path, with: &[&str], command: &[&str]) -> ToolOutput {
    drop(tool(command[0]));
    let mut all = jitscribe();
    all.arg("run").arg("--with").args(with).arg("--").args(command);
    all.env("JITSCRIBE_PRELOAD", preload()).current_dir(dir);
    if ["gdb", "lldb"].contains(&with[0]) {
        // Otherwise code that is created in a burst may run before the debugger was informed.
        all.env("JITSCRIBE", "gdb,gdb-synchronous");
    }
    // Code is compiled by a thread; what it is too late for on a busy machine would not be jitted.
    run(all.env("MVM_SPESH_BLOCKING", "1"))
}

/// A folder with this file in it.
pub fn folder_with(name: &str, text: &str) -> TempDir {
    let dir = TempDir::with_prefix("jitscribe-bridge-").expect("a folder");
    std::fs::write(dir.path().join(name), text).expect("a file");
    dir
}

/// Raku that counts letters, as in KDE's bug 492835.
pub fn letters(dir: &Path, count: u64) -> &'static str {
    let mut words = String::new();
    for number in 0..count {
        _ = writeln!(words, "word{}abc{}", number * 7919 % 100_003, number % 13);
    }
    std::fs::write(dir.join("words"), words).expect("a file");
    "my %idx; for \"words\".IO.lines { for .comb { %idx{$_}++ } }; say %idx.sort.tail(10);"
}
