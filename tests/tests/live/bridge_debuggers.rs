//! Runtimes that do not link the library, run by `jitscribe run` under debuggers.

use std::path::Path;

use end_to_end::bridge::{folder_with, letters, run_with};
use end_to_end::tool::{argument, cache, run, tool};
use tempfile::TempDir;

/// Frames of a stack, each containing these words, from the innermost outward: others may be between them.
fn expect_stack(printed: &str, frames: &[&str]) {
    let mut lines = printed.lines().filter(|line| {
        let line = line.trim_start_matches([' ', '*']);
        line.starts_with('#') || line.starts_with("frame #")
    });
    for frame in frames {
        assert!(lines.any(|line| line.contains(frame)), "{frame}: {printed}");
    }
}

/// What gdb prints that runs a program by these commands.
fn gdb(dir: &Path, options: &[&str], commands: &[&str], program: &[&str]) -> String {
    let mut with = [&["gdb", "-batch"], options].concat();
    with.extend(["-ex", "set breakpoint pending on", "-ex", "set width 0"]);
    with.extend(commands.iter().flat_map(|command| ["-ex", command]));
    run_with(dir, &with, program).stdout
}

/// Stops at a function's call that comes after so many, and prints the stack.
fn stack_in_gdb(dir: &Path, function: &str, after: u32, program: &[&str]) -> String {
    let (stop, ignore) = (format!("break {function}"), format!("ignore 1 {after}"));
    gdb(dir, &[], &[&stop, &ignore, "run", "backtrace", "kill"], program)
}

/// As [`stack_in_gdb`], but goes on, call after call, until the stack has these words in it: when a runtime has compiled what
/// it is to compile may be another call each time.
fn stack_in_gdb_with(dir: &Path, function: &str, words: &str, command: &[&str]) -> String {
    let until = format!(
        "import gdb
while '{words}' not in gdb.execute('backtrace', to_string=True):
    gdb.execute('continue')
"
    );
    std::fs::write(dir.join("until.py"), until).expect("a file");
    let stop = format!("break {function}");
    let commands = [&stop, "ignore 1 500", "run", "source until.py", "backtrace", "kill"];
    gdb(dir, &[], &commands, command)
}

/// A function of Raku stands between those of the interpreter and of the C library that it calls, in a stack that ends
/// in `main`.
#[test]
fn rakudo_under_gdb() {
    let dir = TempDir::with_prefix("jitscribe-bridge-").expect("a folder");
    let script = letters(dir.path(), 3_000);
    let first = ["break '(-e:1)'", "run", "delete"];
    let then = ["break MVM_string_substring", "continue", "backtrace"];
    let program = ["rakudo-m", "-e", script];
    let printed = gdb(dir.path(), &[], &[first, then].concat(), &program);
    let frames: Vec<&str> = printed.lines().filter(|line| line.starts_with('#')).collect();
    let of = |name: &str| frames.iter().position(|frame| frame.contains(name));
    // Whichever function of the script's, or of what it calls, takes a string apart.
    let raku = of("(-e:").or(of("(SETTING::")).or(of(".nqp:"));
    let stack = [of("MVM_string_substring"), raku, of("MVM_interp_run"), of("__libc_start")];
    assert!(stack.iter().all(Option::is_some) && stack.is_sorted(), "{printed}");
}

/// The same in LLDB.
#[test]
fn rakudo_under_lldb() {
    let dir = TempDir::with_prefix("jitscribe-bridge-").expect("a folder");
    let script = letters(dir.path(), 3_000);
    let setting = "settings set target.process.stop-on-exec false";
    let stop = "breakpoint set -n MVM_string_substring -i 20000";
    let with = ["lldb", "-b", "-o", setting, "-o", stop, "-o", "run", "-o", "bt", "-o", "kill"];
    let printed = run_with(dir.path(), &with, &["rakudo-m", "-e", script]).stdout;
    expect_stack(&printed, &["MVM_string_substring", "JIT(", "MVM_interp_run", "__libc_start"]);
}

const JS: &str = "function inner(n) {
    let s = 0;
    for (let i = 0; i < n; i++) s += Math.sqrt(i);
    process.umask();
    return s;
}
function outer(n) { return inner(n) + 1; }
let s = 0;
for (let i = 0; i < 3000; i++) s += outer(1000);
";

