//! A folder to work in, and commands that run there.

#![allow(dead_code, reason = "each test program uses a part")]

pub mod agent;
pub mod announcer;
pub mod images;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// An empty folder that is also the home of what runs in it.
#[derive(Debug)]
pub struct Bench {
    folder: TempDir,
    home: TempDir,
}

/// A command that ended.
#[derive(Debug)]
pub struct Done {
    /// Its exit code, as a shell says it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Bench {
    pub fn new() -> Self {
        let make = |prefix| TempDir::with_prefix(prefix).expect("a temporary folder");
        Self { folder: make("jitscribe-record-"), home: make("jitscribe-home-") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    /// The names of what lies in the folder, sorted.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .collect();
        names.sort();
        names
    }

    /// Lets other users look into the folder.
    pub fn open(&self) {
        fs::set_permissions(self.folder.path(), PermissionsExt::from_mode(0o755)).expect("set");
    }

    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env("HOME", self.home.path()).stdin(Stdio::null());
        command
    }

    pub fn jitscribe(&self, verb: &str) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_jitscribe"));
        // There is none where this crate alone was built; what it brings is tested with all of them.
        command.arg(verb).env("JITSCRIBE_JAVA_AGENT", "");
        command
    }

    pub fn record(&self, words: &[&str]) -> Done {
        self.ask(&[&["record"], words].concat())
    }

    /// Runs `jitscribe` with a verb and its options.
    pub fn ask(&self, words: &[&str]) -> Done {
        let (verb, rest) = words.split_first().expect("a verb");
        let mut command = self.jitscribe(verb);
        command.args(rest);
        finish(command)
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub fn run(&self, words: &[&str]) -> String {
        let (program, rest) = words.split_first().expect("a program");
        let mut command = self.command(program);
        command.args(rest);
        let done = finish(command);
        assert_eq!(done.code, 0, "{words:?}: {}", done.stderr);
        done.stdout
    }

    /// The symbols in which samples of a recording were taken.
    pub fn symbols(&self, recording: &str) -> Vec<String> {
        let printed = self.run(&["perf", "script", "-G", "-i", recording, "-F", "ip,sym"]);
        let lines = printed.lines().filter_map(|line| line.trim().split_once(' '));
        let mut symbols: Vec<String> = lines.map(|(_, symbol)| symbol.to_owned()).collect();
        symbols.sort();
        symbols.dedup();
        symbols
    }

    /// How many samples a recording has, as perf lists them.
    pub fn samples(&self, recording: &str) -> usize {
        // A line each. With addresses, a sample that has none would be an empty line.
        self.run(&["perf", "script", "-i", recording, "-F", "time"]).lines().count()
    }

    /// Fails unless samples of a recording were taken in a symbol with this text.
    pub fn expect_symbol(&self, recording: &str, text: &str) {
        let symbols = self.symbols(recording);
        assert!(symbols.iter().any(|symbol| symbol.contains(text)), "no {text}: {symbols:#?}");
    }

    /// Whether perf has begun to write into the folder that a recording comes to be in.
    pub fn recording_has_begun(&self) -> bool {
        let is_begun = |name: &String| {
            let file = self.path(name).join("perf.data");
            name.starts_with(".jitscribe-") && fs::metadata(file).is_ok_and(|file| file.len() > 0)
        };
        self.files().iter().any(is_begun)
    }
}

/// The files below a folder, with their paths in it, sorted.
pub fn files(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let path = path.strip_prefix(folder).expect("below it");
                all.push(path.to_str().expect("UTF-8").to_owned());
            }
        }
    }
    all.sort();
    all
}

/// Runs a command to its end.
pub fn finish(mut command: Command) -> Done {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Done { code: code(output.status), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn code(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).expect("it ended")
}

/// A command that runs; it is killed when this is dropped.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts a command whose standard output is a pipe.
    pub fn start(mut command: Command) -> Self {
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it has printed this line.
    pub fn wait_for_line(&mut self, wanted: &str) {
        let mut out = BufReader::new(self.0.stdout.as_mut().expect("a pipe"));
        let mut line = String::new();
        while line.trim_end() != wanted {
            line.clear();
            assert_ne!(out.read_line(&mut line).expect("a line"), 0, "it never said {wanted}");
        }
    }

    /// Reads the next line that it prints. It must print no more at the same time.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        let out = self.0.stdout.as_mut().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        line
    }

    /// Reads all that it prints from now on.
    pub fn read_to_end(&mut self, text: &mut String) {
        self.0.stdout.as_mut().expect("a pipe").read_to_string(text).expect("text");
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.0.try_wait().expect("a child").is_none()
    }

    /// Waits for its end.
    pub fn code(&mut self) -> i32 {
        code(self.0.wait().expect("a child"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Waits until something is true, for much longer than it takes on a busy machine.
#[track_caller]
pub fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(300);
    while !is_true() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A command that runs the command in its further arguments with mounts and process ids of its own.
pub fn contained() -> Command {
    let mut unshare = test_privilege::unshare();
    unshare.args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    unshare
}

/// The children of a process.
pub fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("children");
    text.split_whitespace().map(|pid| pid.parse().expect("a process")).collect()
}

/// The child of a process that has one.
#[track_caller]
pub fn only_child(pid: u32) -> u32 {
    let [child] = children(pid).try_into().expect("one child");
    child
}

/// A file outside of the test's folder, removed at the end.
pub struct Removed(pub PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // It may be gone already.
        _ = fs::remove_file(&self.0);
    }
}

/// Where a process has its perf map, or an earlier one with this id had.
pub fn removed_map(pid: u32) -> Removed {
    Removed(PathBuf::from(format!("/tmp/perf-{pid}.map")))
}

/// Does what Ctrl-C does, to this process alone.
pub fn interrupt(pid: u32) {
    let pid = Pid::from_raw(pid.try_into().expect("a process id")).expect("a process id");
    kill_process(pid, Signal::INT).expect("it runs");
}

/// Fails where a tool is missing: a test that is skipped in silence shows nothing.
pub fn expect_tool(name: &str) {
    let path = std::env::var_os("PATH").expect("a PATH");
    let there =
        std::env::split_paths(&path).any(|folder: PathBuf| Path::new(&folder).join(name).exists());
    assert!(there, "{name} is not installed: run scripts/setup.sh");
}
