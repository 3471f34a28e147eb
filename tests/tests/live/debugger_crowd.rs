//! gdb and lldb on a program that announces many functions through GDB's JIT interface, frees some, and puts others in their
//! places: stacks, breakpoints by name and line, assembly and symbols, compared with what the program says of itself.

use std::process::Command;

use end_to_end::debugger::{Debugger, crowd_frames};
use end_to_end::tool::run;

const COUNTS: [u32; 5] = [10, 33, 100, 1000, 10_000];

fn crowd() -> &'static str {
    env!("CARGO_BIN_EXE_crowd")
}

/// The stack of the last stop, `NAME:LINE`, from the innermost frame to the outermost.
fn truth(words: &[&str]) -> Vec<String> {
    let words = words.iter().filter(|word| **word != "--settle");
    let printed = run(Command::new(crowd()).args(words).env("JITSCRIBE", "gdb=off")).stdout;
    let last = printed.lines().rfind(|line| line.starts_with("truth: ")).expect("a stop");
    last.split(' ').skip(1).map(str::to_owned).collect()
}

fn name_and_line(frame: &str) -> (&str, &str) {
    frame.split_once(':').expect("NAME:LINE")
}

/// What a debugger printed, command by command.
struct Session {
    debugger: Debugger,
    commands: Vec<String>,
}

impl Session {
    fn new(debugger: Debugger) -> Self {
        let mut session = Self { debugger, commands: Vec::new() };
        session.ask("break stop_here", "breakpoint set -n stop_here");
        session
    }

    /// Adds the command that this debugger has for it. The number of its answer.
    fn ask(&mut self, gdb: &str, lldb: &str) -> usize {
        self.commands.push(if self.debugger.is_gdb() { gdb } else { lldb }.to_owned());
        self.commands.len() - 1
    }

    /// The answers to the commands.
    fn run(&self, words: &[&str]) -> Vec<String> {
        let mut commands = Vec::new();
        for (number, command) in self.commands.iter().enumerate() {
            // lldb prints each command before its answer. Those that repeat have no number.
            if self.debugger.is_gdb() {
                commands.push(format!("echo \\n@{number}\\n"));
            }
            commands.push(command.clone());
        }
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let mut program = vec![crowd()];
        program.extend(words);
        let printed = self.debugger.run(&commands, &program);
        let mut rest = printed.as_str();
        let mut answers: Vec<String> = Vec::new();
        for (number, command) in self.commands.iter().enumerate() {
            let mark = if self.debugger.is_gdb() {
                format!("\n@{number}\n")
            } else {
                format!("(lldb) {command}\n")
            };
            let (before, behind) =
                rest.split_once(&mark).unwrap_or_else(|| panic!("no {mark} in:\n{printed}"));
            if let Some(last) = answers.last_mut() {
                before.clone_into(last);
            }
            answers.push(String::new());
            rest = behind;
        }
        if let Some(last) = answers.last_mut() {
            rest.clone_into(last);
        }
        answers
    }
}

/// At each count, with and without frees.
fn knows_the_crowd(debugger: Debugger) {
    for count in COUNTS {
        for churn in [false, true] {
            let count = count.to_string();
            let mut words = vec![count.as_str(), "--seed", "7", "--settle", "--again"];
            words.extend(churn.then_some("--churn"));
            knows(debugger, &words);
        }
    }
}

