//! A process with a code log, for tests that look at it from outside.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// A process that carries out commands, one for each line of its input, and answers each.
///
/// It is the test program itself, which runs an ignored test; the variable `ANNOUNCER` says that it was started for this.
pub struct Announcer(Child);

impl Announcer {
    /// Starts it with `how` in the variable. `test` is the path of the ignored test; the command is the test program, or one that starts it.
    pub fn start(test: &str, mut command: Command, how: &str) -> Self {
        command
            .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
            .env("ANNOUNCER", how)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut this = Self(command.spawn().expect("started"));
        this.wait();
        this
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn tell(&mut self, line: &str) {
        writeln!(self.0.stdin.as_mut().expect("a pipe"), "{line}").expect("written");
        self.wait();
    }

    /// Reads up to the answer, byte by byte: the test harness of the process prints, too.
    fn wait(&mut self) {
        let mut lines =
            BufReader::with_capacity(1, self.0.stdout.as_mut().expect("a pipe")).lines();
        assert!(lines.any(|line| line.expect("a line").ends_with("done")), "the announcer ended");
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
