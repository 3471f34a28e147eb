//! Running processes that keep a code log: `dump -p`, `dump --core`, `ctl`.

use crate::common::announcer::{Announcer, program};
use crate::common::{Bench, Running, removed_map, wait_until};
use jitscribe::{Code, Kind, Line, LoadedCode, Scribe};
use serde_json::{Value, json};
use test_privilege::needs;

/// `how` is what [`announcer`] knows; `variables` are for its environment.
fn start(how: &str, variables: &[(&str, &str)]) -> Announcer {
    let mut command = program();
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

/// A process, and a folder to ask about it in.
struct Asked {
    bench: Bench,
    process: Announcer,
    pid: u32,
}

impl Asked {
    fn new(how: &str, variables: &[(&str, &str)]) -> Self {
        let process = start(how, variables);
        Self { bench: Bench::new(), pid: process.pid(), process }
    }

    /// One with codes of the names `first`, `second` and `third`, of which it has freed this one.
    fn with_three_codes(how: &str, freed: usize) -> Self {
        let mut this = Self::new(how, &[]);
        for name in ["first", "second", "third"] {
            this.process.tell(&format!("load {name}"));
        }
        this.process.tell(&format!("free {freed}"));
        this
    }

    fn dump(&self, options: &str) -> String {
        self.bench.ask(&format!("dump -p {} {options}", self.pid)).ok().stdout
    }

    fn ctl(&self, words: &str) -> String {
        self.bench.ask(&format!("ctl -p {} {words}", self.pid)).ok().stdout
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.ctl("status --json")).expect("JSON")
    }

    #[track_caller]
    fn expect_off(&self) {
        let status = self.ctl("status");
        assert!(status.contains(": off\n"), "{status}");
    }

    /// What lived when it was turned on is announced again, and so is what it has made since, but not what it made before.
    #[track_caller]
    fn expect_heard(&self) {
        let map = self.dump("--perf-map");
        assert!(map.contains("replayed") && map.contains("heard"), "{map}");
        assert!(!map.contains("unheard"), "{map}");
    }
}

