//! A running program, for debuggers that attach later.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::installed::debuggers::gdb_with;
use crate::installed::tree::{Link, compile};

/// Its exit status.
pub struct Running {
    child: Child,
    path: PathBuf,
}

impl Running {
    /// Waits until it prints that it is ready.
    pub fn start(source: &str, words: &[&str]) -> Self {
        let path = compile(source, Link::Shared, &[]);
        let mut command = Command::new(&path);
        command.args(words).env_remove("JITSCRIBE").stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        Self { child, path }
    }

    /// The output of a gdb that is attached to it.
    pub fn attach(&self, script: &[&str]) -> String {
        gdb_with(&["-p".to_owned(), self.child.id().to_string()], script)
    }

    /// The output of a gdb that reads a core file.
    pub fn read(&self, core: &Path, script: &[&str]) -> String {
        gdb_with(&[self.path.display().to_string(), core.display().to_string()], script)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have crashed.
        let _ = self.child.kill();
        self.child.wait().expect("it is ours");
    }
}
