//! Programs that go on while the test does something.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};

/// A program that runs; it is killed when this is dropped.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts `command`.
    pub fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}")))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it has printed this line; its standard output has to be a pipe.
    ///
    /// # Panics
    /// If it ends before.
    pub fn wait_for_line(&mut self, wanted: &str) {
        let mut out = BufReader::new(self.0.stdout.as_mut().expect("a pipe"));
        let mut line = String::new();
        while line.trim_end() != wanted {
            line.clear();
            assert_ne!(out.read_line(&mut line).expect("a line"), 0, "it never said {wanted}");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}
