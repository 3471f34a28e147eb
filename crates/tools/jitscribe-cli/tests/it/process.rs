//! Running processes that keep a code log: `dump -p`, `dump --core`, `ctl`.

use std::process::Command;

use crate::common::announcer::Announcer;
use crate::common::{Bench, Running, finish, removed_map};
use jitscribe::{Code, Kind, Line, LoadedCode, Scribe};
use test_privilege::{Privilege, have};

/// `how` is what [`announcer`] knows; `variables` are for its environment.
fn start(how: &str, variables: &[(&str, &str)]) -> Announcer {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env_remove("JITSCRIBE").envs(variables.iter().copied());
    Announcer::start("process::announcer", command, how)
}

#[test]
#[ignore = "the process that the other tests look at, started by them"]
#[allow(clippy::print_stdout, reason = "standard output is how it answers")]
fn announcer() {
    let Ok(how) = std::env::var("ANNOUNCER") else { return };
    let mut builder = Scribe::builder().environment();
    if how == "watch" {
        builder = builder.off().control_thread();
    }
    builder =
        builder.replay(|scribe| scribe.load(&Code::at(0xfeed_0000, 16).named("replayed")).leak());
    let scribe = if how == "anonymous" { without_descriptors(builder) } else { builder.build() };
    let memory: &'static [u8] = Box::leak((0..=255).collect::<Vec<u8>>().into_boxed_slice());
    let lines = [Line::new(0, "/src/a.lang", 7).column(1)];
    let mut loaded: Vec<LoadedCode> = Vec::new();
    println!("done");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        match line.split_once(' ') {
            Some(("load", name)) => {
                let at = 16 * loaded.len() % 240;
                let code =
                    Code::new(&memory[at..at + 16]).named(name).lines(&lines).tier("baseline");
                loaded.push(scribe.load(&code.kind(Kind::Function)));
            }
            Some(("free", index)) => drop(loaded.swap_remove(index.parse().unwrap())),
            _ if line == "poll" => scribe.poll(),
            _ => panic!("{line}"),
        }
        println!("done");
    }
}

/// No file and no memfd is to be had: the log lies in anonymous memory, which only the list of mappings shows.
fn without_descriptors(builder: jitscribe::Builder) -> Scribe {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..before }).unwrap();
    let scribe = builder.build();
    setrlimit(Resource::Nofile, before).unwrap();
    assert!(scribe.log_fd().is_none());
    scribe
}

/// A process with codes of the names `first`, `second` and `third`, of which it has freed this one; and its id.
fn with_three_codes(how: &str, freed: usize) -> (Bench, Announcer, String) {
    let mut process = start(how, &[]);
    for name in ["first", "second", "third"] {
        process.tell(&format!("load {name}"));
    }
    process.tell(&format!("free {freed}"));
    let pid = process.pid().to_string();
    (Bench::new(), process, pid)
}

fn ok(bench: &Bench, words: &[&str]) -> String {
    let done = bench.ask(words);
    assert_eq!(done.code, 0, "{words:?}: {}", done.stderr);
    done.stdout
}

