//! Runtimes that register their code with GDB's JIT interface: gdb says which code that is.

use std::process::{Command, Stdio};

use end_to_end::jitscribe::{jitscribe, json_lines};
use end_to_end::live::workload;
use end_to_end::record::{Record, Recorded};
use end_to_end::running::{Running, wait_for};
use end_to_end::runtimes::script;
use end_to_end::tool::{argument, installed, run, tool};
use serde_json::Value;
use test_privilege::needs;

/// Python with numba and JAX.
fn python() -> String {
    argument(installed("kernels/bin/python3"))
}

/// The codes that `dump -p` lists, each with address and name.
fn codes(pid: u32) -> Vec<(u64, String)> {
    let mut dump = jitscribe();
    dump.args(["dump", "--json", "-p", &pid.to_string()]);
    // Before the first object is registered, there is nothing to dump.
    let is_there = dump.output().expect("it runs").status.success();
    let events = if is_there { json_lines(&mut dump) } else { Vec::new() };
    let code = |event: &Value| {
        let address = event["address"].as_str().expect("an address").trim_start_matches("0x");
        let address = u64::from_str_radix(address, 16).expect("a number");
        (address, event["name"].as_str().expect("a name").to_owned())
    };
    events.iter().filter(|event| event["event"] == "load").map(code).collect()
}

/// gdb says of each address that `dump` lists what `dump` says.
fn gdb_names_them(pid: u32, codes: &[(u64, String)]) {
    let mut gdb = tool("gdb");
    gdb.args(["-batch", "-nx", "-p", &pid.to_string(), "-ex", "set print demangle off"]);
    for (address, _) in codes {
        gdb.arg("-ex").arg(format!("info symbol {address:#x}"));
    }
    let said = run(&mut gdb).stdout;
    for (address, name) in codes {
        let line = format!("{name} in section ");
        assert!(said.lines().any(|it| it.starts_with(&line)), "{name} at {address:#x}: {said}");
    }
}

#[test]
fn gdb_names_what_lli_has_registered_as_dump_does() {
    needs!(Trace);
    let mut lli = Command::new("lli-14");
    let running = Running::start(lli.arg("--jit-kind=orc").arg(workload("endless.ll")));
    let codes = wait_for(
        || "lli registers its code".to_owned(),
        || Some(codes(running.pid())).filter(|codes| codes.iter().any(|(_, name)| name == "main")),
    );
    gdb_names_them(running.pid(), &codes);
}

#[test]
fn gdb_names_what_numba_has_registered_as_dump_does() {
    needs!(Trace);
    let mut numba = Command::new(python());
    numba.arg(workload("kernels.py")).arg("endless");
    let mut running = Running::start(numba.stdout(Stdio::piped()));
    assert_eq!(running.line().trim(), "ready");
    let codes = codes(running.pid());
    let is_there = |part: &str| codes.iter().any(|(_, name)| name.contains(part));
    assert!(is_there("4leaf") && is_there("6kernel"), "{codes:?}");
    gdb_names_them(running.pid(), &codes);
}

fn count(counts: &Value, name: &str) -> u64 {
    counts[name].as_u64().unwrap_or_else(|| panic!("{name}: {counts}"))
}

/// All samples in jitted code have names.
fn is_named(recorded: &Recorded, program: &str) {
    let samples = &recorded.report["samples"];
    assert!(count(samples, "named") > 50, "{program}: {samples}");
    assert!(count(samples, "named") > count(samples, "unnamed") * 50, "{program}: {samples}");
}

/// Stacks reach the bottom, but for those that are deeper than what was copied.
fn is_whole(recorded: &Recorded, program: &str) {
    let stacks = &recorded.report["stacks"];
    let (whole, all) = (count(stacks, "whole"), count(stacks, "stacks"));
    assert!(whole * 100 >= all * 95, "{program}: {stacks}");
}

#[test]
fn record_names_what_lli_registers() {
    needs!(Perf);
    let program = ["lli-14", "--jit-kind=orc", &argument(workload("spin.ll"))];
    let options = ["-F", "999", "--call-graph=none"];
    let recorded = Record::new(&options).program(&program);
    let samples = &recorded.report["samples"];
    assert!(count(samples, "named") > 50, "{samples}");
    assert!(count(samples, "named") > count(samples, "unnamed") * 10, "{samples}");
}

#[test]
fn numba_s_kernels_have_names_types_and_whole_stacks() {
    needs!(Perf);
    let options = ["-F", "499", "--call-graph=dwarf,32768"];
    let cache = tempfile::tempdir().expect("a folder");
    let program = |mode: &str| {
        let record = Record::new(&options).env("NUMBA_CACHE_DIR", cache.path());
        record.program(&[&python(), &script("kernels.py"), mode, "1"])
    };
    // What the recorded program then reads.
    let mut fill = tool(python());
    fill.arg(workload("kernels.py")).args(["cached", "0"]);
    run(fill.env("NUMBA_CACHE_DIR", cache.path()));
    for mode in ["plain", "debug", "cached", "forked"] {
        let recorded = program(mode);
        is_named(&recorded, mode);
        is_whole(&recorded, mode);
        let top = recorded.report["top"][0]["name"].as_str().unwrap_or_default();
        assert_eq!(top, "__main__::leaf(double, double)", "{mode}: {}", recorded.report["top"]);
        let samples = &recorded.report["samples"];
        let lines = count(samples, "with_lines");
        match mode {
            "debug" => assert!(lines * 100 >= count(samples, "named") * 99, "{samples}"),
            _ => assert_eq!(lines, 0, "{mode}: {samples}"),
        }
    }
    let parallel = program("parallel");
    is_named(&parallel, "parallel");
    is_whole(&parallel, "parallel");
}

#[test]
fn jax_s_kernels_have_names_and_whole_stacks() {
    needs!(Perf);
    let options = ["-F", "199", "--call-graph=dwarf,32768"];
    let recorded = Record::new(&options).program(&[&python(), &script("kernels_jax.py"), "2"]);
    is_named(&recorded, "JAX");
    is_whole(&recorded, "JAX");
}
