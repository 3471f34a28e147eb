//! What gdb is told by the reader, of code that was never shown to it: the same as by the symbol files of the same code.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

use jitdump::extension::{control, log, tail};

use crate::debuggers::session::{Demo, Running, Said, gdb, gdb_with};
use test_privilege::{Privilege, have};

/// The library that gdb loads, which is built with the tests.
fn load_reader() -> String {
    let tests = std::env::current_exe().expect("a path");
    let library: PathBuf = tests.with_file_name("libjitscribe_gdb.so");
    assert!(library.is_file(), "no {}", library.display());
    format!("jit-reader-load {}", library.display())
}

/// The demo up to the twelfth call of the host by its code: twelve floors up in the tower, and what is asked there.
fn in_the_tower(setting: &str, before: &[&str], then: &[&str]) -> Said {
    in_the_tower_with(&[], setting, before, then)
}

/// The same with something to do before the demo begins.
fn in_the_tower_with(first: &[&str], setting: &str, before: &[&str], then: &[&str]) -> Said {
    let demo = Demo::new();
    // Where the stack begins depends on how long the environment is.
    let padding = format!("set environment PADDING {:x<1$}", "", 8 - setting.len());
    let setting = format!("set environment JITSCRIBE {setting}");
    let run = [&setting, &padding, "break demo_jit::native::code_of", "run"];
    gdb(&demo.words(), &[first, &run, &["ignore 1 10", "continue"], before, then].concat())
}

const QUESTIONS: [&str; 14] = [
    "echo @stack\\n",
    "backtrace -frame-info short-location",
    "echo @frame\\n",
    "frame 2",
    "echo @line\\n",
    "info line",
    "echo @list\\n",
    "list",
    "echo @assembly\\n",
    "disassemble /s",
    "echo @registers\\n",
    "info registers rsp rbp rbx r12 r13 r14 r15 rip",
    "echo @end\\n",
    "up",
];

/// Registers, without the addresses of what is on the heap: how much the publisher for gdb has allocated until then depends on
/// how fast gdb is. Without address space randomization, the program and its heap are at 0x5555….
fn without_heap(registers: &str) -> String {
    let is_on_heap = |word: &str| word.parse().is_ok_and(|value: u64| value >> 32 == 0x5555);
    let lines = registers.lines().map(|line| {
        let words = line.split_whitespace();
        words.map(|word| if is_on_heap(word) { "HEAP" } else { word }).collect::<Vec<_>>().join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_reader_says_what_symbol_files_do() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let shown = in_the_tower("gdb", &[], &QUESTIONS);
    let reader = load_reader();
    // The first time, gdb has the log locator for a file without symbols.
    let read = in_the_tower("gdb=off", &[&reader, "jit-reader-unload", &reader], &QUESTIONS);
    let unread = in_the_tower("gdb=off", &[], &QUESTIONS);
    for part in ["stack", "frame", "line", "list", "assembly"] {
        assert_eq!(read.part(part), shown.part(part), "{part}");
        assert_ne!(unread.part(part), shown.part(part), "{part}");
    }
    let [read_registers, shown_registers, unread_registers] =
        [&read, &shown, &unread].map(|said| without_heap(said.part("registers")));
    assert_eq!(read_registers, shown_registers);
    assert_ne!(unread_registers, shown_registers);
    let stack = read.whole_stack();
    assert_eq!(stack.matches(" in baseline::tower ()").count(), 12, "{stack}");
}

/// Code that is announced after gdb asked for names is unwound all the same.
#[test]
fn code_that_came_later_is_unwound() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let asked = ["echo @stack\\n", "backtrace"];
    let said = in_the_tower_with(&[&load_reader()], "gdb=off", &[], &asked);
    let stack = said.whole_stack();
    assert_eq!(stack.matches(" in demo_jit::native::apply").count(), 12, "{stack}");
}

#[test]
fn the_reader_reads_a_process_that_runs_and_its_core() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let running = Running::start("gdb=off");
    let core = running.demo.dir().join("core");
    let save = format!("generate-core-file {}", core.display());
    let reader = load_reader();
    let live = gdb_with(
        &["-iex".to_owned(), reader.clone(), "-p".to_owned(), running.pid()],
        &["echo @stack\\n", "backtrace", "echo @core\\n", &save],
    );
    let stack = live.whole_stack();
    // Wherever it is now: in code of the first phase, or in what that calls.
    let jitted: Vec<&str> = stack.lines().filter(|frame| frame.contains(" baseline::")).collect();
    assert!(!jitted.is_empty() && !stack.contains("?? ()"), "{stack}");
    assert!(jitted.iter().all(|frame| frame.contains(" () at DIR/demo.scribe:")), "{stack}");
    let of_core = gdb_with(
        &["-iex".to_owned(), reader, running.program.clone(), core.display().to_string()],
        &["echo @stack\\n", "backtrace"],
    );
    assert_eq!(of_core.part("stack"), stack);
}

/// A process that is asked to show its code and announces nothing has shown none: the reader goes on to read its log.
#[test]
fn a_request_that_still_stands_does_not_silence_the_reader() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let running = Running::start("gdb=off");
    // It does nothing that it is asked for meanwhile.
    let stop = format!("kill -STOP {}", running.pid());
    let stopped = Command::new("sh").args(["-c", &stop]).status().expect("a shell");
    assert!(stopped.success());
    let folder = std::fs::read_dir(format!("/proc/{}/fd", running.pid())).expect("descriptors");
    let is_log = |path: &PathBuf| {
        std::fs::read_link(path).is_ok_and(|to| to.starts_with("/memfd:jitscribe (deleted)"))
    };
    let mut paths = folder.map(|entry| entry.expect("a descriptor").path());
    let path = paths.find(is_log).expect("a log");
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("the log");
    // Behind the file's header, of 40 bytes.
    let at = 40 + tail::FIRST_PAYLOAD + log::CONTROL;
    let request = control::REQUEST | control::LOG | control::GDB;
    file.write_all_at(&request.to_ne_bytes(), at as u64).expect("the control word");
    let reader = load_reader();
    let said = gdb_with(
        &["-iex".to_owned(), reader, "-p".to_owned(), running.pid()],
        &["echo @stack\\n", "backtrace", "echo @end\\n"],
    );
    let stack = said.whole_stack();
    assert!(stack.contains(" baseline::") && !stack.contains("?? ()"), "{stack}");
}
