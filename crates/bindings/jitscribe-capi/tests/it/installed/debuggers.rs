//! What debuggers see in a program that links the library.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::installed::running::Running;
use crate::installed::tree::{Link, compile, fresh, prefix, run};
use test_privilege::{Privilege, have};

/// The output of gdb for a program that it starts.
pub fn gdb(script: &[&str], words: &[&str]) -> String {
    let mut arguments = vec!["--args".to_owned()];
    arguments.extend(words.iter().map(|word| (*word).to_owned()));
    gdb_with(&arguments, script)
}

/// The output of gdb, without pagination, colours and questions.
pub fn gdb_with(arguments: &[String], script: &[&str]) -> String {
    let mut command = Command::new("gdb");
    command.args(["-q", "-nx", "-batch"]);
    for line in ["set breakpoint pending on", "set debuginfod enabled off", "set width 0"] {
        command.args(["-ex", line]);
    }
    for line in script {
        command.args(["-ex", line]);
    }
    debugger(command.args(arguments))
}

pub fn lldb(script: &[&str], words: &[&str]) -> String {
    let mut command = Command::new("lldb");
    command.args(["--no-lldbinit", "--batch"]);
    for line in script {
        command.args(["-o", line]);
    }
    debugger(command.arg("--").args(words))
}

fn debugger(command: &mut Command) -> String {
    let command = command.env("TERM", "dumb").env_remove("DEBUGINFOD_URLS");
    run(command.env_remove("JITSCRIBE").stdin(Stdio::null()))
}

/// The installed library, stripped of all symbols except those for dynamic linking.
fn stripped() -> PathBuf {
    let library = fresh("stripped").join("libjitscribe.so.0");
    let installed = prefix().join("lib/libjitscribe.so");
    run(Command::new("strip").arg("-o").arg(&library).arg(installed));
    library
}

/// With a slow debugger, each code of a burst is shown before its announcement returns if gdb,gdb-synchronous is set, and not
/// otherwise.
#[test]
fn gdb_synchronous_shows_each_code_of_a_burst_at_once() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let program = compile("tests/c/burst.c", Link::Shared, &[]);
    let program = program.to_str().expect("a path");
    let burst = |setting: &str| {
        let environment = format!("set environment JITSCRIBE {setting}");
        let said = gdb(&[&environment, "break finished", "run"], &[program, "3000"]);
        let (before, _) = said.split_once(" late\n").unwrap_or_else(|| panic!("{said}"));
        before.rsplit('\n').next().and_then(|count| count.parse().ok()).expect("a number")
    };
    let (each, usual): (u32, u32) = (burst("gdb,gdb-synchronous"), burst("gdb"));
    assert_eq!(each, 0);
    assert!(usual > 0, "{usual}");
}

/// No request is pending, and the program announces nothing more.
#[test]
fn a_debugger_that_attaches_later_is_detected() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let program = Running::start("tests/c/later.c", &[]);
    let said = program.attach(&["break later_code", "continue", "backtrace"]);
    assert!(said.contains("(later_code) pending"), "{said}");
    assert!(said.contains(" in later_code ()\n#1 "), "{said}");
    assert!(said.contains(" main () at "), "{said}");
}

/// The caller of code that changes rbx is shown with the value that the code saved, or with none: never with the code's own.
#[test]
fn registers_of_which_nothing_is_known_are_not_shown() {
    if !have(&[Privilege::Trace]) || !cfg!(target_arch = "x86_64") {
        return;
    }
    let program = compile("tests/c/registers.c", Link::Shared, &[]);
    let program = program.to_str().expect("a path");
    for (list, expected) in [("list", "0x1234567"), ("none", "<not saved>")] {
        // From the start, or later: then the code's description comes from the log.
        let stop = "break tick if $_any_caller_is(\"saver\", 2)";
        let show = ["frame function main", "print/x $rbx"];
        let started = gdb(&[&[stop, "run"], &show[..]].concat(), &[program, list]);
        let running = Running::start("tests/c/registers.c", &[list]);
        let attached = running.attach(&[&[stop, "continue"], &show[..]].concat());
        for said in [started, attached] {
            assert!(said.contains(&format!("\n$1 = {expected}\n")), "{list}: {said}");
        }
    }
}

/// Arguments and variables are in the object file alone, which the debugger gets as the runtime made it.
#[test]
fn a_symfile_of_the_runtime_s_own_has_arguments_and_variables() {
    if !have(&[Privilege::Trace]) || !cfg!(target_arch = "x86_64") {
        return;
    }
    let folder = fresh("symfile");
    let path = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
    let source = "int sum_of(int a, int b)\n{\n    int sum = a + b;\n    return sum;\n}\n";
    std::fs::write(path("add.c"), source).expect("a source");
    let tool = |program: &str, words: &[&str]| run(Command::new(program).args(words));
    tool("cc", &["-g", "-O0", "-fcf-protection=none", "-c", &path("add.c"), "-o", &path("add.o")]);
    tool("ld", &["-Ttext=0x20000000", "-e", "sum_of", &path("add.o"), "-o", &path("add")]);
    tool("objcopy", &["-O", "binary", "-j", ".text", &path("add"), &path("text")]);
    let program = compile("tests/c/symfile.c", Link::Shared, &[]);
    let program = program.to_str().expect("a path");
    let asked =
        ["break sum_of", "run", "info args", "next", "info locals", "backtrace", "continue"];
    let said = gdb(&asked, &[program, &path("text"), &path("add")]);
    assert!(said.contains("sum_of (a=19, b=23) at ") && said.contains("/add.c:3\n"), "{said}");
    assert!(said.contains("\na = 19\nb = 23\n") && said.contains("\nsum = 42\n"), "{said}");
    assert!(said.contains(" main (count="), "{said}");
    // It is gone with the code: the second call does not stop.
    assert!(said.contains("\ndone\n"), "{said}");
    let shown = ["set breakpoint pending on", "break 'a name that the object file does not have'"];
    let said = gdb(
        &[&shown[..], &["set environment JITSCRIBE gdb=off", "run"]].concat(),
        &[program, &path("text"), &path("add")],
    );
    assert!(said.contains("done") && !said.contains("Breakpoint 1, "), "{said}");
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn debuggers_see_code_of_a_stripped_library() {
        let program = compile("examples/c/tinyjit.c", Link::Shared, &[]);
        let program = program.to_str().expect("a path");
        // Used instead of the library that the loader would find: the soname is the same.
        let preload = format!("LD_PRELOAD={}", stripped().display());

        let environment = format!("set environment {}", preload.replacen('=', " ", 1));
        let said = gdb(
            &[&environment, "break add_42", "run", "backtrace", "info sharedlibrary"],
            &[program],
        );
        assert!(said.contains("#0  add_42 () at add.tiny:2\n"), "{said}");
        assert!(said.contains("in run (argument=1, ") && said.contains(" main (argc=1"), "{said}");
        assert!(said.contains("/stripped/libjitscribe.so.0"), "{said}");

        let environment = format!("settings set target.env-vars {preload}");
        let said = lldb(
            &[&environment, "breakpoint set -n add_42", "run", "thread backtrace", "image list"],
            &[program],
        );
        let frames: Vec<&str> = said.lines().filter(|line| line.contains("frame #")).collect();
        assert!(frames.iter().any(|frame| frame.ends_with("`add_42 at add.tiny:2:5")), "{said}");
        assert!(frames.iter().any(|frame| frame.contains("`main(argc=1")), "{said}");
        assert!(said.contains("/stripped/libjitscribe.so.0"), "{said}");
    }
}
