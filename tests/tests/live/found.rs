//! Code that a runtime announces in no way, found in its memory: LuaJIT itself says which traces it has.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use end_to_end::jitscribe::{jitscribe, json_lines};
use end_to_end::live::workload;
use end_to_end::record::{Record, Recorded};
use end_to_end::running::Running;
use end_to_end::runtimes::script;
use end_to_end::tool::{argument, run, tool};
use serde_json::Value;
use test_privilege::needs;

/// A LuaJIT that goes on for a while, and what it says of its traces: the number of each, and where it begins.
fn luajit() -> (Running, BTreeMap<u32, String>) {
    let mut command = Command::new("luajit");
    command.arg(workload("traces.lua")).args(["600", "list"]).stdout(Stdio::piped());
    let mut running = Running::start(&mut command);
    let traces = running.lines_until("ready");
    let trace = |line: &String| {
        let (number, place) = line.trim().strip_prefix("trace ")?.split_once(' ')?;
        Some((number.parse().ok()?, place.to_owned()))
    };
    (running, traces.iter().filter_map(trace).collect())
}

/// What a listing says of the traces, as LuaJIT does: with the name of the file instead of its path.
fn listed(arguments: &[&str]) -> BTreeMap<u32, String> {
    let events = json_lines(jitscribe().args(["dump", "--json"]).args(arguments));
    let trace = |event: &Value| {
        let name = event["name"].as_str()?;
        let (number, place) = name.strip_prefix("TRACE_")?.split_once("::")?;
        let (_, place) = place.rsplit_once('/').unwrap_or(("", place));
        let file = event["lines"][0]["file"].as_str().expect("a file");
        assert!(file.ends_with("traces.lua"), "{event}");
        Some((number.parse().ok()?, place.to_owned()))
    };
    events.iter().filter(|event| event["event"] == "load").filter_map(trace).collect()
}

/// Each trace of which LuaJIT says something is listed as it says. It may have made more since.
fn is_as_said(listed: &BTreeMap<u32, String>, said: &BTreeMap<u32, String>) {
    assert!(said.len() > 1, "{said:?}");
    for (number, place) in said {
        assert_eq!(listed.get(number), Some(place), "{number} of {said:?}: {listed:?}");
    }
}

#[test]
fn dump_lists_luajit_s_traces_as_luajit_does() {
    needs!(Trace);
    let (running, said) = luajit();
    is_as_said(&listed(&["-p", &running.pid().to_string()]), &said);
}

#[test]
fn a_core_file_has_luajit_s_traces() {
    needs!(Trace);
    let (running, said) = luajit();
    let folder = tempfile::tempdir().expect("a folder");
    let core = argument(folder.path().join("core"));
    let mut gdb = tool("gdb");
    let command = format!("generate-core-file {core}");
    run(gdb.args(["-batch", "-nx", "-p", &running.pid().to_string(), "-ex", &command]));
    is_as_said(&listed(&["--core", &core]), &said);
}

fn count(recorded: &Recorded, of: &str, name: &str) -> u64 {
    let counts = &recorded.report[of];
    counts[name].as_u64().unwrap_or_else(|| panic!("{name}: {counts}"))
}

#[test]
fn record_names_luajit_s_traces() {
    needs!(Perf);
    needs!(Trace);
    let options = ["-F", "999", "--call-graph=dwarf,4096"];
    // What is thrown away before it is found for the first time has no name.
    for (mode, least) in [("plain", 90), ("flush", 60)] {
        let recorded = Record::new(&options).program(&["luajit", &script("traces.lua"), "1", mode]);
        let (named, all) =
            (count(&recorded, "samples", "named"), count(&recorded, "samples", "samples"));
        assert!(named > 100 && named * 100 >= all * least, "{mode}: {named} of {all}");
        let (whole, stacks) =
            (count(&recorded, "stacks", "whole"), count(&recorded, "stacks", "stacks"));
        assert!(whole * 100 >= stacks * least, "{mode}: {whole} of {stacks}");
        let top = recorded.report["top"][0]["name"].as_str().unwrap_or_default();
        assert!(top.contains("traces.lua:"), "{mode}: {}", recorded.report["top"]);
    }
}
