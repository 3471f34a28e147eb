//! LLVM 14's interpreter with MCJIT, whose jitdump says vma 0 and biases its lines' addresses by 0x40.

use end_to_end::live::{Recorder, Recording, workload};

fn record() -> Recording {
    let program = workload("spin.ll");
    Recorder::new().record(&["lli-14", "--jit-kind=mcjit", program.to_str().expect("a UTF-8 path")])
}

#[test]
fn jitdump() {
    let tally = record().expect_as_good_as_stock();
    assert!(tally.same > tally.all / 2, "{tally:?}");
    assert_eq!(tally.unknown, 0, "{tally:?}");
}

/// Each function of the workload has lines of its own, which stock perf confuses.
#[test]
fn source_lines_belong_to_their_function() {
    let recording = record();
    let ours = recording.ours();
    let mut checked = 0;
    for sample in recording.perf().samples_with_lines(&ours.data) {
        let lines = match sample.name() {
            Some("fib") => 11..=15,
            Some("mix of words") => 21..=25,
            Some("main") if sample.dso_in(recording.dir()) => 31..=35,
            _ => continue,
        };
        let shown = sample.srcline.as_deref().unwrap_or("nothing");
        let line = shown
            .strip_prefix("spin.src:")
            .and_then(|line| line.split_whitespace().next()?.parse::<u32>().ok())
            .unwrap_or_else(|| panic!("{sample}: no line of spin.src but {shown}"));
        // A function's prologue has the line of its declaration.
        assert!(lines.contains(&line) || line == lines.start() - 1, "{sample}: line {line}");
        checked += 1;
    }
    assert!(checked > 100, "only {checked} samples have a line to check");
}
