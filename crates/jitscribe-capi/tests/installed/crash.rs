//! Code that crashes is in the core file with names, lines and frames, for a gdb that knows of no reader.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::debuggers::gdb_with;
use crate::tree::{Link, compile, fresh};

/// A program that is about to crash.
struct Program {
    child: Child,
    path: PathBuf,
}

impl Program {
    fn start(handler: &str) -> Self {
        let path = compile("tests/c/crash.c", Link::Shared, &[]);
        let mut command = Command::new(&path);
        command.arg(handler).env_remove("JITSCRIBE").stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        Self { child, path }
    }

    /// A gdb that is attached, and has it crash: up to the first signal.
    fn crash(&self, then: &[&str]) -> String {
        let script = [&["set variable begin = 1", "continue", "echo @first\\n", "backtrace"], then];
        gdb_with(&["-p".to_owned(), self.child.id().to_string()], &script.concat())
    }

    /// What another gdb finds in a core file.
    fn read(&self, core: &Path) -> String {
        gdb_with(&[self.path.display().to_string(), core.display().to_string()], &["backtrace"])
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        self.child.wait().expect("it is ours");
    }
}

/// Stack of the crash, outwards from jitted code.
fn is_known(said: &str) -> bool {
    let Some((_, stack)) = said.rsplit_once("fault () at crash.tiny:6\n") else { return false };
    let mut lines = stack.lines();
    lines.next().is_some_and(|frame| frame.ends_with(" in outer () at crash.tiny:2"))
        && lines.next().is_some_and(|frame| frame.contains(" in main (argc="))
}

fn core(name: &str) -> PathBuf {
    fresh(name).join("core")
}

/// The core that the kernel would write, had gdb not been there first.
fn at_the_end(handler: &str, name: &str) -> String {
    let program = Program::start(handler);
    let core = core(name);
    // The signal comes again: of it the process dies.
    let save = format!("generate-core-file {}", core.display());
    let said = program.crash(&["continue", "echo @second\\n", &save, "kill"]);
    assert!(said.matches("received signal SIGSEGV").count() == 2, "{said}");
    let (first, _) = said.split_once("@second").expect("a second signal");
    assert!(!is_known(first), "shown before the crash: {said}");
    program.read(&core)
}

#[test]
fn a_crash_shows_its_code() {
    let said = at_the_end("plain", "crash-plain");
    assert!(is_known(&said), "{said}");
}

#[test]
fn a_handler_that_gives_up_comes_first() {
    let said = at_the_end("gives-up", "crash-gives-up");
    assert!(is_known(&said), "{said}");
}

#[test]
fn what_a_handler_mends_is_no_crash() {
    let program = Program::start("goes-on");
    let said = program.crash(&["tbreak puts", "continue", "backtrace", "info functions ^outer$"]);
    assert!(said.contains("in main (argc="), "{said}");
    assert!(!said.contains(" outer"), "{said}");
}

/// It has a debugger look while it runs.
#[test]
fn a_handler_can_ask() {
    let program = Program::start("asks");
    let core = core("crash-asks");
    let save = format!("generate-core-file {}", core.display());
    let said = program.crash(&["tbreak look", "continue", &save, "kill"]);
    assert!(said.matches("received signal SIGSEGV").count() == 1, "{said}");
    let said = program.read(&core);
    assert!(
        said.contains("in asks (number=11)") && said.contains("<signal handler called>"),
        "{said}"
    );
    assert!(is_known(&said), "{said}");
}
