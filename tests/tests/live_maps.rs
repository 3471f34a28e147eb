//! Runtimes that write a perf map: Mono, Rakudo and node. Java's are in `live_java.rs`.

use end_to_end::live::{Recorder, workload};
use end_to_end::tool::{run, tool};

#[test]
fn mono() {
    let recorder = Recorder::new();
    let program = recorder.dir().join("Spin.exe");
    run(tool("mcs").arg(format!("-out:{}", program.display())).arg(workload("Spin.cs")));
    let recording = recorder.record(&["mono", "--jitmap", "Spin.exe"]);
    let tally = recording.expect_map_applied();
    // Mono does not list all of its trampolines.
    assert!(tally.unknown * 100 <= tally.named, "{tally:?}");
}

#[test]
fn rakudo() {
    let script = workload("spin.raku");
    let recording = Recorder::new()
        .env("MVM_JIT_PERF_MAP", "1")
        .record(&["rakudo", script.to_str().expect("a UTF-8 path")]);
    let tally = recording.expect_map_applied();
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
    recording.expect_map_applied();
}
