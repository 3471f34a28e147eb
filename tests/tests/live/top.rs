//! `jitscribe top` on a program that runs, as a program reads it and as a user sees it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use end_to_end::java::{Java, Jdk, LONG};
use end_to_end::jitscribe::{interruptible_jitscribe, java_agent, jitscribe};
use end_to_end::running::{Running, Signal, send, wait_until};
use end_to_end::tool::tool;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use tempfile::TempDir;

/// How long to wait for what a screen should show. Windows have a second, and the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

const PROGRAM: &str = "
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
console.log('ready')
for (;;) fib(20)
";

/// A program of node that computes until it is killed, and writes a perf map.
fn node(dir: &Path) -> Running {
    let script = dir.join("fib.js");
    std::fs::write(&script, PROGRAM).expect("a script");
    let mut command = tool("node");
    command.args(["--perf-basic-prof", "--no-opt"]).arg(script).current_dir(dir);
    let mut node = Running::start(command.stdout(Stdio::piped()));
    node.wait_for_line("ready");
    node
}

fn is_fib(function: &Value) -> bool {
    function["name"] == "fib"
        && function["file"].as_str().is_some_and(|file| file.ends_with("/fib.js"))
        && function["line"] == 2
        && function["kind"] == "jitted"
        && function["samples"].as_u64() > Some(0)
}

#[test]
fn each_window_is_a_line_of_json_until_the_process_ends() {
    let dir = TempDir::with_prefix("jitscribe-top-").expect("a folder");
    let node = node(dir.path());
    let map = format!("/tmp/perf-{}.map", node.pid());
    let mut top = jitscribe();
    top.args(["top", "--json", "--interval", "1", "-p", &node.pid().to_string()]);
    let mut top = top.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("jitscribe");
    let lines = BufReader::new(top.stdout.take().expect("a pipe")).lines();
    let mut node = Some(node);
    let mut windows = 0;
    for line in lines {
        windows += 1;
        let window: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        assert_eq!((&window["schema_version"], &window["window"]), (&1.into(), &windows.into()));
        let functions = window["functions"].as_array().expect("functions");
        let own: u64 = functions.iter().filter_map(|function| function["samples"].as_u64()).sum();
        assert_eq!(Some(own), window["samples"].as_u64(), "{window}");
        if functions.iter().any(is_fib) {
            // Dropped, and so killed: there is no next window.
            node = None;
        }
    }
    assert!(node.is_none(), "fib was not seen");
    let ended = top.wait_with_output().expect("it ends");
    assert!(ended.status.success(), "{ended:?}");
    // It may have been removed by who started node.
    _ = std::fs::remove_file(map);
}

#[test]
fn an_interrupt_ends_the_last_window() {
    let dir = TempDir::with_prefix("jitscribe-top-").expect("a folder");
    let node = node(dir.path());
    let map = format!("/tmp/perf-{}.map", node.pid());
    let mut top = interruptible_jitscribe();
    // It would go on for an hour.
    top.args(["top", "--json", "--interval", "3600", "-p", &node.pid().to_string()]);
    top.env("TMPDIR", dir.path());
    let top = Running::start(top.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let recording = || {
        let folders = std::fs::read_dir(dir.path()).expect("the folder").flatten();
        let mut folders = folders
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("jitscribe-window-"));
        folders.any(|folder| {
            let entries = std::fs::read_dir(folder.path()).into_iter().flatten().flatten();
            let mut data = entries.map(|entry| entry.path().join("perf.data"));
            data.any(|data| data.metadata().is_ok_and(|data| data.len() > 1000))
        })
    };
    wait_until(|| "it records nothing".into(), recording);
    top.interrupt();
    let printed = top.finish();
    let window: Value =
        serde_json::from_str(printed.stdout.lines().next().expect("a line")).expect("JSON");
    assert_eq!(window["window"], 1);
    drop(node);
    _ = std::fs::remove_file(map);
}

