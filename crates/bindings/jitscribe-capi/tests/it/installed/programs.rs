//! Programs in C and C++: run directly, under sanitizers, and under Valgrind.

use std::path::Path;
use std::process::Command;

use test_privilege::{Privilege, have};

use crate::installed::tree::{Link, compile, fresh, prefix, run};

const JIT_C: &str = "examples/c/tinyjit.c";
const JIT_CPP: &str = "examples/cpp/tinyjit.cpp";
const CHECK: &str = "tests/c/check.c";
const ARENA: &str = "tests/c/arena.c";
const ARENA_CPP: &str = "tests/cpp/arena.cpp";
const OBJECT: &str = "tests/c/object.c";
const THREADS: &str = "tests/c/threads.c";
const WRAPPER: &str = "tests/cpp/wrapper.cpp";
const SANITIZE: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// Runs a program, and checks its output.
fn passes(source: &str, command: &mut Command) {
    command.env_remove("JITSCRIBE");
    passes_as_it_is(source, command);
}

/// The same with the environment that the command has.
fn passes_as_it_is(source: &str, command: &mut Command) {
    let folder = tempfile::tempdir().expect("a folder");
    if [CHECK, ARENA, ARENA_CPP, OBJECT].contains(&source) {
        command.arg(folder.path());
    }
    let said = run(command);
    let expected = match source {
        JIT_C => "43 44 ",
        JIT_CPP => "36",
        _ => "all is so",
    };
    assert!(said.starts_with(expected), "{said}");
}

/// `leaks`: whether to look for leaks, for which the sanitizer needs ptrace.
fn passes_sanitized(source: &str, leaks: bool) {
    let program = compile(source, Link::Static, &SANITIZE);
    let options = format!("detect_stack_use_after_return=1:detect_leaks={}", u8::from(leaks));
    passes(source, Command::new(program).env("ASAN_OPTIONS", options));
}

fn passes_valgrind(source: &str) {
    let program = compile(source, Link::Shared, &[]);
    // In its home, the library keeps what Valgrind is shown. The real one may be read-only.
    let home = fresh("home-under-valgrind");
    passes(source, valgrind(&program).env("HOME", home).env_remove("XDG_RUNTIME_DIR"));
}

fn valgrind(program: &Path) -> &mut Command {
    let mut command = Command::new("valgrind");
    // As hosts' own tests have it: memory that no pointer leads to, or only into its middle, is an error.
    command.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]);
    command.arg("--trace-children=yes").arg(program);
    Box::leak(Box::new(command))
}

const ALL: [&str; 7] = [JIT_C, JIT_CPP, CHECK, WRAPPER, ARENA, ARENA_CPP, OBJECT];

/// The examples; invalid calls; the wrapper, which owns its handles; code in an arena; an object, which is loaded.
#[test]
fn all_pass_with_the_shared_and_with_the_static_library() {
    for source in ALL {
        for link in [Link::Shared, Link::Static] {
            passes(source, &mut Command::new(compile(source, link, &[])));
        }
    }
}

#[test]
fn the_wrapper_needs_no_exceptions() {
    let program = compile(WRAPPER, Link::Shared, &["-fno-exceptions", "-fno-rtti"]);
    passes(WRAPPER, &mut Command::new(program));
}

#[test]
fn all_pass_under_address_and_undefined_behaviour_sanitizer() {
    let leaks = have(&[Privilege::Trace]);
    for source in ALL {
        passes_sanitized(source, leaks);
    }
}

#[test]
fn all_pass_under_memcheck() {
    for source in ALL {
        passes_valgrind(source);
    }
}

/// The unwinder that the program's exceptions use: a shared library's, its own, or that of a program without any shared library.
#[test]
fn exceptions_go_through_code_however_the_unwinder_is_linked() {
    let source = "tests/cpp/exceptions.cpp";
    for (link, options) in [
        (Link::Shared, &[][..]),
        (Link::Static, &[]),
        (Link::Static, &["-static-libgcc"]),
        (Link::Static, &["-static-libgcc", "-static-libstdc++"]),
        (Link::Static, &["-static"]),
    ] {
        passes(source, &mut Command::new(compile(source, link, options)));
    }
}

/// Whatever is written, nothing of it is taken for lost at the end.
#[test]
fn no_publisher_fails_a_host_s_leak_check() {
    let program = compile(JIT_C, Link::Shared, &[]);
    let home = fresh("home-of-leak-checks");
    for publishers in ["jitdump", "perf-map", "gdb", "unwinders", "crash", "valgrind"] {
        let command = valgrind(&program);
        command.env("JITSCRIBE", publishers).env("JITSCRIBE_DIR", &home).env("HOME", &home);
        passes_as_it_is(JIT_C, command.env_remove("XDG_RUNTIME_DIR"));
    }
}

/// What an environment turns on for [`THREADS`].
const PUBLISHERS: [&str; 3] = ["", "log,bytes,strict,unknown", "perf-map,gdb,unwinders"];

/// [`THREADS`] as `command` runs it, with all publishers.
fn passes_with_publishers(command: impl Fn() -> Command) {
    let folder = tempfile::tempdir().expect("a folder");
    for publishers in PUBLISHERS {
        let mut command = command();
        command.env("JITSCRIBE", publishers).env("HOME", folder.path());
        passes_as_it_is(THREADS, command.env_remove("XDG_RUNTIME_DIR"));
    }
}

/// The races that both tools see in atomic instructions are suppressed by the file that is installed.
#[test]
fn no_race_is_reported_with_the_suppressions() {
    let suppressions = prefix().join("share/jitscribe/jitscribe.supp");
    for link in [Link::Shared, Link::Static] {
        let program = compile(THREADS, link, &[]);
        for tool in ["helgrind", "drd"] {
            passes_with_publishers(|| {
                let mut command = Command::new("valgrind");
                command.args(["--quiet", "--error-exitcode=9", &format!("--tool={tool}")]);
                if link == Link::Static {
                    command.arg("--num-callers=50");
                }
                command.arg(format!("--suppressions={}", suppressions.display())).arg(&program);
                command
            });
        }
    }
}

#[test]
fn thread_sanitizer_reports_nothing() {
    let program = compile(THREADS, Link::Static, &["-fsanitize=thread"]);
    passes_with_publishers(|| Command::new(&program));
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn memory_sanitizer_reports_nothing() {
        for source in [JIT_C, CHECK, THREADS] {
            for link in [Link::Shared, Link::Static] {
                let program = compile(source, link, &["-fsanitize=memory"]);
                passes(source, &mut Command::new(program));
            }
        }
        let program = compile(THREADS, Link::Static, &["-fsanitize=memory"]);
        passes_with_publishers(|| Command::new(&program));
    }
}

/// Checks that the tests above can fail.
#[test]
fn a_buffer_overflow_is_detected() {
    let source = "tests/c/overread.c";
    let sanitized = compile(source, Link::Static, &SANITIZE);
    let plain = compile(source, Link::Shared, &[]);
    for command in [&mut Command::new(sanitized), valgrind(&plain)] {
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{command:?}");
        assert!(said.contains("overflow") || said.contains("Invalid read"), "{said}");
    }
}
