//! Names of code that have a place: each verb for Valgrind's files shows the function, the file and the line.

use std::collections::BTreeSet;

use crate::common::Bench;

const PID: u32 = 5_000_009;

/// Names as MoarVM, V8, CPython and JavaScriptCore write them, and one that is only a name.
const NAMES: [&str; 13] = [
    "collatz(p.raku:1)",
    "find(src/q.nqp:3)",
    "find(src/q.nqp:9)",
    "(src/q.nqp:5)",
    "JS:*f file:///a/x.js:2:3",
    "JS:^f file:///a/x.js:2:3",
    "py::g:y.py",
    "TRACE-11$mandel$5",
    "plain(int)",
    "JSC-DFG: gamma#B5QEX4",
    "JSC-FTL: gamma#B5QEX4",
    "JSC-FTL: t#AAAAAA",
    "JSC-FTL: t#BBBBBB",
];

/// Where the code with this number is.
fn address(number: usize) -> usize {
    0x1000 * (number + 1)
}

fn bench() -> Bench {
    let line = |(number, name)| format!("{:x} 40 {name}\n", address(number));
    let map: String = NAMES.iter().enumerate().map(line).collect();
    Bench::with(&format!("perf-{PID}.map"), map)
        .and("p.raku", "sub collatz { }\n")
        .and("y.py", "import os\n\ndef g():\n  pass\n")
}

#[test]
fn functions_in_a_profile_of_callgrind_have_a_file_and_a_line() {
    let mut profile = format!(
        "version: 1\ncreator: callgrind-3.19\npid: {PID}\ncmd: app\npart: 1\n\npositions: instr line\n\
         events: Ir\n\nob=???\nfl=???\n"
    );
    for number in 0..NAMES.len() {
        let address = address(number);
        profile += &format!("fn=0x{address:016x}\n0x{address:x} 0 1\n0x{:x} 0 1\n", address + 4);
    }
    let bench = bench().and("callgrind.out", profile);
    // The profile is named by its file alone, as by who stands in its folder.
    bench.ask(&["callgrind", "callgrind.out"]).ok();
    let named = String::from_utf8(bench.read("callgrind.out.jitted")).expect("text");
    let (mut file, mut function, mut found) = (String::new(), String::new(), BTreeSet::new());
    for line in named.lines() {
        if let Some(name) = line.strip_prefix("fl=") {
            file = name.to_owned();
        } else if let Some(name) = line.strip_prefix("fn=") {
            function = name.to_owned();
        } else if line.starts_with("0x") || line.starts_with('+') {
            found.insert((function.clone(), file.clone()));
        }
    }
    let here = |name: &str| bench.path(name).to_str().expect("text").to_owned();
    let expected = [
        ("collatz", here("p.raku")),
        // A file has several functions of this name.
        ("find:3", "src/q.nqp".into()),
        ("find:9", "src/q.nqp".into()),
        ("(anonymous):5", "src/q.nqp".into()),
        // Tiers of one function.
        ("f", "/a/x.js".into()),
        ("g", here("y.py")),
        ("mandel", "???".into()),
        ("plain(int)", "???".into()),
        // Two sources have this name.
        ("gamma", "???".into()),
        ("t#AAAAAA", "???".into()),
        ("t#BBBBBB", "???".into()),
    ];
    let expected: BTreeSet<_> =
        expected.into_iter().map(|(name, file)| (name.to_owned(), file)).collect();
    assert_eq!(found, expected, "{named}");
    assert!(named.contains("fn=find:9\n0x3000 9 1\n"), "{named}");
}

#[test]
fn frames_of_memcheck_have_a_file_and_a_line() {
    let mut log = format!("=={PID}== Invalid read of size 8\n");
    for number in 0..NAMES.len() {
        log += &format!("=={PID}==    at 0x{:X}: ???\n", address(number) + 4);
    }
    let bench = bench().and("memcheck.log", log);
    bench.ask(&["memcheck", "memcheck.log", "-o", "named"]).ok();
    let named = String::from_utf8(bench.read("named")).expect("text");
    let shown: Vec<&str> =
        named.lines().filter_map(|line| line.split_once(": ")).map(|at| at.1).collect();
    let map = format!("(in ./perf-{PID}.map)");
    let expected = [
        "collatz (p.raku:1)",
        "find (q.nqp:3)",
        "find (q.nqp:9)",
        "(anonymous) (q.nqp:5)",
        "f (x.js:2)",
        "f (x.js:2)",
        &format!("g {map}"),
        &format!("mandel {map}"),
        &format!("plain(int) {map}"),
        &format!("gamma {map}"),
        &format!("gamma {map}"),
        &format!("t {map}"),
        &format!("t {map}"),
    ];
    assert_eq!(shown, expected, "{named}");
}
