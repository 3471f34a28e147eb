//! wasmtime, driven from Python: the same module compiled over old addresses again and again.

use end_to_end::live::{Recorder, workload};
use end_to_end::map_oracle::{MapOracle, expect_map_applied};
use end_to_end::tool::cache;

fn program(profiler: &str) -> [String; 3] {
    let python = cache().join("wasmtime/bin/python3");
    assert!(python.exists(), "wasmtime is not installed: run scripts/setup.sh test");
    [python, workload("spin_wasm.py"), profiler.into()].map(|part| part.display().to_string())
}

#[test]
fn jitdump() {
    let tally = Recorder::new().record(&program("jitdump")).expect_as_good_as_stock();
    assert!(tally.same > tally.all / 10, "{tally:?}");
    assert_eq!(tally.unknown, 0, "{tally:?}");
}

#[test]
fn perf_map() {
    let recording = Recorder::new().record(&program("perfmap"));
    let map = MapOracle::read(format!("/tmp/perf-{}.map", recording.pid()).as_ref());
    let tally = expect_map_applied(recording.raw(), &recording.ours().samples, &map);
    assert!(tally.named > recording.raw().len() / 10, "{tally:?}");
}
