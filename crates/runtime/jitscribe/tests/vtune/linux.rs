//! The programs, and what the collector must be told.
#![allow(unsafe_code)] // a fork

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use jitscribe::{Builder, Code, Inlined, Line, Mode, Scribe, Subject};
use tempfile::TempDir;

const ALL: [(&str, fn()); 7] = [
    ("codes_are_loaded_moved_and_unloaded", codes),
    ("a_full_log_does_not_keep_code_from_vtune", full),
    ("a_child_of_a_fork_reports_its_code", fork),
    ("no_collector_is_loaded_if_that_is_not_wanted", unwanted),
    ("without_a_variable_nothing_is_loaded_and_only_a_request_is_reported", absent),
    ("a_collector_that_cannot_be_used_is_reported_once", unusable),
    ("a_module_has_the_runtime_s_name", module),
];

pub fn main() {
    if let Ok(role) = std::env::var("ROLE") {
        return play(&role);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = arguments.iter().find(|argument| !argument.starts_with('-'));
    let is_list = arguments.iter().any(|argument| argument == "--list");
    for (name, test) in ALL {
        if wanted.is_some_and(|wanted| !name.contains(wanted.as_str())) {
            continue;
        }
        if is_list {
            println!("{name}: test");
            continue;
        }
        test();
        println!("test {name} ... ok");
    }
}

fn builder() -> Builder {
    let builder = Scribe::builder().environment().gdb(Mode::Off).valgrind(Mode::Off);
    builder.notice(|notice| {
        let is_ours = notice.subject() == Subject::Vtune;
        println!("{}{notice}", if is_ours { "VTune: " } else { "" });
    })
}

/// The first line of `/proc/self/maps` that is of the collector.
fn mapped() -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().find(|line| line.contains("collector")).map(str::to_owned)
}

fn play(role: &str) {
    match role {
        "codes" => {
            let scribe = builder().build();
            let ranges = [(4..16), (24..28)];
            let calls = [Inlined::new("inner", &ranges).called_from("/here", 7)];
            let lines =
                [Line::new(0, "/here", 1), Line::new(4, "/lib", 20), Line::new(16, "/here", 2)];
            let code = Code::at(0x1000, 32).named("fib").lines(&lines).inlined(&calls);
            let mut first = scribe.load(&code);
            let second = scribe.load(&Code::at(0x2000, 16).named("second"));
            first.moved_to_address(0x3000);
            drop(second);
            first.moved_to_address(0x4000);
            drop(first);
        }
        "full" => {
            let scribe = builder().limit(64 << 10).build();
            let mut handles = Vec::new();
            for number in 0..2000 {
                let name = "n".repeat(100);
                handles.push(scribe.load(&Code::at(0x1_0000 + 64 * number, 64).named(&name)));
            }
            // There is no space for a new entry.
            if let Some(first) = handles.first_mut() {
                first.moved_to_address(0x1000);
            }
        }
        "fork" => {
            let scribe = builder().build();
            let mut before = scribe.load(&Code::at(0x1000, 16).named("before"));
            // SAFETY: the process has one thread.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let code = scribe.load(&Code::at(0x2000, 16).named("child"));
                before.moved_to_address(0x5000);
                drop(code);
                // SAFETY: ends the process.
                unsafe { libc::_exit(0) };
            }
            let mut status = 0;
            // SAFETY: `status` is a valid place for the answer.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!(status, 0);
            drop(before);
        }
        "create" | "module" | "disabled" => {
            let builder = match role {
                "module" => builder().vtune_module("my runtime"),
                "disabled" => builder().off(),
                _ => builder(),
            };
            let scribe = builder.build();
            scribe.load(&Code::at(0x1000, 16).named("code")).leak();
            scribe.load(&Code::at(0x2000, 16).named("code")).leak();
            println!("{}", mapped().map_or("not mapped", |_| "mapped"));
        }
        other => panic!("no role is called {other}"),
    }
}

/// What a role printed, and what the collector wrote down.
struct Ran {
    said: String,
    told: Vec<String>,
}

fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| TempDir::new().unwrap()).path()
}

