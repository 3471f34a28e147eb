//! node, ended by the command.

use std::fs;

use end_to_end::record::Record;
use end_to_end::tool::argument;
use test_privilege::needs;

/// Runs until it is killed.
const ENDLESS: &str = "function leaf(n) { let s = 0; for (let i = 0; i < n; i++) s = (31 * s + i) % 1000003; return s; }
function outer() { let s = 0; for (let i = 0; i < 100; i++) s += leaf(1000); return s; }
for (;;) outer();
";

/// V8 writes its jitdump through a buffer of 2 MB, which is lost if a signal ends it.
#[test]
fn code_has_names_although_a_signal_ends_node() {
    needs!(Perf);
    let record = Record::new(&["-F", "499", "--call-graph=none", "--duration", "1"]);
    let script = record.folder().join("endless.js");
    fs::write(&script, ENDLESS).expect("a script");
    let recorded = record.program(&["node", &argument(&script)]);
    let samples = &recorded.report["samples"];
    let count = |name: &str| samples[name].as_u64().expect("a number");
    assert!(count("named") > 20, "{samples}");
    assert!(count("named") > 9 * (count("unnamed") + count("inferred")), "{samples}");
    // The map that only we asked for is named, so that it can be removed.
    let map = recorded.said.split_whitespace().find(|word| word.starts_with("/tmp/perf-"));
    fs::remove_file(map.expect("the path of a map")).expect("removed");
}
