//! perf and `jitscribe dump` know the function.

use std::process::{Command, Stdio};

use end_to_end::jitscribe::jitscribe;
use end_to_end::running::Running;
use end_to_end::tool::{run, tool};
use test_privilege::{Privilege, have};

#[test]
fn perf_names_it_without_further_steps() {
    if !have(&[Privilege::Perf]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("perf.data");
    let mut record = tool("perf");
    record.args(["record", "-q", "-e", "cpu-clock", "-o"]).arg(&data);
    record.arg(env!("CARGO_BIN_EXE_hello-jit")).arg("0.5");
    run(record.env("JITSCRIBE_DIR", folder.path()));
    let report = run(tool("perf").args(["report", "--stdio", "-q", "-i"]).arg(&data)).stdout;
    let first = report.lines().find(|line| !line.trim().is_empty()).expect("a row");
    assert!(first.trim_end().ends_with("countdown"), "{report}");
}

#[test]
fn its_log_has_it_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut hello = Command::new(env!("CARGO_BIN_EXE_hello-jit"));
    hello.arg("600").env("JITSCRIBE_DIR", folder.path());
    let mut running = Running::start(hello.stdin(Stdio::null()).stdout(Stdio::piped()));
    let pid = running.pid().to_string();
    running.wait_for_line(&format!("countdown runs: jitscribe dump -p {pid}"));
    let printed = run(jitscribe().args(["dump", "--json", "-p", &pid])).stdout;
    let events: Vec<serde_json::Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().filter_map(|event| event["name"].as_str()).collect();
    assert_eq!(names, ["countdown"]);
}
