//! CPython 3.13 of Debian 13: trampolines with unwinding information.

use std::path::Path;

use end_to_end::compare::expect_chains_kept;
use end_to_end::live::{Recorder, Recording, workload};
use end_to_end::map_oracle::{MapOracle, expect_map_applied};
use end_to_end::perf::Perf;
use end_to_end::record::Record;
use end_to_end::recordings::recorded_python;
use end_to_end::runtimes::python;

fn record(options: &[&str], x: &str) -> Recording {
    Recorder::new().options(options).record(&python(&["-X", x]))
}

/// The workload's functions from the inside outwards, as Python names them in a perf map and a jitdump.
fn python_frames() -> Vec<String> {
    let script = workload("spin.py");
    ["leaf", "middle", "outer", "<module>"]
        .iter()
        .map(|function| format!("py::{function}:{}", script.display()))
        .collect()
}

/// How many chains pass through all of the workload's functions in their order and end in `_start`.
fn complete_chains(perf: &Perf, data: &Path) -> usize {
    let expected = python_frames();
    perf.chains(data)
        .iter()
        .filter(|chain| {
            let names: Vec<&str> = chain
                .frames
                .iter()
                .filter_map(|frame| frame.name())
                .filter(|name| expected.iter().any(|frame| frame == name))
                .collect();
            names == expected && chain.passes("_start")
        })
        .count()
}

#[test]
fn dwarf_stacks_pass_through_trampolines() {
    let recording = record(&["-k", "mono", "-F", "499", "--call-graph", "dwarf,16384"], "perf_jit");
    let tally = recording.expect_as_good_as_stock();
    assert_eq!(tally.unknown, 0, "{tally:?}");

    let stock = complete_chains(recording.perf(), &recording.dir().join("stock.data"));
    let ours = recording.dir().join("ours.data");
    assert!(stock > tally.all / 4, "stock perf shows {stock} complete chains of {}", tally.all);
    assert!(complete_chains(recording.perf(), &ours) >= stock, "perf 6.1");
    assert!(complete_chains(&Perf::newer(), &ours) >= stock, "perf 6.12");
}

/// Debian's interpreter has no frame pointers, so `record` chooses to copy stacks, unless the user says otherwise.
#[test]
fn record_chooses_the_call_graph() {
    let recorded = recorded_python();
    let (choice, reason) =
        ("stacks by --call-graph dwarf,", ": Python 3.13 was built without frame pointers");
    let said = &recorded.said;
    let is_choice = |line: &&str| line.starts_with(choice) && line.ends_with(reason);
    assert_eq!(said.lines().filter(is_choice).count(), 1, "{said}");
    let complete = complete_chains(&Perf::installed(), &recorded.data());
    let all = recorded.chains().len();
    assert!(complete > all / 4, "{complete} complete chains of {all}");

    for options in [&["--call-graph", "fp"][..], &["-g"]] {
        // Without copies of stacks, no sample is in code that Python announces.
        let options = [options, &["--allow-empty", "-F", "499"]].concat();
        let said = Record::new(&options).program(&python(&[])).said;
        assert!(!said.contains("stacks by"), "{options:?}: {said}");
    }
}

#[test]
fn perf_map() {
    let recording = record(&["-k", "mono", "-F", "999", "-g"], "perf");
    let map = MapOracle::read(format!("/tmp/perf-{}.map", recording.pid()).as_ref());
    let ours = recording.ours();
    expect_map_applied(recording.raw(), &ours.samples, &map);
    // The trampolines run for a few instructions: they are seen in call chains, and without frame pointers in
    // the interpreter itself only in some.
    expect_chains_kept(
        &recording.perf().chains(&recording.data()),
        &recording.perf().chains(&ours.data),
    );
}