fn knows(debugger: Debugger, words: &[&str]) {
    let truth = truth(words);
    let (inner, inner_line) = name_and_line(&truth[0]);
    let (outer, outer_line) = name_and_line(truth.last().expect("a frame"));
    let first_line = &outer_line[..outer_line.len() - 1];

    let mut session = Session::new(debugger);
    session.ask("run", "run");
    let stack = session.ask("backtrace", "thread backtrace");
    let symbol = session.ask(&format!("info line {outer}"), &format!("image lookup -n {outer}"));
    let by_name = session.ask(&format!("break {outer}"), &format!("breakpoint set -n {outer}"));
    session.ask("delete 1", "breakpoint delete 1");
    let at_outer = session.ask("continue", "continue");
    let assembly = session.ask("disassemble", "disassemble -f");
    session.ask("delete 2", "breakpoint delete 2");
    let by_line = session.ask(
        &format!("break crowd.lang:{inner_line}"),
        &format!("breakpoint set -f crowd.lang -l {inner_line}"),
    );
    let at_inner = session.ask("continue", "continue");
    let stack_inside = session.ask("backtrace", "thread backtrace");
    let answers = session.run(words);
    let what = format!("{debugger:?} {words:?}\n{answers:#?}");

    // The stack, and that it goes on to the program's own frames.
    assert_eq!(crowd_frames(&answers[stack]), truth, "{what}");
    assert!(answers[stack].contains("crowd::main"), "{what}");
    // The symbol, once.
    if debugger.is_gdb() {
        let line = format!("Line {first_line}1 of \"/src/crowd.lang\" starts at address 0x");
        assert!(answers[symbol].starts_with(&line), "{what}");
        assert!(answers[symbol].contains(&format!(" <{outer}> and ends at ")), "{what}");
        assert!(answers[by_name].starts_with("Breakpoint 2 at 0x"), "{what}");
        assert!(answers[by_line].starts_with("Breakpoint 3 at 0x"), "{what}");
    } else {
        assert!(answers[symbol].starts_with("1 match found in JIT("), "{what}");
        assert!(answers[by_name].starts_with("Breakpoint 2: where = JIT("), "{what}");
        assert!(answers[by_line].starts_with("Breakpoint 3: where = JIT("), "{what}");
        assert!(answers[by_name].contains(&format!("`{outer}")), "{what}");
        assert!(answers[by_line].contains(&format!("`{inner}")), "{what}");
    }
    // The breakpoints hit, where they were set.
    assert!(answers[at_outer].contains(outer), "{what}");
    assert!(answers[at_outer].contains(&format!("crowd.lang:{first_line}")), "{what}");
    assert!(answers[assembly].contains("0x11111111"), "{what}");
    assert!(answers[at_inner].contains(&format!("crowd.lang:{inner_line}")), "{what}");
    assert_eq!(crowd_frames(&answers[stack_inside]), truth, "{what}");
}

/// A breakpoint stays in a function that is compiled again at its address, if it was freed before its bytes were overwritten: lldb
/// removes the instruction of the breakpoint when the function is unregistered, and inserts it again in the new code. gdb does so
/// only with the script of `jitscribe debug`.
fn hits_each_version(debugger: Debugger) {
    const TIMES: usize = 5;
    let mut session = Session::new(debugger);
    session.ask("run", "run");
    session.ask("break many_0", "breakpoint set -n many_0");
    session.ask("delete 1", "breakpoint delete 1");
    let stops: Vec<usize> = (0..TIMES).map(|_| session.ask("continue", "continue")).collect();
    let end = session.ask("continue", "continue ");
    let answers = session.run(&["10", "--settle", "--rejit", &TIMES.to_string()]);
    for stop in stops {
        assert!(answers[stop].contains("crowd.lang:"), "{stop} of {answers:#?}");
        assert!(answers[stop].contains("many_0"), "{stop} of {answers:#?}");
    }
    assert!(answers[end].contains("exited"), "{answers:#?}");
}

#[test]
fn gdb_knows_the_crowd() {
    knows_the_crowd(Debugger::Gdb);
}

#[test]
fn gdb_of_debian_13_knows_the_crowd() {
    knows_the_crowd(Debugger::NewGdb);
}

#[test]
fn lldb_knows_the_crowd() {
    knows_the_crowd(Debugger::Lldb);
}

#[test]
fn lldb_of_debian_13_knows_the_crowd() {
    knows_the_crowd(Debugger::NewLldb);
}

/// So few calls never wait, however busy the machine is: at each stop the stack is whole, although the functions run as soon as they are announced.
fn knows_a_burst(debugger: Debugger) {
    let words = ["300", "--seed", "7"];
    let truth = truth(&words);
    let mut session = Session::new(debugger);
    session.ask("run", "run");
    let stack = session.ask("backtrace", "thread backtrace");
    let answers = session.run(&words);
    assert_eq!(crowd_frames(&answers[stack]), truth, "{answers:#?}");
}

#[test]
fn debuggers_know_a_burst() {
    for debugger in [Debugger::Gdb, Debugger::NewGdb, Debugger::Lldb, Debugger::NewLldb] {
        knows_a_burst(debugger);
    }
}

#[test]
fn lldb_hits_each_version() {
    hits_each_version(Debugger::Lldb);
    hits_each_version(Debugger::NewLldb);
}
