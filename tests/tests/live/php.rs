//! PHP's tracing JIT.

use end_to_end::live::{Recorder, Recording, workload};

fn record(jit_debug: u32) -> Recording {
    let script = workload("spin.php");
    let jit_debug = format!("opcache.jit_debug={jit_debug}");
    Recorder::new().record(&[
        "php",
        "-d",
        "opcache.enable=1",
        "-d",
        "opcache.enable_cli=1",
        "-d",
        "opcache.jit=tracing",
        "-d",
        "opcache.jit_buffer_size=64M",
        "-d",
        // A script that changed just now is not jitted otherwise.
        "opcache.file_update_protection=0",
        "-d",
        &jit_debug,
        script.to_str().expect("a UTF-8 path"),
    ])
}

/// 32 asks for a jitdump and a perf map.
#[test]
fn jitdump_and_perf_map_at_once() {
    let tally = record(32).expect_as_good_as_stock();
    assert!(tally.same > tally.all / 10, "{tally:?}");
    assert!(tally.unknown < tally.all / 50, "{tally:?}");
}
