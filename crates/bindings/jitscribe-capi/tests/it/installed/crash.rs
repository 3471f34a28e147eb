//! Code that crashes is in the core file with names, lines and frames, for a gdb without the reader.

use std::path::PathBuf;

use crate::installed::running::Running;
use crate::installed::tree::fresh;
use test_privilege::{Privilege, have};

/// Starts the program with a handler of this kind.
fn start(handler: &str) -> Running {
    Running::start("tests/c/crash.c", &[handler])
}

/// An attached gdb that lets the program crash, up to the first signal.
fn crash(program: &Running, then: &[&str]) -> String {
    let script = [&["set variable begin = 1", "continue", "echo @first\\n", "backtrace"], then];
    program.attach(&script.concat())
}

/// The stack of the crash, outwards from jitted code.
fn is_known(said: &str) -> bool {
    let Some((_, stack)) = said.rsplit_once("fault () at crash.tiny:6\n") else { return false };
    let mut lines = stack.lines();
    lines.next().is_some_and(|frame| frame.ends_with(" in outer () at crash.tiny:2"))
        && lines.next().is_some_and(|frame| frame.contains(" in main (argc="))
}

fn core(handler: &str) -> PathBuf {
    fresh(&format!("crash-{handler}")).join("core")
}

/// The core file that the kernel would write if gdb had not stopped the program first.
fn at_the_end(handler: &str) -> String {
    let program = start(handler);
    let core = core(handler);
    // The signal is raised again, and ends the process.
    let save = format!("generate-core-file {}", core.display());
    let said = crash(&program, &["continue", "echo @second\\n", &save, "kill"]);
    assert!(said.matches("received signal SIGSEGV").count() == 2, "{said}");
    let (first, _) = said.split_once("@second").expect("a second signal");
    assert!(!is_known(first), "shown before the crash: {said}");
    program.read(&core, &["backtrace"])
}

/// Also if the program's own handler, which runs first, gives up.
#[test]
fn a_crash_shows_its_code() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    for handler in ["plain", "gives-up"] {
        let said = at_the_end(handler);
        assert!(is_known(&said), "{handler}: {said}");
    }
}

#[test]
fn a_signal_that_a_handler_repairs_is_not_a_crash() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let program = start("goes-on");
    let said = crash(&program, &["tbreak puts", "continue", "backtrace", "info functions ^outer$"]);
    assert!(said.contains("in main (argc="), "{said}");
    assert!(!said.contains(" outer"), "{said}");
}

/// The handler lets a debugger look while it runs.
#[test]
fn a_handler_can_show_code_itself() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let program = start("asks");
    let core = core("asks");
    let save = format!("generate-core-file {}", core.display());
    let said = crash(&program, &["tbreak look", "continue", &save, "kill"]);
    assert!(said.matches("received signal SIGSEGV").count() == 1, "{said}");
    let said = program.read(&core, &["backtrace"]);
    assert!(said.contains("in asks (number=11)"), "{said}");
    assert!(said.contains("<signal handler called>") && is_known(&said), "{said}");
}