#[test]
fn a_jvm_that_starts_later_is_asked() {
    let mut top = interruptible_jitscribe();
    top.args(["top", "-a", "--json", "--interval", "1"]);
    top.env("JITSCRIBE_JAVA_AGENT", java_agent()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut top = top.spawn().expect("jitscribe");
    let mut lines = BufReader::new(top.stdout.take().expect("a pipe")).lines();
    let mut next = || -> Value {
        let line = lines.next().expect("top goes on").expect("a line");
        serde_json::from_str(&line).expect("JSON")
    };
    next();
    let java = Java::start(&Jdk::of_debian_12(), &["-XX:+PreserveFramePointer"], &[LONG]);
    let is_named = |window: &Value| {
        let functions = window["functions"].as_array().expect("functions");
        functions.iter().any(|function| {
            let name = function["name"].as_str().expect("a name");
            name.contains("Tiers.") && function["kind"] == "jitted"
        })
    };
    // Without the agent, it would never be.
    let mut messages = Vec::new();
    loop {
        let window = next();
        messages.extend(window["messages"].as_array().expect("messages").clone());
        if is_named(&window) {
            break;
        }
    }
    let pid = java.pid();
    let is_told = |message: &Value| {
        let message = message.as_str().expect("a text");
        message.starts_with("the Java agent is loaded into") && message.contains(&pid)
    };
    assert_eq!(messages.iter().filter(|message| is_told(message)).count(), 1, "{messages:?}");
    assert!(!java.alive().is_empty(), "the agent is at work");
    send(top.id(), Signal::INT);
    assert!(top.wait().expect("it ends").success());
    // It lets go of the JVM.
    assert_eq!(java.alive().len(), 0, "the agent goes on");
    java.expect_no_complaint();
}

/// A terminal, and what a program has drawn on it.
struct Terminal {
    keys: File,
    drawn: String,
    parts: Receiver<Vec<u8>>,
    program: Child,
}

impl Terminal {
    fn start(words: &[&str]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("a terminal");
        let name = ptsname(&ours, Vec::new()).expect("its name");
        let path = Path::new(name.to_str().expect("UTF-8")).to_owned();
        let theirs = || File::options().read(true).write(true).open(&path).expect("the terminal");
        let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).expect("a size");
        let mut program = jitscribe();
        program.args(words).env("TERM", "xterm");
        program.stdin(theirs()).stdout(theirs()).stderr(theirs());
        let program = program.spawn().expect("jitscribe");
        let mut drawn: File = OwnedFd::try_clone(&ours).expect("a descriptor").into();
        let (send, parts) = channel();
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(read @ 1..) = drawn.read(&mut part) {
                if send.send(part[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { keys: ours.into(), drawn: String::new(), parts, program }
    }

    /// Waits until this is drawn after what was waited for before.
    fn wait_for(&mut self, wanted: &str) {
        while !self.drawn.contains(wanted) {
            let part = self.parts.recv_timeout(PATIENCE);
            let part = part.unwrap_or_else(|_| panic!("no {wanted:?} in {:?}", self.drawn));
            self.drawn.push_str(&String::from_utf8_lossy(&part));
        }
        let end = self.drawn.find(wanted).expect("it is there") + wanted.len();
        self.drawn.drain(..end);
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal");
    }
}

#[test]
fn keys_change_what_the_screen_shows() {
    let dir = TempDir::with_prefix("jitscribe-top-").expect("a folder");
    let node = node(dir.path());
    let map = format!("/tmp/perf-{}.map", node.pid());
    let pid = node.pid().to_string();
    let mut terminal = Terminal::start(&["top", "--interval", "1", "-p", &pid]);
    terminal.wait_for("\x1b[?1049h");
    terminal.wait_for("sorted by self");
    terminal.wait_for("fib.js:2");
    terminal.press("t");
    terminal.wait_for("sorted by total");
    terminal.press("c");
    terminal.wait_for(" windows: ");
    terminal.press("/no such function\r");
    terminal.wait_for("with \"no such function\"");
    terminal.press("?");
    terminal.wait_for("this help");
    terminal.press("qq");
    terminal.wait_for("\x1b[?1049l");
    let status = terminal.program.wait().expect("it ends");
    assert!(status.success(), "{status}");
    drop(node);
    _ = std::fs::remove_file(map);
}
