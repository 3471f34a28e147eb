//! A running program, which is talked to, and for debuggers that attach later.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::installed::debuggers::gdb_with;
use crate::installed::tree::{Link, compile};

pub struct Running {
    child: Child,
    path: PathBuf,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Running {
    /// Waits until it prints that it is ready.
    pub fn start(source: &str, words: &[&str]) -> Self {
        let mut program = Self::spawn(compile(source, Link::Shared, &[]), words, &[]);
        assert_eq!(program.line(), "ready");
        program
    }

    /// Without the settings of this process, but with those of an environment.
    pub fn spawn(path: PathBuf, words: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(&path);
        for name in ["JITSCRIBE", "JITSCRIBE_LIMIT", "OTEL_SERVICE_NAME"] {
            command.env_remove(name);
        }
        command.args(words).envs(environment.iter().copied());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, path, input, output }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it prints.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Writes a line to it, and returns its answer.
    pub fn ask(&mut self, word: &str) -> String {
        writeln!(self.input.as_mut().expect("a pipe"), "{word}").expect("it listens");
        self.line()
    }

    /// Ends its input, and with that the program.
    pub fn end(mut self) {
        self.input = None;
        assert!(self.child.wait().expect("it ends").success());
    }

    /// The output of a gdb that is attached to it.
    pub fn attach(&self, script: &[&str]) -> String {
        gdb_with(&["-p".to_owned(), self.pid().to_string()], script)
    }

    /// The output of a gdb that reads a core file.
    pub fn read(&self, core: &Path, script: &[&str]) -> String {
        gdb_with(&[self.path.display().to_string(), core.display().to_string()], script)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        self.child.wait().expect("it is ours");
    }
}
