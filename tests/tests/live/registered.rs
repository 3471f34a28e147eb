//! LLVM's lli, which registers its code with GDB's JIT interface: gdb says which code that is.

use std::process::Command;

use end_to_end::jitscribe::{jitscribe, json_lines};
use end_to_end::live::workload;
use end_to_end::record::Record;
use end_to_end::running::{Running, wait_for};
use end_to_end::tool::{argument, run, tool};
use serde_json::Value;
use test_privilege::needs;

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

#[test]
fn gdb_names_what_lli_has_registered_as_dump_does() {
    needs!(Trace);
    let mut lli = Command::new("lli-14");
    let running = Running::start(lli.arg("--jit-kind=orc").arg(workload("endless.ll")));
    let pid = running.pid();
    let codes = wait_for(
        || "lli registers its code".to_owned(),
        || Some(codes(pid)).filter(|codes| codes.iter().any(|(_, name)| name == "main")),
    );
    let mut gdb = tool("gdb");
    gdb.args(["-batch", "-nx", "-p", &pid.to_string()]);
    for (address, _) in &codes {
        gdb.arg("-ex").arg(format!("info symbol {address:#x}"));
    }
    let said = run(&mut gdb).stdout;
    for (address, name) in &codes {
        let line = format!("{name} in section .text");
        assert!(said.lines().any(|it| it.starts_with(&line)), "{name} at {address:#x}: {said}");
    }
}

#[test]
fn record_names_what_lli_registers() {
    needs!(Perf);
    let program = ["lli-14", "--jit-kind=orc", &argument(workload("spin.ll"))];
    let options = ["-F", "999", "--call-graph=none"];
    let recorded = Record::new(&options).program(&program);
    let samples = &recorded.report["samples"];
    let count = |name: &str| samples[name].as_u64().expect("a number");
    assert!(count("named") > 50, "{samples}");
    assert!(count("named") > count("unnamed") * 10, "{samples}");
}
