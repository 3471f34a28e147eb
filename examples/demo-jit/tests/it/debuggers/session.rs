//! A debugger on the demo, by a script.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use demo_jit::CodeVersion;

/// A run of the demo in a folder of its own.
pub struct Demo(tempfile::TempDir);

impl Demo {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn dir(&self) -> &Path {
        self.0.path()
    }

    /// The command line: few calls, and `rbp` spoilt.
    pub fn words(&self) -> Vec<String> {
        let dir = self.dir().display().to_string();
        let demo = env!("CARGO_BIN_EXE_demo-jit").to_owned();
        let truth = self.truth_path().display().to_string();
        let words = ["--log", "--no-frame-pointers", "--calls", "2"];
        let files = ["--source-dir", &dir, "--truth", &truth];
        std::iter::once(demo).chain(words.into_iter().chain(files).map(str::to_owned)).collect()
    }

    fn truth_path(&self) -> PathBuf {
        self.dir().join("truth.json")
    }

    pub fn truth(&self) -> Vec<CodeVersion> {
        let text = std::fs::read_to_string(self.truth_path()).expect("a truth");
        text.lines().map(|line| serde_json::from_str(line).expect("a version")).collect()
    }
}

/// A demo that runs for half a minute, in its first phase.
pub struct Running {
    pub demo: Demo,
    pub program: String,
    child: Child,
}

impl Running {
    /// With this in `JITSCRIBE`.
    pub fn start(setting: &str) -> Self {
        let demo = Demo::new();
        let mut words = demo.words();
        words.extend(["--phase".to_owned(), "30000".to_owned()]);
        let calls = words.iter().position(|word| word == "--calls").expect("a pace");
        words.drain(calls..calls + 2);
        let child = Command::new(&words[0])
            .args(&words[1..])
            .env("JITSCRIBE", setting)
            .stdout(Stdio::null())
            .spawn()
            .expect("the demo starts");
        while !demo.dir().join("demo.scribe").exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        // It compiles its source, and begins.
        std::thread::sleep(Duration::from_secs(1));
        Self { demo, program: words.swap_remove(0), child }
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is a child of ours");
    }
}

/// What a debugger said: parts behind lines that begin with `@`.
pub struct Said(String);

impl Said {
    /// What stands between the line `@name` and the next of its kind.
    pub fn part(&self, name: &str) -> &str {
        let mark = format!("@{name}\n");
        let Some((_, behind)) = self.0.split_once(&mark) else {
            panic!("no {mark}in:\n{}", self.0)
        };
        behind.split_once("\n@").map_or(behind, |(part, _)| part).trim_end()
    }

    /// The part `stack`, which goes down to where the process began.
    #[track_caller]
    pub fn whole_stack(&self) -> &str {
        let stack = self.part("stack");
        assert!(stack.lines().last().unwrap_or_default().ends_with("_start ()"), "{stack}");
        stack
    }

    #[track_caller]
    pub fn expect(&self, name: &str, expected: &str) {
        assert_eq!(self.part(name), expected, "{name} in:\n{}", self.0);
    }
}

fn tool(name: &str) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    assert!(is_there, "{name} is not installed: run scripts/setup.sh test");
    Command::new(name)
}

/// gdb on a program with its arguments. Addresses are masked, and the folder.
pub fn gdb(words: &[String], script: &[&str]) -> Said {
    let mut arguments = vec!["--args".to_owned()];
    arguments.extend_from_slice(words);
    gdb_with(&arguments, script)
}

pub fn gdb_with(arguments: &[String], script: &[&str]) -> Said {
    let mut command = tool("gdb");
    command.args(["-q", "-nx", "-batch"]);
    // gdb 16 takes Rust's main for the end of the stack.
    let settings = [
        "set breakpoint pending on",
        "set debuginfod enabled off",
        "set width 0",
        "set backtrace past-main on",
    ];
    for line in settings.iter().chain(script) {
        command.args(["-ex", line]);
    }
    run(command.args(arguments))
}

pub fn lldb(words: &[String], script: &[&str]) -> String {
    let mut command = tool("lldb");
    command.args(["--no-lldbinit", "--batch"]);
    for line in script {
        command.args(["-o", line]);
    }
    run(command.arg("--").args(words)).0
}

fn run(command: &mut Command) -> Said {
    // Debuggers of other versions ask their servers, colour their output, or fold it.
    command
        .env("TERM", "dumb")
        .env_remove("DEBUGINFOD_URLS")
        .env_remove("JITSCRIBE")
        .stdin(Stdio::null());
    let output = command.output().expect("the debugger runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}\n{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Said(masked(&text))
}

/// The text with `0xA` for addresses, without the hashes of Rust's symbols, and with `DIR` for folders that tests make.
fn masked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("0x") {
        out.push_str(before);
        let digits = behind.bytes().take_while(u8::is_ascii_hexdigit).count();
        out.push_str(if digits > 0 { "0xA" } else { "0x" });
        rest = &behind[digits..];
    }
    out.push_str(rest);
    while let Some(at) = out.find("::h").filter(|at| {
        out.get(at + 3..at + 19)
            .is_some_and(|hash| hash.bytes().all(|digit| digit.is_ascii_hexdigit()))
    }) {
        out.replace_range(at..at + 19, "");
    }
    // So says gdb 16 of a file in memory.
    let out = out.replace("@0xA-0xA>", "@0xA>");
    let temporary = std::env::temp_dir().display().to_string();
    let folder = format!("{temporary}/.tmp");
    let mut parts = out.split(&folder);
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        masked.push_str("DIR");
        masked.push_str(part.find('/').map_or("", |at| &part[at..]));
    }
    masked
}
