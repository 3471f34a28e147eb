//! Runtimes that write a perf map: Java, Mono, Rakudo and node.

use end_to_end::live::{Recorder, Recording, workload};
use end_to_end::map_oracle::{MapOracle, MapTally, expect_map_applied};
use end_to_end::tool::{run, tool};

/// Checks every sample against the map that the one recorded process wrote.
fn expect_applied(recording: &Recording) -> MapTally {
    let map = MapOracle::read(format!("/tmp/perf-{}.map", recording.pid()).as_ref());
    let ours = recording.ours();
    let tally = expect_map_applied(recording.raw(), &ours.samples, &map);
    assert!(tally.named > recording.raw().len() / 50, "{tally:?}");
    ours.expect_read_alike_by_newer_perf();
    tally
}

#[test]
fn java_with_a_map_written_at_exit() {
    let recorder = Recorder::new();
    run(tool("javac").arg("-d").arg(recorder.dir()).arg(workload("Spin.java")));
    let recording = recorder.record(&[
        "java",
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:+DumpPerfMapAtExit",
        "-XX:+PreserveFramePointer",
        "Spin",
    ]);
    expect_applied(&recording);
}

#[test]
fn mono() {
    let recorder = Recorder::new();
    let program = recorder.dir().join("Spin.exe");
    run(tool("mcs").arg(format!("-out:{}", program.display())).arg(workload("Spin.cs")));
    let tally = expect_applied(&recorder.record(&["mono", "--jitmap", "Spin.exe"]));
    assert_eq!(tally.unknown, 0, "{tally:?}");
}

#[test]
fn rakudo() {
    let script = workload("spin.raku");
    let recording = Recorder::new()
        .env("MVM_JIT_PERF_MAP", "1")
        .record(&["rakudo", script.to_str().expect("a UTF-8 path")]);
    let tally = expect_applied(&recording);
    assert_eq!(tally.unknown, 0, "{tally:?}");
}

#[test]
fn node_with_an_unsorted_map() {
    let script = workload("spin.js");
    let recording = Recorder::new().record(&[
        "node",
        "--perf-basic-prof",
        script.to_str().expect("a UTF-8 path"),
    ]);
    expect_applied(&recording);
}
