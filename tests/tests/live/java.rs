//! Java without the agent: its perf map is written whenever `jcmd` asks for it.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use end_to_end::compare::expect_chains_kept;
use end_to_end::jitscribe::jitscribe;
use end_to_end::live::{InjectedRecording, Recorder, Recording, workload};
use end_to_end::running::Running;
use end_to_end::tool::{ToolOutput, run, tool};

/// Longer than any test takes; it is ended when the test is done with it.
const LONG: &str = "120000";

fn compile(dir: &Path) {
    run(tool("javac").arg("-d").arg(dir).arg(workload("Spin.java")));
}

/// The workload, at work. It has no option that makes it write a map by itself.
fn start(dir: &Path) -> Running {
    let mut java = tool("java");
    java.args(["-XX:+PreserveFramePointer", "Spin", LONG]).current_dir(dir);
    let mut java = Running::start(java.stdout(Stdio::piped()));
    java.wait_for_line("running");
    java
}

/// Checks names and call chains against the map, and the names against stock perf as well: it reads the map by
/// itself, and in Java's no two lines overlap, so that it has nothing to choose from.
fn expect_as_good_as_stock(recording: &Recording, ours: &InjectedRecording) {
    let tally = recording.expect_map_applied_in(ours);
    assert_eq!(tally.perf_wrong, 0, "{tally:?}");
    let perf = recording.perf();
    expect_chains_kept(&perf.chains(&recording.data()), &perf.chains(&ours.data));
}

#[test]
fn map_requested_by_hand() {
    let recorder = Recorder::new();
    compile(recorder.dir());
    let java = start(recorder.dir());
    let pid = java.pid().to_string();
    let map = format!("/tmp/perf-{pid}.map");
    // Of a process that had this number before.
    _ = fs::remove_file(&map);
    let printed = run(recorder.command().args(["-p", &pid, "--", "sleep", "3"]));
    assert!(!Path::new(&map).exists(), "{map} came by itself");
    run(tool("jcmd").args([&pid, "Compiler.perfmap"]));
    drop(java);
    let recording = recorder.finish(printed);
    expect_as_good_as_stock(&recording, &recording.ours());
}

#[test]
fn map_requested_by_record() {
    let recorder = Recorder::new();
    compile(recorder.dir());
    let java = start(recorder.dir());
    let pid = java.pid().to_string();
    let mut record = jitscribe();
    record.args(["record", "-p", &pid, "--duration", "3", "-F", "999"]);
    record.args(["--keep-raw", "-o", "recorded.data"]).current_dir(recorder.dir());
    // None.
    record.env("JITSCRIBE_JAVA_AGENT", "");
    let printed = run(&mut record);
    drop(java);
    let dir = recorder.dir();
    fs::rename(dir.join("recorded.data.raw/perf.data"), dir.join("perf.data")).expect("kept");
    let data = dir.join("recorded.data");
    let recording = recorder.finish(ToolOutput::default());
    expect_as_good_as_stock(&recording, &recording.injected(data, printed));
}
