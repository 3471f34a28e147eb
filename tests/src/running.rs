//! Programs that go on while the test does something.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};

use rustix::process::{Pid, kill_process};

pub use rustix::process::Signal;

use crate::tool::{ToolOutput, succeeded};

/// A program that runs; it is killed when this is dropped.
#[derive(Debug)]
pub struct Running(Option<Child>);

impl Running {
    /// Starts `command`.
    pub fn start(command: &mut Command) -> Self {
        Self(Some(
            command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}")),
        ))
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("it was not finished")
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.0.as_ref().expect("it was not finished").id()
    }

    /// Sends it what Ctrl-C sends.
    pub fn interrupt(&self) {
        send(self.pid(), Signal::INT);
    }

    /// Waits until it ends, and gives what it printed into pipes.
    ///
    /// # Panics
    /// If it fails.
    pub fn finish(mut self) -> ToolOutput {
        let child = self.0.take().expect("it was not finished");
        succeeded(&"a program", &child.wait_with_output().expect("it ends"))
    }

    /// Waits until it has printed this line; its standard output has to be a pipe.
    ///
    /// # Panics
    /// If it ends before.
    pub fn wait_for_line(&mut self, wanted: &str) {
        let mut out = BufReader::new(self.child().stdout.as_mut().expect("a pipe"));
        let mut line = String::new();
        while line.trim_end() != wanted {
            line.clear();
            assert_ne!(out.read_line(&mut line).expect("a line"), 0, "it never said {wanted}");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // It may have ended.
            _ = child.kill();
            _ = child.wait();
        }
    }
}

/// Sends a signal to a process of the test.
///
/// # Panics
/// If there is no such process.
pub fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("a process");
}