#[test]
fn what_a_process_has_made_is_seen_from_outside() {
    let (bench, _process, pid) = with_three_codes("plain", 1);
    let told = ok(&bench, &["dump", "-p", &pid, "--json"]);
    let loads: Vec<serde_json::Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|event: &serde_json::Value| event["event"] == "load")
        .collect();
    let names: Vec<_> = loads.iter().map(|load| load["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["first", "second", "third"]);
    assert!(loads[0]["died"].is_null() && loads[1]["died"].is_u64());
    assert_eq!((&loads[2]["tier"], &loads[2]["lines"][0]["line"]), (&"baseline".into(), &7.into()));

    let map = ok(&bench, &["dump", "-p", &pid, "--perf-map"]);
    assert_eq!(map.lines().count(), 2, "{map}");
    assert!(!map.contains("second"));

    let name = format!("jit-{pid}.dump");
    ok(&bench, &["dump", "-p", &pid, "--jitdump", &name]);
    let bytes = std::fs::read(bench.path(&name)).unwrap();
    let dump = jitdump::Dump::parse(&bytes).unwrap();
    let codes: Vec<_> = dump
        .codes()
        .filter_map(|event| match event.unwrap() {
            jitdump::CodeEvent::Load(code) => Some((code.bytes.to_vec(), code.is_without_bytes())),
            _ => None,
        })
        .collect();
    let memory: Vec<u8> = (0..=255).collect();
    // The bytes of what lives were fetched from the process; the dead one's are gone.
    assert_eq!(codes[0], (memory[..16].to_vec(), false));
    assert_eq!(codes[1], (Vec::new(), true));
    assert_eq!(codes[2], (memory[32..48].to_vec(), false));
    assert_eq!(bench.ask(&["check", &name]).code, 0);
}

#[test]
fn a_core_file_tells_what_its_process_had_made() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let (bench, process, pid) = with_three_codes("plain", 0);
    let live = ok(&bench, &["dump", "-p", &pid, "--json"]);
    let mut gcore = bench.command("gcore");
    gcore.args(["-o", "core", &pid]);
    let done = finish(gcore);
    assert_eq!(done.code, 0, "{}", done.stderr);
    drop(process);
    let core = ok(&bench, &["dump", "--core", &format!("core.{pid}"), "--json"]);
    assert_eq!(core, live);
    assert!(core.contains("\"third\""));
}

