//! Erlang's JIT.

use end_to_end::live::{Recorder, workload};
use end_to_end::tool::{run, tool};

#[test]
fn jitdump_and_perf_map_at_once() {
    let recorder = Recorder::new();
    run(tool("erlc").arg("-o").arg(recorder.dir()).arg(workload("spin.erl")));
    let recording = recorder.record(&[
        "erl", "+S", "2", "+JPperf", "true", "-noshell", "-s", "spin", "main", "-s", "init", "stop",
    ]);
    let tally = recording.expect_as_good_as_stock();
    assert!(tally.same > tally.all / 10, "{tally:?}");
    assert_eq!(tally.unknown, 0, "{tally:?}");
}
