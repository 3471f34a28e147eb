//! LLVM 14's interpreter with MCJIT, whose jitdump says vma 0 and biases its lines' addresses by 0x40.

use end_to_end::live::{Recorder, Recording, expect_lines_of, workload};

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

/// Stock perf shows lines 64 bytes further on.
#[test]
fn source_lines_are_the_compilers() {
    let recording = record();
    let ours = recording.ours();
    let folder = recording.dir().join(".debug/jit");
    let dump = std::fs::read_dir(&folder)
        .and_then(|mut entries| entries.next().expect("one folder of dumps"))
        .map(|entry| entry.path().join(format!("jit-{}.dump", recording.pid())))
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let checked = expect_lines_of(&dump, &recording.perf().samples_with_lines(&ours.data));
    assert!(checked > recording.raw().len() / 3, "{checked} lines");
}
