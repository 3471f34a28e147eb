//! JavaScriptCore as WebKitGTK ships it.

use end_to_end::live::{Recorder, workload};

/// It loads code over the addresses of dropped code: the best cheap test of time.
#[test]
fn jitdump() {
    let recorder = Recorder::new().env("JSC_useJITDump", "1");
    let dir = recorder.dir().to_str().expect("a UTF-8 path").to_owned();
    let script = workload("spin.js");
    let recording = recorder
        .env("JSC_jitDumpDirectory", &dir)
        .record(&["jsc", script.to_str().expect("a UTF-8 path")]);
    let tally = recording.expect_as_good_as_stock();
    // How much is compiled within the second depends on what else the machine does.
    assert!(tally.same > 0, "{tally:?}");
    assert_eq!(tally.unknown, 0, "{tally:?}");
}
