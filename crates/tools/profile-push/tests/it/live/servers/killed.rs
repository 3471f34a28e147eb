//! Our process is killed at every system call that matters, or its disk is full.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use end_to_end::receiver::{self, Receiver};
use end_to_end::tool::tool;
use serde_json::json;
use test_privilege::needs;

use super::{folder, made, stacks, truth};

/// The example, which cargo builds beside the tests.
fn push_files() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let folder = test.parent().and_then(Path::parent).expect("a folder");
    let example = folder.join("examples/push_files");
    assert!(example.exists(), "{}: cargo test builds it", example.display());
    example
}

fn request_files(folder: &Path, numbers: impl IntoIterator<Item = u64>) -> Vec<PathBuf> {
    let file = |number| {
        let path = folder.join(format!("{number}.request"));
        fs::write(&path, made::request(number)).expect("written");
        path
    };
    numbers.into_iter().map(file).collect()
}

fn lines(output: &Output, beginning: &str) -> usize {
    let printed = String::from_utf8_lossy(&output.stdout);
    printed.lines().filter(|line| line.starts_with(beginning)).count()
}

/// Files of the spool that wait.
fn waiting(spool: &Path) -> usize {
    receiver::files(spool).len()
}

/// A run without a new profile sends what is left.
fn send_the_rest(arguments: &[PathBuf]) {
    let output = Command::new(push_files()).args(&arguments[..3]).output().expect("a run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_process_that_is_killed_loses_nothing() {
    // A missing strace is an error of its own.
    tool("strace");
    needs!(Trace);
    let folder = folder();
    let received = folder.path().join("received");
    let receiver = Receiver::start(&received, &json!({}));
    let spool = folder.path().join("spool");
    let arguments = |file: &Path| {
        [spool.as_path(), Path::new("1048576"), Path::new(&receiver.http()), file]
            .map(Path::to_owned)
    };
    // Each of these is interrupted at its first, second… occurrence in a run, until a run needs no more.
    let calls = [
        "openat", "mkdir", "flock", "write", "fsync", "rename", "unlink", "connect", "writev",
        "sendto", "recvfrom",
    ];
    let mut next = 0;
    let mut kept: Vec<u64> = Vec::new();
    let mut kills: BTreeMap<&str, u32> = BTreeMap::new();
    for call in calls {
        let from = if call == "openat" { 4 } else { 1 };
        for time in from..40 {
            next += 1;
            let [file] = &request_files(folder.path(), [next])[..] else { panic!("one file") };
            let mut strace = tool("strace");
            // cargo sets it, and the dynamic linker looks into each of its folders first.
            strace.env_remove("LD_LIBRARY_PATH");
            strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")]);
            strace.args(["-e", &format!("inject={call}:signal=KILL:when={time}")]);
            let output = strace.arg(push_files()).args(arguments(file)).output().expect("strace");
            if lines(&output, "kept ") > 0 {
                kept.push(next);
            }
            if output.status.success() {
                break;
            }
            assert!(time < 39, "more calls of {call} than are expected");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.is_empty(), "{call} {time}: {said}");
            *kills.entry(call).or_default() += 1;
            // What killed processes leave is opened by the next one, which would never come to an end of its calls.
            if time % 4 == 0 {
                send_the_rest(&arguments(Path::new("")));
            }
        }
    }
    for call in ["openat", "flock", "write", "fsync", "rename", "unlink", "connect"] {
        assert!(kills.contains_key(call), "never killed at {call}: {kills:?}");
    }
    send_the_rest(&arguments(Path::new("")));
    assert_eq!(waiting(&spool), 0);
    let names: Vec<_> = fs::read_dir(&spool)
        .expect("a folder")
        .map(|it| it.expect("an entry").file_name())
        .collect();
    let remains = names.iter().filter(|name| name.to_string_lossy().ends_with(".new")).count();
    // One that is killed just before the end stays until the next profile is added.
    assert!(remains <= 1, "{names:?}");

    let files = receiver.files();
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    for file in receiver::read(&files) {
        *times.entry(file["ids"][0].as_str().expect("an ID").to_owned()).or_default() += 1;
    }
    let all: u32 = kills.values().sum();
    let twice: u32 = times.values().map(|count| count - 1).sum();
    assert!(twice <= all, "{twice} were sent again after {all} kills");
    // All that was on the disk arrived, and nothing but that which was pushed.
    let arrived: std::collections::BTreeSet<_> = stacks_with_ids(&files).into_iter().collect();
    let pushed = request_files(folder.path(), kept.iter().copied());
    for (id, number) in ids(&pushed).into_iter().zip(&kept) {
        assert!(times.contains_key(&id), "profile {number} was kept and did not arrive");
    }
    let every = request_files(folder.path(), 1..=next);
    let of_every: std::collections::BTreeSet<_> = stacks_with_ids(&every).into_iter().collect();
    assert!(arrived.is_subset(&of_every));
}

fn ids(files: &[PathBuf]) -> Vec<String> {
    let id = |file: &serde_json::Value| file["ids"][0].as_str().expect("an ID").to_owned();
    receiver::read(files).iter().map(id).collect()
}

fn stacks_with_ids(files: &[PathBuf]) -> Vec<(String, BTreeMap<String, u64>)> {
    ids(files).into_iter().zip(stacks(files)).collect()
}

#[test]
fn without_space_profiles_are_sent_from_memory() {
    let folder = folder();
    let received = folder.path().join("received");
    let receiver = Receiver::start(&received, &json!({}));
    let spool = folder.path().join("spool");
    let files = request_files(folder.path(), [1, 2]);
    let run = |limit: &str, url: &str, file: &Path| {
        let mut shell = Command::new("sh");
        // Files may have no content at all; without the trap, the system would kill the process.
        shell.args(["-c", &format!("trap '' XFSZ; {limit} exec \"$@\""), "sh"]);
        shell.arg(push_files()).arg(&spool).args(["1048576", url]).arg(file);
        shell.output().expect("a shell")
    };
    // No server listens on this port: the profile stays on the disk.
    let before = run("", "http://127.0.0.1:1", &files[0]);
    assert_eq!((lines(&before, "kept "), waiting(&spool)), (1, 1), "{before:?}");
    let full = run("ulimit -f 0;", &receiver.http(), &files[1]);
    let printed = String::from_utf8_lossy(&full.stdout);
    assert_eq!((lines(&full, "in memory "), lines(&full, "delivered ")), (1, 2), "{printed}");
    assert!(printed.contains("os error"), "{printed}");
    assert_eq!(stacks(&receiver.files()), truth([1, 2]));
    assert_eq!(waiting(&spool), 0);
}
