//! Several libraries that show code to debuggers in one process.

use std::path::PathBuf;
use std::process::Command;

use crate::installed::debuggers::{gdb, lldb};
use crate::installed::tree::{Link, compile, fresh, prefix, run};

/// The program, the installed library, and a copy of it.
fn words(name: &str, flags: &[&str]) -> [String; 3] {
    let program = compile("tests/c/guests.c", Link::Static, flags);
    let library = prefix().join("lib/libjitscribe.so");
    let copy = fresh(name).join("another.so");
    std::fs::copy(&library, &copy).expect("a copy");
    [program, library, copy].map(|path: PathBuf| path.display().to_string())
}

/// The frames of jitted code that gdb and lldb find, from the innermost on.
fn seen(name: &str, flags: &[&str]) -> [Vec<&'static str>; 2] {
    let words = words(name, flags);
    let words = words.each_ref().map(String::as_str);
    let setting = "set environment JITSCRIBE gdb";
    let in_gdb = gdb(&[setting, "break bottom", "run", "backtrace", "continue"], &words);
    assert!(in_gdb.contains("all is so"), "{in_gdb}");
    let setting = "settings set target.env-vars JITSCRIBE=gdb";
    let in_lldb = lldb(&[setting, "breakpoint set -n bottom", "run", "thread backtrace"], &words);
    [frames(&in_gdb), frames(&in_lldb)]
}

fn frames(said: &str) -> Vec<&'static str> {
    let is_in = |line: &str, name: &str| {
        line.contains(&format!(" {name} ()")) || line.contains(&format!("`{name}"))
    };
    let all = ["second_copy", "first_copy", "static_code", "llvm_code"];
    let frames = said.lines().filter(|line| line.contains('#'));
    frames.filter_map(|line| all.into_iter().find(|name| is_in(line, name))).collect()
}

/// Each library has a list of its own: gdb reads one for each object file, lldb only the first that it finds.
#[test]
fn copies_of_the_library_with_separate_lists() {
    let [in_gdb, in_lldb] = seen("copies", &[]);
    assert_eq!(in_gdb, ["second_copy", "first_copy"]);
    assert_eq!(in_lldb, ["first_copy"]);
}

/// The program exports its symbols, and so all share its list.
#[test]
fn copies_of_the_library_that_share_the_programs_list() {
    let flags = [
        "-DWITH_OURS",
        "-Wl,--export-dynamic-symbol=__jit_debug_descriptor",
        "-Wl,--export-dynamic-symbol=__jit_debug_register_code",
    ];
    let all = ["second_copy", "first_copy", "static_code"];
    assert_eq!(seen("shared", &flags), [all.to_vec(), all.to_vec()]);
}

/// LLVM's library has the symbols, and the linker exports those of the program automatically. LLVM calls a
/// function of its own to inform debuggers, where lldb has no breakpoint.
#[test]
fn llvm_shares_the_programs_list() {
    let llvm = run(Command::new("llvm-config-14").args(["--cflags", "--ldflags", "--libs"]));
    // Its headers do not compile without warnings.
    let llvm = llvm.split_whitespace().filter(|flag| *flag != "-D_GNU_SOURCE");
    let llvm: Vec<String> = llvm.map(|flag| flag.replacen("-I", "-isystem", 1)).collect();
    let mut flags = vec!["-DWITH_OURS", "-DWITH_LLVM", "-Wl,--no-as-needed"];
    flags.extend(llvm.iter().map(String::as_str));
    let all = ["second_copy", "first_copy", "static_code", "llvm_code"];
    assert_eq!(seen("guests", &flags), [all.to_vec(), all[..3].to_vec()]);
}
