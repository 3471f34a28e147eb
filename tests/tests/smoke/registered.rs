//! Code that a process registers with GDB's JIT interface, and announces in no other way.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use end_to_end::jitscribe::{jitscribe, json_lines};
use end_to_end::live::workload;
use end_to_end::record::{Record, Recorded};
use end_to_end::running::Running;
use end_to_end::tool::{argument, ended, run, tool};
use serde_json::Value;
use tempfile::TempDir;
use test_privilege::needs;

const NAME: &str = "spin_in_memory";

/// A program that registers code, built by the C compiler.
struct Program(TempDir);

impl Program {
    fn build() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let program = Self(folder);
        let source = workload("registers.c");
        run(tool("cc").arg("-O1").arg(source).arg("-o").arg(program.path()));
        program
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("registers")
    }

    /// Runs it until it is killed. Returns where its code is, too.
    fn start(&self, mode: &str) -> (Running, u64) {
        let mut command = Command::new(self.path());
        let mut running = Running::start(command.args([mode, "600"]).stdout(Stdio::piped()));
        let line = running.line();
        let address = line.trim().strip_prefix("ready 0x").expect("an address");
        (running, u64::from_str_radix(address, 16).expect("an address"))
    }
}

/// The codes that `dump -p` lists.
fn codes(pid: u32) -> Vec<Value> {
    let pid = pid.to_string();
    let events = json_lines(jitscribe().args(["dump", "--json", "-p", &pid]));
    events.into_iter().filter(|event| event["event"] == "load").collect()
}

/// How many samples have the function's name, and how many there are.
fn samples(recorded: &Recorded) -> (u64, u64) {
    let samples = &recorded.report["samples"];
    let count = |name: &str| samples[name].as_u64().expect("a number");
    assert_eq!(recorded.report["top"][0]["name"], NAME, "{}", recorded.report);
    (count("named"), count("samples"))
}

#[test]
fn dump_lists_the_code() {
    needs!(Trace);
    let program = Program::build();
    let (running, address) = program.start("plain");
    let codes = codes(running.pid());
    let [code] = codes.as_slice() else { panic!("{codes:?}") };
    assert_eq!(code["name"], NAME);
    assert_eq!(code["size"], 10);
    assert_eq!(code["address"], format!("{address:#x}"));
}

#[test]
fn lists_without_an_end_end() {
    needs!(Trace);
    let program = Program::build();
    for (mode, names) in [("loop", 2), ("wild", 1)] {
        let (running, _) = program.start(mode);
        assert_eq!(codes(running.pid()).len(), names, "{mode}");
    }
    // What is not executable memory has no names.
    let (running, _) = program.start("stale");
    let refused = ended(jitscribe().args(["dump", "-p", &running.pid().to_string()]));
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("GDB's JIT interface"), "{}", refused.stderr);
}

#[test]
fn record_names_the_samples() {
    needs!(Perf);
    needs!(Trace);
    let program = Program::build();
    let path = argument(program.path());
    let options = ["-F", "999", "--call-graph=none"];
    let (named, all) = samples(&Record::new(&options).program(&[&path, "plain", "1"]));
    // One second of processor time.
    assert!(named > 200 && named * 100 >= all * 90, "{named} of {all}");
    // A process that runs already: all of its code is known before perf records.
    let (running, _) = program.start("plain");
    let pid = running.pid().to_string();
    let options = ["-F", "999", "--call-graph=none", "-p", &pid];
    let (named, all) = samples(&Record::new(&options).program(&["sleep", "1"]));
    assert!(named > 0 && named * 100 >= all * 90, "{named} of {all}");
}

#[test]
fn code_is_named_however_it_comes_to_be_executable() {
    needs!(Perf);
    needs!(Trace);
    let program = Program::build();
    let path = argument(program.path());
    let options = ["-F", "999", "--call-graph=none"];
    for mode in ["late", "file"] {
        let (named, all) = samples(&Record::new(&options).program(&[&path, mode, "0.5"]));
        assert!(named > 100 && named * 100 >= all * 80, "{mode}: {named} of {all}");
    }
}

#[test]
fn stacks_go_on_behind_code_without_unwind_info() {
    needs!(Perf);
    needs!(Trace);
    let program = Program::build();
    let path = argument(program.path());
    let options = ["-F", "499", "--call-graph=dwarf,4096"];
    let recorded = Record::new(&options).program(&[&path, "plain", "0.5"]);
    let stacks = &recorded.report["stacks"];
    let count = |name: &str| stacks[name].as_u64().expect("a number");
    assert!(count("whole") > 50, "{stacks}");
    assert!(count("whole") * 100 >= count("stacks") * 90, "{stacks}");
}

#[test]
fn a_core_file_has_the_code() {
    needs!(Trace);
    let program = Program::build();
    let (running, address) = program.start("plain");
    let core = program.0.path().join("core");
    let mut gdb = tool("gdb");
    let command = format!("generate-core-file {}", argument(&core));
    run(gdb.args(["-batch", "-nx", "-p", &running.pid().to_string(), "-ex", &command]));
    let events = json_lines(jitscribe().args(["dump", "--json", "--core"]).arg(&core));
    let loads: Vec<_> = events.iter().filter(|event| event["event"] == "load").collect();
    let [code] = loads.as_slice() else { panic!("{events:?}") };
    assert_eq!(code["name"], NAME);
    assert_eq!(code["address"], format!("{address:#x}"));
}

#[test]
fn code_that_is_unregistered_keeps_its_samples_and_gets_no_others() {
    needs!(Perf);
    needs!(Trace);
    let program = Program::build();
    let path = argument(program.path());
    let options = ["-F", "999", "--call-graph=none"];
    // The other second is in code that is not registered, most often at the same address.
    let (named, all) = samples(&Record::new(&options).program(&[&path, "gone", "2"]));
    assert!(named * 10 >= all * 3 && named * 10 <= all * 7, "{named} of {all}");
}

#[test]
fn exact_times_are_those_of_the_registrations() {
    needs!(Perf);
    needs!(Trace);
    needs!(Breakpoints);
    let program = Program::build();
    let path = argument(program.path());
    let options = ["-F", "999", "--call-graph=none", "--exact-times", "--keep-raw"];
    let recorded = Record::new(&options).program(&[&path, "brief", "1.5"]);
    let folder = recorded.raw();
    let dumps = std::fs::read_dir(&folder).expect("a folder").map(|file| file.expect("a file"));
    let of_lists =
        dumps.filter(|file| file.file_name().to_string_lossy().starts_with("registered-"));
    let dump = of_lists.flat_map(|folder| std::fs::read_dir(folder.path()).expect("a folder"));
    let dump = dump.map(|file| file.expect("a file").path()).next().expect("a dump");
    let events = json_lines(jitscribe().args(["dump", "--json"]).arg(&dump));
    let loaded = |name: &str| {
        let load = events.iter().find(|it| it["event"] == "load" && it["name"] == name)?;
        load["time"].as_u64()
    };
    let mut exact = 0;
    for line in recorded.said.lines().filter(|line| line.starts_with("brief_")) {
        let [name, before, after] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let [before, after] = [before, after].map(|time| time.parse::<u64>().expect("a time"));
        exact += usize::from(loaded(name).is_some_and(|time| (before..=after).contains(&time)));
    }
    // The first code runs before its list is found, and on a busy machine others end before they are read.
    assert!(exact >= 8, "{exact} of 15: {events:?}");
}