/// Functions that are interpreted, compiled by the baseline compiler and optimized, all between node's own.
#[test]
fn node_under_gdb() {
    let dir = folder_with("umask.js", JS);
    // What is hot is compiled there and then.
    let command = ["node", "--no-concurrent-recompilation", "umask.js"];
    let printed = stack_in_gdb_with(dir.path(), "umask", ":*inner", &command);
    let frames = [
        "umask ()",
        "node::Umask",
        "wrappedUmask",
        ":*inner",
        "outer",
        ":~Module._compile",
        "run_main_module",
        "v8::Function::Call",
        "node::Start",
        "__libc_start_main",
    ];
    expect_stack(&printed, &frames);
}

const PHP: &str = "<?php
function inner($n) { $s = 0; for ($i = 0; $i < $n; $i++) $s += $i & 7; umask(); return $s; }
function outer($n) { return inner($n) + 1; }
for ($i = 0; $i < 3000; $i++) outer(100);
";

/// A trace has its callers in it, and is in the frame of PHP's interpreter. A debugger starts programs: of a script it is given
/// the shell, and stays with the process.
#[test]
fn php_under_gdb() {
    let dir = folder_with("umask.php", PHP);
    let script = dir.path().join("script");
    std::fs::write(&script, "#!/bin/sh\nexec \"$@\"\n").expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&script, mode).expect("its mode");
    let options = "-dopcache.enable_cli=1 -dopcache.jit=tracing -dopcache.jit_buffer_size=64M";
    let script = argument(script);
    let options: Vec<&str> = options.split(' ').collect();
    let by_script = [&[&script, "php"], &options[..], &["umask.php"]].concat();
    for command in [&["php", "umask.php"][..], &by_script] {
        let printed = stack_in_gdb(dir.path(), "umask", 2_500, command);
        let frames = ["umask ()", "TRACE-", "zend_execute ()", "php_execute_script ()"];
        expect_stack(&printed, &[&frames[..], &["__libc_start_main"]].concat());
    }
}

/// CPython 3.13 of Debian 13, as a program that a debugger can start: one that finds its dynamic linker and libraries itself.
fn python(dir: &Path) -> std::path::PathBuf {
    let root = cache().join("trixie/root/usr");
    let (python, libraries) = (dir.join("python3.13"), root.join("lib/x86_64-linux-gnu"));
    std::fs::copy(root.join("bin/python3.13"), &python)
        .unwrap_or_else(|error| panic!("Python 3.13: {error}: run scripts/setup.sh test"));
    let mut patch = tool("patchelf");
    patch.arg("--set-interpreter").arg(libraries.join("ld-linux-x86-64.so.2"));
    run(patch.arg("--force-rpath").arg("--set-rpath").arg(libraries).arg(&python));
    python
}

/// Each function of Python is in the stack, also those that are called for the first time right before the stop.
#[test]
fn cpython_under_gdb() {
    let dir = TempDir::with_prefix("jitscribe-bridge-").expect("a folder");
    let many: String = (0..400).map(|n| format!("def f{n}(): return f{}()\n", n + 1)).collect();
    let script = format!(
        "import os, sys\nsys.setrecursionlimit(5000)\n{many}def f400(): return os.umask(18)\nf0()\n"
    );
    std::fs::write(dir.path().join("deep.py"), script).expect("a file");
    let python = python(dir.path());
    // Python finds its modules by it, and gdb has another Python in it.
    let home = format!("set environment PYTHONHOME={}", cache().join("trixie/root/usr").display());
    let program = [python.to_str().expect("UTF-8"), "deep.py"];
    let commands = ["break umask", "run", "backtrace", "kill"];
    let printed = gdb(dir.path(), &["-iex", &home], &commands, &program);
    let functions: Vec<String> = (0..=400).rev().map(|n| format!("py::f{n}:")).collect();
    let mut frames = vec!["umask ()"];
    frames.extend(functions.iter().map(String::as_str));
    frames.extend(["py::<module>:", "Py_BytesMain ()", "_start ()"]);
    expect_stack(&printed, &frames);
}