#[test]
fn a_process_context_that_lists_the_log_is_reported() {
    let bench = Bench::new();
    for (setting, text, value) in [
        ("process-context", true, serde_json::Value::Bool(true)),
        ("log", false, serde_json::Value::Null),
    ] {
        let process = start("plain", &[("JITSCRIBE", setting)]);
        let pid = process.pid().to_string();
        let status = ok(&bench, &["ctl", "-p", &pid, "status"]);
        assert_eq!(
            status.contains("\n  listed in the OpenTelemetry process context\n"),
            text,
            "{status}"
        );
        let status = ok(&bench, &["ctl", "-p", &pid, "status", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        assert_eq!(status["process_context"], value);
    }
}

#[test]
fn a_log_is_turned_on_and_off_from_outside() {
    let bench = Bench::new();
    let mut process = start("plain", &[("JITSCRIBE", "off")]);
    let pid = process.pid().to_string();
    process.tell("load unheard");
    assert!(ok(&bench, &["ctl", "-p", &pid, "status"]).contains(": off\n"));

    // Nothing is announced meanwhile: it is asked, and answers when it next announces or polls.
    let asked = bench.ask(&["ctl", "-p", &pid, "on", "--wait", "0.05"]);
    assert_eq!(asked.code, 0);
    assert!(asked.stderr.contains("does so with its next announcement"), "{}", asked.stderr);
    assert!(asked.stdout.contains("on (requested)"), "{}", asked.stdout);
    process.tell("poll");
    process.tell("load heard");
    let map = ok(&bench, &["dump", "-p", &pid, "--perf-map"]);
    assert!(map.contains("replayed") && map.contains("heard") && !map.contains("unheard"), "{map}");
    let status: serde_json::Value =
        serde_json::from_str(&ok(&bench, &["ctl", "-p", &pid, "status", "--json"])).unwrap();
    assert_eq!((&status["on"], &status["alive"]), (&true.into(), &2.into()));
    assert!(status["resumed"].as_u64() > Some(0));

    assert_eq!(status["gdb"], false);
    ok(&bench, &["ctl", "-p", &pid, "on", "--gdb", "--wait", "0"]);
    process.tell("load debugged");
    let status = ok(&bench, &["ctl", "-p", &pid, "status"]);
    assert!(status.contains(", shown to debuggers\n"), "{status}");

    drop(removed_map(process.pid()));
    let map = removed_map(process.pid());
    ok(&bench, &["ctl", "-p", &pid, "on", "--perf-map", "--bytes", "--wait", "0"]);
    process.tell("load mapped");
    let text = std::fs::read_to_string(&map.0).unwrap();
    for name in ["replayed", "heard", "mapped"] {
        assert!(text.contains(name), "{text}");
    }

    ok(&bench, &["ctl", "-p", &pid, "off", "--wait", "0"]);
    process.tell("load unheard");
    let names = ok(&bench, &["dump", "-p", &pid]);
    assert!(!names.contains("unheard"), "{names}");
    assert!(ok(&bench, &["ctl", "-p", &pid, "status"]).contains(": off\n"));
}

#[test]
fn a_log_in_anonymous_memory_is_found_read_and_turned_on_and_off() {
    let (bench, mut process, pid) = with_three_codes("anonymous", 1);
    let map = ok(&bench, &["dump", "-p", &pid, "--perf-map"]);
    let names: Vec<_> = map.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(names, ["first", "third"]);
    let status = ok(&bench, &["ctl", "-p", &pid, "status"]);
    assert!(status.contains(": on\n") && status.contains("2 codes alive, 1 dead"), "{status}");
    assert!(status.contains(&format!("(/proc/{pid}/mem at 0x")), "{status}");

    ok(&bench, &["ctl", "-p", &pid, "off", "--wait", "0"]);
    process.tell("load unheard");
    assert!(ok(&bench, &["ctl", "-p", &pid, "status"]).contains(": off\n"));
    ok(&bench, &["ctl", "-p", &pid, "on", "--wait", "0"]);
    process.tell("load heard");
    let map = ok(&bench, &["dump", "-p", &pid, "--perf-map"]);
    assert!(map.contains("replayed") && map.contains("heard") && !map.contains("unheard"), "{map}");
}

#[test]
fn a_runtime_that_waits_for_wishes_answers_at_once() {
    let bench = Bench::new();
    let process = start("watch", &[]);
    let pid = process.pid().to_string();
    let done = bench.ask(&["ctl", "-p", &pid, "on", "--wait", "20"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    assert!(done.stdout.contains(": on\n"), "{}", done.stdout);
    // The runtime tells again what is alive behind its answer.
    while !ok(&bench, &["dump", "-p", &pid, "--perf-map"]).contains("replayed") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_map_is_put_where_perf_looks_for_it() {
    let bench = Bench::new();
    let mut process = start("plain", &[]);
    process.tell("load mapped");
    let pid = process.pid().to_string();
    // Of an earlier process with this id.
    drop(removed_map(process.pid()));
    let map = removed_map(process.pid());
    ok(&bench, &["dump", "-p", &pid, "--map-for-perf"]);
    let again = bench.ask(&["dump", "-p", &pid, "--map-for-perf"]);
    let text = std::fs::read_to_string(&map.0).unwrap();
    assert!(text.ends_with(" 10 mapped\n"), "{text}");
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("--force"), "{}", again.stderr);
}

#[test]
fn processes_without_a_log_are_told_apart_from_none() {
    let bench = Bench::new();
    let none = bench.ask(&["dump", "-p", "4194305"]);
    assert_eq!(
        (none.code, none.stderr.as_str()),
        (1, "jitscribe: error: there is no process 4194305\n")
    );
    let mut sleep = bench.command("sleep");
    sleep.arg("60");
    let sleep = Running::start(sleep);
    for verb in [&["dump"][..], &["ctl", "status"]] {
        let mut words = verb.to_vec();
        let pid = sleep.pid().to_string();
        words.extend(["-p", &pid]);
        let done = bench.ask(&words);
        assert_eq!(done.code, 1);
        assert!(done.stderr.contains("keeps no code log"), "{}", done.stderr);
    }
    bench.write("core", "no core");
    let done = bench.ask(&["dump", "--core", "core"]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("core: "), "{}", done.stderr);
}