/// The collector, which is compiled first.
fn collector() -> PathBuf {
    let library = folder().join("collector.so");
    if !library.exists() {
        let source = "../publish-vtune/tests/collectors/collector.c";
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
        let mut cc =
            Command::new(std::env::var("JITSCRIBE_CC").unwrap_or_else(|_| "cc".to_owned()));
        cc.args(["-shared", "-fPIC", "-pthread", "-o"]).arg(&library).arg(source);
        let output = cc.output().unwrap_or_else(|error| panic!("cc: {error}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    library
}

/// Runs this program in a role, with a collector, and with words in `JITSCRIBE`.
fn run(role: &str, collector: Option<&Path>, words: &str) -> Ran {
    let log = TempDir::new().unwrap();
    let log = log.path().join("log");
    let mut command = Command::new(std::env::current_exe().unwrap());
    for variable in ["INTEL_JIT_PROFILER64", "INTEL_JIT_PROFILER32"] {
        command.env_remove(variable);
        if let Some(collector) = collector {
            command.env(variable, collector);
        }
    }
    command.env("ROLE", role).env("COLLECTOR_LOG", &log).env("JITSCRIBE", words);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{role}: {}\n{said}{errors}", output.status);
    let told = std::fs::read_to_string(log).unwrap_or_default();
    Ran { said, told: told.lines().map(str::to_owned).collect() }
}

/// The events, without process and thread, and with ids that begin at 1.
fn events(ran: &Ran) -> Vec<String> {
    let events: Vec<Vec<&str>> = ran
        .told
        .iter()
        .filter(|line| *line != "initialize")
        .map(|line| line.split(' ').skip(2).collect())
        .collect();
    let number = |word: &str| word.parse::<u32>().unwrap();
    let first = events.first().map_or(0, |event| number(event[1]));
    let short = |event: Vec<&str>| {
        let is_id = |at: usize| at == 1 || at == 3 && event[0] == "inline";
        let words = event.iter().enumerate().map(|(at, word)| {
            if is_id(at) { format!("#{}", number(word) - first + 1) } else { (*word).to_owned() }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    events.into_iter().map(short).collect()
}

fn codes() {
    let ran = run("codes", Some(&collector()), "");
    assert_eq!(ran.said, "");
    let fib = |address: u64| {
        let at = |offset| format!("{:#x}", address + offset);
        [
            format!(
                "load #1 \"fib\" {}+20 [4:1 16:7 24:2 28:7 32:2] NULL \"/here\" \"jit\" 0",
                at(0)
            ),
            format!("inline #2 in #1 \"inner\" {}+c [12:20] NULL \"/lib\"", at(4)),
            format!("inline #2 in #1 \"inner\" {}+4 [] NULL \"/lib\"", at(24)),
        ]
    };
    let unload = |id, place| format!("unload #{id} \"\" {place} [] NULL NULL");
    let mut expected = Vec::from(fib(0x1000));
    expected.push("load #3 \"second\" 0x2000+10 [] NULL NULL \"jit\" 0".to_owned());
    expected.push(unload(1, "0x1000+20"));
    expected.extend(fib(0x3000));
    expected.push(unload(3, "0x2000+10"));
    expected.push(unload(1, "0x3000+20"));
    expected.extend(fib(0x4000));
    expected.push(unload(1, "0x4000+20"));
    assert_eq!(events(&ran), expected);
}

fn full() {
    let ran = run("full", Some(&collector()), "");
    assert!(ran.said.contains("the code log is full"), "{}", ran.said);
    let events = events(&ran);
    assert_eq!(events.iter().filter(|event| event.starts_with("load")).count(), 2001);
    let name = "n".repeat(100);
    let moved = [
        "unload #1 \"\" 0x10000+40 [] NULL NULL".to_owned(),
        format!("load #1 \"{name}\" 0x1000+40 [] NULL NULL \"jit\" 0"),
    ];
    assert!(events[2000..].starts_with(&moved), "{:#?}", &events[2000..2002]);
}

fn fork() {
    let ran = run("fork", Some(&collector()), "");
    assert_eq!(ran.said, "");
    let expected = [
        "load #1 \"before\" 0x1000+10 [] NULL NULL \"jit\" 0",
        "load #2 \"child\" 0x2000+10 [] NULL NULL \"jit\" 0",
        "unload #1 \"\" 0x1000+10 [] NULL NULL",
        "load #1 \"before\" 0x5000+10 [] NULL NULL \"jit\" 0",
        "unload #2 \"\" 0x2000+10 [] NULL NULL",
        "unload #1 \"\" 0x1000+10 [] NULL NULL",
    ];
    assert_eq!(events(&ran), expected);
}

fn unwanted() {
    for (role, words) in [("create", "vtune=off"), ("create", "off"), ("disabled", "")] {
        let ran = run(role, Some(&collector()), words);
        assert_eq!(ran.said, "not mapped\n", "{words}");
        assert_eq!(ran.told, [""; 0]);
    }
    let ran = run("create", Some(&collector()), "vtune=off,vtune");
    assert_eq!((&*ran.said, ran.told.len()), ("mapped\n", 3));
}

fn absent() {
    let why = "VTune is passed no code: INTEL_JIT_PROFILER64 names no collector";
    let reported = format!("VTune: {why}\nnot mapped\n");
    for (collector, words, said) in [
        (None, "", "not mapped\n"),
        (Some(Path::new("")), "", "not mapped\n"),
        (None, "vtune", &*reported),
    ] {
        assert_eq!(run("create", collector, words).said, said);
    }
}

fn unusable() {
    let ran = run("create", Some(Path::new("/nowhere.so")), "");
    let begin = "VTune: VTune is passed no code: the collector of INTEL_JIT_PROFILER64 cannot be loaded: /nowhere.so: ";
    assert!(ran.said.starts_with(begin), "{}", ran.said);
    assert_eq!(ran.said.lines().count(), 2, "{}", ran.said);
}

fn module() {
    let ran = run("module", Some(&collector()), "");
    let expected = "load #1 \"code\" 0x1000+10 [] NULL NULL \"my\\x20runtime\" 0";
    assert_eq!(events(&ran)[0], expected);
}
