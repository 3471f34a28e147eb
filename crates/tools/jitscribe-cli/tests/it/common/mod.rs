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
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// The command under test.
pub const JITSCRIBE: &str = env!("CARGO_BIN_EXE_jitscribe");

/// An empty folder, and a home for what runs in it.
#[derive(Debug)]
pub struct Bench {
    folder: TempDir,
    home: TempDir,
}

/// The words of a command: themselves, or a text in which blanks separate them.
pub trait Words {
    fn words(&self) -> Vec<&str>;
}

impl Words for str {
    fn words(&self) -> Vec<&str> {
        self.split_whitespace().collect()
    }
}

impl Words for String {
    fn words(&self) -> Vec<&str> {
        self.as_str().words()
    }
}

impl Words for [&str] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Words for Vec<&str> {
    fn words(&self) -> Vec<&str> {
        self.clone()
    }
}

impl<const N: usize> Words for [&str; N] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

/// A command that ended.
#[derive(Debug)]
pub struct Done {
    command: String,
    /// Its exit code, as a shell says it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    /// It ended with this exit code.
    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}: {}", self.command, self.stderr);
        self
    }

    /// It succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.ends(0)
    }

    /// It printed this on standard error.
    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        assert!(self.stderr.contains(text), "no {text:?}: {}: {}", self.command, self.stderr);
        self
    }

    /// It did not.
    #[track_caller]
    pub fn says_not(&self, text: &str) -> &Self {
        assert!(!self.stderr.contains(text), "{text:?}: {}: {}", self.command, self.stderr);
        self
    }

    /// The JSON on its standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Bench {
    pub fn new() -> Self {
        let make = |prefix| TempDir::with_prefix(prefix).expect("a temporary folder");
        Self { folder: make("jitscribe-test-"), home: make("jitscribe-home-") }
    }

    /// One with a file in it.
    pub fn with(name: &str, content: impl AsRef<[u8]>) -> Self {
        Self::new().and(name, content)
    }

    /// This file, too.
    pub fn and(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.write(name, content);
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The same as text.
    pub fn name(&self, name: &str) -> String {
        self.path(name).into_os_string().into_string().expect("UTF-8")
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Writes a file, and the folders that it lies in.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
        self
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn size(&self, name: &str) -> u64 {
        fs::metadata(self.path(name)).expect("a file").len()
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

    pub fn command(&self, words: &(impl Words + ?Sized)) -> Command {
        self.by(&Command::new(words.words()[0]), &words.words()[1..])
    }

    /// A command with more words.
    pub fn by(&self, before: &Command, words: &(impl Words + ?Sized)) -> Command {
        let mut command = Command::new(before.get_program());
        command.args(before.get_args()).args(words.words()).current_dir(self.folder.path());
        command.env("HOME", self.home()).stdin(Stdio::null());
        command
    }

    pub fn jitscribe(&self, words: &(impl Words + ?Sized)) -> Command {
        let mut command = self.by(&Command::new(JITSCRIBE), words);
        // There is none where this crate alone was built; what it brings is tested with all of them.
        command.env("JITSCRIBE_JAVA_AGENT", "");
        command
    }

    /// Runs `jitscribe` with a verb and its options.
    pub fn ask(&self, words: &(impl Words + ?Sized)) -> Done {
        finish(&mut self.jitscribe(words))
    }

    pub fn record(&self, words: &(impl Words + ?Sized)) -> Done {
        self.ask(&[&["record"], &words.words()[..]].concat())
    }

    /// Runs a script of bash, in which `$0` is `jitscribe`.
    pub fn shell(&self, script: &str) -> Done {
        let mut bash = self.command(&["bash", "-c", script, JITSCRIBE]);
        finish(bash.env("JITSCRIBE_JAVA_AGENT", ""))
    }

    /// Runs a command that must succeed, and returns what it printed.
    #[track_caller]
    pub fn run(&self, words: &(impl Words + ?Sized)) -> String {
        finish(&mut self.command(words)).ok().stdout
    }

    /// A command writes a page, which replaces a page of its own without `--force`, but no other file; it prints the same page.
    #[track_caller]
    pub fn expect_replaced_by_force(&self, page: &str, command: &str) {
        let others = "<!DOCTYPE html>\nmine";
        self.write(page, others).ask(command).ends(1).says(page).says("--force");
        assert_eq!(self.read(page), others.as_bytes());
        let forced = self.ask(&format!("{command} --force")).ok();
        assert_eq!(forced.stderr, "");
        self.ask(command).ok();
        let printed = self.ask(&format!("{command} -o -")).ok().stdout;
        assert!(printed.as_bytes() == self.read(page), "another page");
    }

    /// The symbols in which samples of a recording were taken.
    pub fn symbols(&self, recording: &str) -> Vec<String> {
        let printed = self.run(&format!("perf script -G -i {recording} -F ip,sym"));
        let lines = printed.lines().filter_map(|line| line.trim().split_once(' '));
        let mut symbols: Vec<String> = lines.map(|(_, symbol)| symbol.to_owned()).collect();
        symbols.sort();
        symbols.dedup();
        symbols
    }

    /// How many samples a recording has, as perf lists them.
    pub fn samples(&self, recording: &str) -> usize {
        // A line each. With addresses, a sample that has none would be an empty line.
        self.run(&format!("perf script -i {recording} -F time")).lines().count()
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
pub fn finish(command: &mut Command) -> Done {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    ended(command, output)
}

/// How a command has ended.
pub fn ended(command: &Command, Output { status, stdout, stderr }: Output) -> Done {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (stdout, stderr) = (text(stdout), text(stderr));
    Done { command: format!("{command:?}"), code: code(status), stdout, stderr }
}

fn code(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).expect("it ended")
}

/// A command that runs; it is killed when this is dropped.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts a command, with a pipe for its standard output.
    pub fn start(command: &mut Command) -> Self {
        Self::spawn(command.stdout(Stdio::piped()))
    }

    pub fn spawn(command: &mut Command) -> Self {
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
    signal(pid, Signal::INT);
}

pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.try_into().expect("a process id")).expect("a process id");
    kill_process(pid, signal).expect("it runs");
}

/// Fails where a tool is missing: a test that is skipped in silence shows nothing.
pub fn expect_tool(name: &str) {
    let path = std::env::var_os("PATH").expect("a PATH");
    let there =
        std::env::split_paths(&path).any(|folder: PathBuf| Path::new(&folder).join(name).exists());
    assert!(there, "{name} is not installed: run scripts/setup.sh");
}
