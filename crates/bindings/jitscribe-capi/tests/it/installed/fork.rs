//! A process that shows its code to debuggers forks while another thread is changing the list.

use std::process::Command;

use crate::installed::debuggers::gdb;
use crate::installed::tree::{Link, compile, run};
use test_privilege::{Privilege, have};

const FORK: &str = "tests/c/fork.c";

/// The child checks its list itself: now and then, the other thread was changing it at the fork.
#[test]
fn the_list_of_a_child_is_valid_and_complete() {
    for link in [Link::Shared, Link::Static] {
        let said = run(Command::new(compile(FORK, link, &[])).arg("60").env("JITSCRIBE", "gdb"));
        assert_eq!(said, "all is so\n");
    }
}

/// With a debugger attached, that thread is always changing it.
#[test]
fn a_debugger_that_follows_the_child_has_its_code() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let program = compile(FORK, Link::Shared, &[]);
    let program = program.to_str().expect("a path");
    let script = [
        "set follow-fork-mode child",
        "set detach-on-fork off",
        "break child_code",
        "run",
        "backtrace",
        "info symbol room",
        "info symbol (char *)room + 16",
        "continue",
        "backtrace",
        "info symbol (char *)room + 16",
        "info symbol (char *)room + 32",
        "continue",
    ];
    let said = gdb(&script, &[program, "1"]);
    assert_eq!(said.matches("child () at ").count(), 2, "{said}");
    assert_eq!(said.matches("child_code in section .text of ").count(), 2, "{said}");
    assert!(said.contains("parent_code in section .text of "), "{said}");
    assert!(!said.contains("short_life"), "{said}");
    assert!(said.contains("exited normally]"), "{said}");
}
