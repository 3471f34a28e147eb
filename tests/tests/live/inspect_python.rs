//! `record -p PID --inspect`: Python that was started without `-X perf`.

use std::process::Stdio;

use end_to_end::chains::{Chain, Frame};
use end_to_end::jitscribe::interruptible_jitscribe;
use end_to_end::record::{Record, Recorded};
use end_to_end::running::{Running, Signal, send, wait_until};
use end_to_end::runtimes::script;
use end_to_end::tool::{installed, tool};
use test_privilege::needs;

/// The program, ready, run by this interpreter with these options.
fn program(interpreter: &str, options: &[&str]) -> Running {
    let mut python = tool(installed(interpreter));
    python.args(options).arg(script("inspected.py"));
    let pipes = python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = Running::start(pipes);
    program.wait_for_line("ready");
    program
}

const NEWER: &str = "sid/run/python3.14";

fn inspect(program: &Running) -> Recorded {
    let pid = program.pid().to_string();
    Record::new(&["-p", &pid, "--inspect", "--duration", "2", "--allow-empty"]).processes()
}

/// The part of all stacks, of 100, that has this function, in perf's own output.
fn total(recorded: &Recorded, function: &str) -> usize {
    let chains = recorded.chains();
    let has = |chain: &&Chain| {
        chain.frames.iter().filter_map(Frame::name).any(|name| name.starts_with(function))
    };
    chains.iter().filter(has).count() * 100 / chains.len().max(1)
}

fn says(recorded: &Recorded, expected: &str) {
    assert!(recorded.said.contains(expected), "{}", recorded.said);
}

#[test]
fn functions_that_are_called_are_named_until_the_recording_ends() {
    needs!(Perf, NewerPython);
    let mut program = program(NEWER, &[]);
    program.write("?\n");
    program.wait_for_line("off");
    let recorded = inspect(&program);
    says(&recorded, "is Python, and calls functions through trampolines until the recording ends");
    says(&recorded, "stacks by --call-graph dwarf,");
    for function in ["py::inner:", "py::middle:"] {
        let total = total(&recorded, function);
        assert!(total >= 80, "{function} {total} %: {}", recorded.said);
    }
    program.write("?\n");
    program.wait_for_line("off");
    // A second time would crash it at its end.
    says(&inspect(&program), "had trampolines before");
    program.write("?\n");
    program.wait_for_line("off");
    program.close_input();
    assert_eq!(program.code(), Some(0));
}

#[test]
fn trampolines_end_however_the_recording_ends() {
    needs!(Perf, NewerPython);
    let mut program = program(NEWER, &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let mut record = interruptible_jitscribe();
    record.args(["record", "--inspect", "-p", &program.pid().to_string()]).current_dir(&folder);
    let recording = Running::start(record.stderr(Stdio::null()).stdout(Stdio::null()));
    let mut is_on = |wanted: &str| {
        wait_until(
            || format!("trampolines are {wanted}"),
            || {
                program.write("?\n");
                program.line() == wanted
            },
        );
    };
    is_on("on");
    send(recording.pid(), Signal::KILL);
    recording.code();
    is_on("off");
    program.close_input();
    assert_eq!(program.code(), Some(0));
}

/// The request is taken back, so that it does not look for a script that is gone.
#[test]
fn a_program_that_does_not_respond_goes_on() {
    needs!(Perf, NewerPython);
    let mut python = tool(installed(NEWER));
    let text = "import time; print('ready', flush=True); time.sleep(20); [i for i in range(10 ** 6)]; print('done', flush=True)";
    python.args(["-c", text]);
    let pipes = python.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = Running::start(pipes);
    program.wait_for_line("ready");
    says(&inspect(&program), "its main thread waits, and takes a request only when it runs again");
    let ended = program.ended();
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "done\n");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}

#[test]
fn what_accepts_no_requests_says_so() {
    needs!(Perf);
    let says_of = |interpreter: &str, options: &[&str], expected: &str| {
        let program = program(interpreter, options);
        says(&inspect(&program), expected);
        program
    };
    says_of(
        "trixie/run/python3.13",
        &[],
        "Python 3.13, and only Python 3.14 and later can be asked",
    );
    needs!(NewerPython);
    says_of(NEWER, &["-X", "disable-remote-debug"], "does not accept requests");
    let mut before = says_of(NEWER, &["-X", "perf"], "had turned on its trampolines");
    before.write("?\n");
    before.wait_for_line("on");
}
