//! Programs that go on while the test does something.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process};

pub use rustix::process::Signal;

use crate::tool::{ToolOutput, succeeded};

/// A program that runs; it is killed when this is dropped.
#[derive(Debug)]
pub struct Running {
    child: Option<Child>,
    /// Its standard output, once a line of it was read.
    out: Option<BufReader<ChildStdout>>,
}

impl Running {
    /// Starts `command`.
    pub fn start(command: &mut Command) -> Self {
        let child = command.spawn();
        let child = child.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        Self { child: Some(child), out: None }
    }

    fn child(&mut self) -> &mut Child {
        self.child.as_mut().expect("it was not finished")
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it was not finished").id()
    }

    /// Sends it what Ctrl-C sends.
    pub fn interrupt(&self) {
        send(self.pid(), Signal::INT);
    }

    /// Waits until it ends, and gives what it printed into pipes.
    pub fn finish(self) -> ToolOutput {
        succeeded(&"a program", &self.ended())
    }

    /// Waits until it ends, in whatever way, and gives what it printed into pipes since the last line that was read.
    pub fn ended(mut self) -> std::process::Output {
        let mut child = self.child.take().expect("it was not finished");
        if let Some(out) = self.out.take() {
            child.stdout = Some(out.into_inner());
        }
        child.wait_with_output().expect("it ends")
    }

    /// Waits until it ends, and gives its exit code.
    pub fn code(mut self) -> Option<i32> {
        self.child().wait().expect("it ends").code()
    }

    /// Writes to its standard input, which has to be a pipe.
    pub fn write(&mut self, text: &str) {
        let input = self.child().stdin.as_mut().expect("a pipe");
        input.write_all(text.as_bytes()).expect("it reads");
    }

    /// Its standard input ends.
    pub fn close_input(&mut self) {
        self.child().stdin = None;
    }

    /// The next line that it prints; its standard output has to be a pipe.
    pub fn line(&mut self) -> String {
        let child = self.child.as_mut().expect("it was not finished");
        let out =
            self.out.get_or_insert_with(|| BufReader::new(child.stdout.take().expect("a pipe")));
        let mut line = String::new();
        assert_ne!(out.read_line(&mut line).expect("a line"), 0, "it ended");
        line.trim_end().to_owned()
    }

    /// The lines that it prints before this one.
    pub fn lines_until(&mut self, wanted: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            match self.line() {
                line if line == wanted => return lines,
                line => lines.push(line),
            }
        }
    }

    /// Waits until it has printed this line.
    pub fn wait_for_line(&mut self, wanted: &str) {
        self.lines_until(wanted);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended.
            _ = child.kill();
            _ = child.wait();
        }
    }
}

/// Sends a signal to a process of the test.
pub fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("a process");
}

/// How long a busy machine may take for anything.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Looks again and again, until there is something. `instead` says what there is in its place.
pub fn wait_for<T>(instead: impl Fn() -> String, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "within {PATIENCE:?}: {}", instead());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Looks again and again, until it is so. `instead` says what is the case.
pub fn wait_until(instead: impl Fn() -> String, mut is: impl FnMut() -> bool) {
    wait_for(instead, || is().then_some(()));
}
