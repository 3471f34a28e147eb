//! V8 in the installed node.

use end_to_end::live::{Recorder, Recording, Tally, workload};

fn record(options: &[&str]) -> Recording {
    let script = workload("spin.js");
    let mut program = vec!["node"];
    program.extend(options);
    program.push(script.to_str().expect("a UTF-8 path"));
    Recorder::new().record(&program)
}

/// A tenth of the samples, at least, are in jitted code, and none of it stays unknown.
fn expect_all_resolved(tally: &Tally) {
    assert!(tally.same + tally.named_by_files > tally.all / 10, "{tally:?}");
    assert_eq!(tally.unknown, 0, "{tally:?}");
}

#[test]
fn perf_prof() {
    expect_all_resolved(&record(&["--perf-prof"]).expect_as_good_as_stock());
}

#[test]
fn perf_prof_with_unwinding_info() {
    let recording = record(&["--perf-prof", "--perf-prof-unwinding-info"]);
    expect_all_resolved(&recording.expect_as_good_as_stock());
}

#[test]
fn interpreted_frames_on_the_native_stack() {
    let recording = record(&["--perf-prof", "--interpreted-frames-native-stack"]);
    expect_all_resolved(&recording.expect_as_good_as_stock());
}
