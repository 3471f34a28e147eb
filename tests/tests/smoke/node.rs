//! node, ended by a signal.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use end_to_end::jitscribe::interruptible_jitscribe;
use end_to_end::record::Record;
use end_to_end::running::Running;
use end_to_end::tool::argument;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tempfile::TempDir;
use test_privilege::needs;

/// Runs until it is killed. It says when it has run for a second of the processor's time.
const ENDLESS: &str = "function leaf(n) { let s = 0; for (let i = 0; i < n; i++) s = (31 * s + i) % 1000003; return s; }
function outer() { let s = 0; for (let i = 0; i < 100; i++) s += leaf(1000); return s; }
for (let warm = false;;) {
  outer();
  if (!warm && process.cpuUsage().user > 1e6) { warm = true; console.log('warm'); }
}
";

/// V8 writes its jitdump through a buffer of 2 MB, which is lost if a signal ends it; its perf map has the code.
fn expect_names(report: &Value, said: &str) {
    let samples = &report["samples"];
    let count = |name: &str| samples[name].as_u64().expect("a number");
    assert!(count("named") > 20, "{samples}");
    assert!(count("named") > 9 * (count("unnamed") + count("inferred")), "{samples}");
    // The map that only `record` asked for is removed.
    assert!(!said.contains("/tmp/perf-"), "{said}");
}

#[test]
fn code_has_names_although_a_signal_ends_node() {
    needs!(Perf);
    let record = Record::new(&["-F", "499", "--call-graph=none", "--duration", "2"]);
    let script = record.folder().join("endless.js");
    // The report is on its standard output.
    fs::write(&script, ENDLESS.replace("console.log('warm')", "0")).expect("a script");
    let recorded = record.program(&["node", &argument(&script)]);
    expect_names(&recorded.report, &recorded.said);
}

/// Ctrl-C in a terminal is sent to all processes of the foreground job.
#[test]
fn code_has_names_although_the_user_interrupts_node() {
    needs!(Perf);
    let folder = TempDir::with_prefix("jitscribe-interrupted-").expect("a folder");
    fs::write(folder.path().join("endless.js"), ENDLESS).expect("a script");
    let mut record = interruptible_jitscribe();
    record.args(["record", "--json", "-F", "499", "--call-graph=none", "-o", "it.data"]);
    record.args(["--", "node", "endless.js"]).current_dir(folder.path()).process_group(0);
    let mut running = Running::start(record.stdout(Stdio::piped()).stderr(Stdio::piped()));
    running.wait_for_line("warm");
    let group = i32::try_from(running.pid()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process_group(group, Signal::INT).expect("a group");
    let ended = running.ended();
    let said = String::from_utf8_lossy(&ended.stderr);
    let report = serde_json::from_slice(&ended.stdout);
    let report = report.unwrap_or_else(|error| panic!("{error}: {said}"));
    expect_names(&report, &said);
    let mut left: Vec<_> = fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["endless.js", "it.data", "it.data.jit"], "{said}");
}