#[test]
fn what_a_process_has_made_is_seen_from_outside() {
    let asked = Asked::with_three_codes("plain", 1);
    let events = asked.dump("--json");
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let loads: Vec<Value> = events.filter(|event| event["event"] == "load").collect();
    let names: Vec<_> = loads.iter().map(|load| load["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["first", "second", "third"]);
    assert!(loads[0]["died"].is_null() && loads[1]["died"].is_u64());
    assert_eq!((&loads[2]["tier"], &loads[2]["lines"][0]["line"]), (&"baseline".into(), &7.into()));

    let map = asked.dump("--perf-map");
    assert_eq!(map.lines().count(), 2, "{map}");
    assert!(!map.contains("second"));

    let name = format!("jit-{}.dump", asked.pid);
    asked.dump(&format!("--jitdump {name}"));
    let bytes = asked.bench.read(&name);
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
    asked.bench.ask(&["check", &name]).ok();
}

#[test]
fn a_core_file_tells_what_its_process_had_made() {
    needs!(Trace);
    let asked = Asked::with_three_codes("plain", 0);
    let live = asked.dump("--json");
    let Asked { bench, process, pid } = asked;
    bench.run(&format!("gcore -o core {pid}"));
    drop(process);
    let core = bench.ask(&format!("dump --core core.{pid} --json")).ok().stdout;
    assert_eq!(core, live);
    assert!(core.contains("\"third\""));
}

#[test]
fn a_process_context_that_lists_the_log_is_reported() {
    for (setting, is_listed, value) in
        [("process-context", true, json!(true)), ("log", false, Value::Null)]
    {
        let asked = Asked::new("plain", &[("JITSCRIBE", setting)]);
        let status = asked.ctl("status");
        let line = "\n  listed in the OpenTelemetry process context\n";
        assert_eq!(status.contains(line), is_listed, "{status}");
        assert_eq!(asked.status()["process_context"], value);
    }
}

#[test]
fn a_log_is_turned_on_and_off_from_outside() {
    let mut asked = Asked::new("plain", &[("JITSCRIBE", "off")]);
    let pid = asked.pid;
    asked.process.tell("load unheard");
    asked.expect_off();

    // It announces nothing now: it is asked, and answers when it next announces or polls.
    let on = asked.bench.ask(&format!("ctl -p {pid} on --wait 0.05")).ok();
    on.says("does so with its next announcement");
    assert!(on.stdout.contains("on (requested)"), "{}", on.stdout);
    asked.process.tell("poll");
    asked.process.tell("load heard");
    asked.expect_heard();
    let status = asked.status();
    assert_eq!((&status["on"], &status["alive"]), (&true.into(), &2.into()));
    assert!(status["resumed"].as_u64() > Some(0));

    assert_eq!(status["gdb"], false);
    asked.ctl("on --gdb --wait 0");
    asked.process.tell("load debugged");
    let status = asked.ctl("status");
    assert!(status.contains(", shown to debuggers\n"), "{status}");

    drop(removed_map(pid));
    let map = removed_map(pid);
    asked.ctl("on --perf-map --bytes --wait 0");
    asked.process.tell("load mapped");
    let text = std::fs::read_to_string(&map.0).unwrap();
    for name in ["replayed", "heard", "mapped"] {
        assert!(text.contains(name), "{text}");
    }

    asked.ctl("off --wait 0");
    asked.process.tell("load unheard");
    let names = asked.dump("");
    assert!(!names.contains("unheard"), "{names}");
    asked.expect_off();
}

#[test]
fn a_log_in_anonymous_memory_is_found_read_and_turned_on_and_off() {
    let mut asked = Asked::with_three_codes("anonymous", 1);
    let map = asked.dump("--perf-map");
    let names: Vec<_> = map.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(names, ["first", "third"]);
    let status = asked.ctl("status");
    assert!(status.contains(": on\n") && status.contains("2 codes alive, 1 dead"), "{status}");
    assert!(status.contains(&format!("(/proc/{}/mem at 0x", asked.pid)), "{status}");

    asked.ctl("off --wait 0");
    asked.process.tell("load unheard");
    asked.expect_off();
    asked.ctl("on --wait 0");
    asked.process.tell("load heard");
    asked.expect_heard();
}

#[test]
fn a_runtime_that_waits_for_wishes_answers_at_once() {
    let asked = Asked::new("watch", &[]);
    let on = asked.bench.ask(&format!("ctl -p {} on --wait 20", asked.pid)).ok();
    assert_eq!(on.stderr, "");
    assert!(on.stdout.contains(": on\n"), "{}", on.stdout);
    // The runtime announces again what is alive, behind its answer.
    wait_until("it is announced again", || asked.dump("--perf-map").contains("replayed"));
}

#[test]
fn a_map_is_put_where_perf_looks_for_it() {
    let mut asked = Asked::new("plain", &[]);
    asked.process.tell("load mapped");
    // Of an earlier process with this id.
    drop(removed_map(asked.pid));
    let map = removed_map(asked.pid);
    asked.dump("--map-for-perf");
    let again = asked.bench.ask(&format!("dump -p {} --map-for-perf", asked.pid));
    again.ends(1).says("--force");
    let text = std::fs::read_to_string(&map.0).unwrap();
    assert!(text.ends_with(" 10 mapped\n"), "{text}");
}

#[test]
fn processes_without_a_log_are_told_apart_from_none() {
    let bench = Bench::with("core", "no core");
    let none = bench.ask("dump -p 4194305").ends(1);
    assert_eq!(none.stderr, "jitscribe: error: there is no process 4194305\n");
    let sleep = Running::start(&mut bench.command("sleep 60"));
    for verb in ["dump", "ctl status"] {
        bench.ask(&format!("{verb} -p {}", sleep.pid())).ends(1).says("keeps no code log");
    }
    bench.ask("dump --core core").ends(1).says("core: ");
}
