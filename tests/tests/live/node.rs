//! Interpreted functions of V8 on stacks, in the installed node.

use end_to_end::chains::Chain;
use end_to_end::live::without_tag;
use end_to_end::record::{Record, Recorded};
use end_to_end::runtimes::script;
use serde_json::Value;

/// Records a program that spends all its time in one interpreted function.
fn record_interpreted(call_graph: &str) -> Recorded {
    let program = ["node", "--no-opt", "--no-sparkplug", &script("interpreted.js")];
    Record::new(&["-F", "499", "--call-graph", call_graph]).program(&program)
}

/// Number of samples with a function on the stack.
fn inclusive(report: &Value, function: &str) -> u64 {
    let rows = report["top"].as_array().expect("a list");
    let is_it = |row: &&Value| row["name"].as_str().is_some_and(|name| name == function);
    let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("no {function}: {rows:#?}"));
    row["inclusive"].as_u64().expect("a number")
}

/// How often perf shows it.
fn in_chains(chains: &[Chain], function: &str) -> u64 {
    let is_it = |name: &str| {
        without_tag(name).is_some_and(|name| name.starts_with(&format!("~{function} ")))
    };
    let is_on = |chain: &&Chain| chain.frames.iter().filter_map(|frame| frame.name()).any(is_it);
    chains.iter().filter(is_on).count() as u64
}

/// In copies of stacks, the innermost interpreted function is found, although the interpreter's handlers have no frame.
#[test]
fn interpreted_functions_are_on_copied_stacks() {
    let recorded = record_interpreted("dwarf,16384");
    let (report, chains) = (&recorded.report, recorded.chains());
    let innermost = inclusive(report, "innermost");
    let (middle, outer) = (inclusive(report, "middle"), inclusive(report, "outer"));
    let by_perf = in_chains(&chains, "innermost");
    assert!(outer > 50, "{report}");
    // Each was called by the next one.
    assert!(middle <= outer && innermost <= middle, "{report}");
    assert!(innermost * 10 >= outer * 9, "{innermost} of {outer}");
    assert!(
        by_perf < innermost,
        "perf finds {by_perf} of {innermost} as well: see docs/runtimes/node.md"
    );
    // Callers are the same for both.
    assert!(in_chains(&chains, "outer").abs_diff(outer) * 50 <= outer, "{report}");
}

/// With frame pointers, their callers are.
#[test]
fn callers_that_are_interpreted_have_names() {
    let recorded = record_interpreted("fp");
    let (report, chains) = (&recorded.report, recorded.chains());
    let (middle, outer) = (inclusive(report, "middle"), inclusive(report, "outer"));
    assert!(outer > 50 && middle * 10 >= outer * 9, "{report}");
    assert_eq!(in_chains(&chains, "outer"), outer);
    assert_eq!(in_chains(&chains, "middle"), middle);
}
