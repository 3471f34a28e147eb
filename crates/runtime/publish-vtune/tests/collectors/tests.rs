//! What collectors must be told.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Command;

use test_privilege::{Privilege, have};

use crate::roles::{CODES, THREADS};
use crate::run::{collector, run, run_command, run_with};

/// All tests, by name.
pub const ALL: [(&str, fn()); 13] = [
    ("nothing_is_loaded_unless_the_variable_is_set", off),
    ("a_collector_is_loaded_and_started", on),
    ("a_collector_that_is_not_running_is_told_nothing", not_running),
    ("a_collector_that_cannot_be_loaded", not_loaded),
    ("a_collector_that_lacks_a_function", missing),
    ("a_set_user_id_program_loads_nothing", set_user_id),
    ("codes_with_lines_and_inlined_calls", codes),
    ("names_and_paths_of_any_bytes", names),
    ("addresses_and_sizes_at_the_limits", places),
    ("a_code_that_moves_is_the_same_method", moves),
    ("threads_report_at_the_same_time", threads),
    ("a_fork_s_child_goes_on", fork),
    ("each_allocation_may_be_refused", refused),
];

fn off() {
    for value in [None, Some(Path::new(""))] {
        let ran = run_with("create", value, &[]);
        let why = "INTEL_JIT_PROFILER64 names no collector; absence: true; 0 files";
        assert_eq!(ran.said, format!("VTune is passed no code: {why}\n"));
        assert_eq!(ran.told, [""; 0]);
    }
}

fn on() {
    let ran = run("create");
    assert_eq!(ran.said, "ok; 1 files\n");
    assert_eq!(ran.told[0], "initialize");
    assert_eq!(ran.events(), ["load #1 \"code\" 0x1000+4 [] NULL NULL \"jit\" 0"]);
}

fn not_running() {
    let ran = run_with("create", Some(&collector(None)), &[("COLLECTOR_MODE", "0")]);
    let why = "the collector of INTEL_JIT_PROFILER64 is not running; absence: true; 1 files";
    assert_eq!(ran.said, format!("VTune is passed no code: {why}\n"));
    assert_eq!(ran.told, ["initialize"]);
}

fn not_loaded() {
    let text = std::env::current_dir().unwrap().join("Cargo.toml");
    let cases = [
        (Path::new("/nowhere/collector.so"), "No such file or directory"),
        (&text, "invalid ELF header"),
    ];
    for (path, why) in cases {
        let ran = run_with("create", Some(path), &[]);
        let begin =
            "VTune is passed no code: the collector of INTEL_JIT_PROFILER64 cannot be loaded: ";
        assert!(ran.said.starts_with(begin) && ran.said.contains(why), "{}", ran.said);
        assert!(ran.said.contains(path.to_str().unwrap()), "{}", ran.said);
        assert!(ran.said.ends_with("; absence: false; 0 files\n"), "{}", ran.said);
        assert_eq!(ran.told, [""; 0]);
    }
}

fn missing() {
    for function in ["NotifyEvent", "Initialize"] {
        let ran = run_with("create", Some(&collector(Some(function))), &[]);
        let why = format!("the collector of INTEL_JIT_PROFILER64 has no function {function}");
        assert_eq!(ran.said, format!("VTune is passed no code: {why}; absence: false; 1 files\n"));
        // The collector is not started if it cannot be used.
        assert_eq!(ran.told, [""; 0]);
    }
}

/// A copy of this program that belongs to another user, whose rights it gets.
fn set_user_id() {
    if !have(&[Privilege::OtherUsers, Privilege::SetUserId]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let sh = "chmod 755 \"$0\" && chown 65534 \"$1\" && chmod 4755 \"$1\"";
    let done = Command::new("sh").args(["-c", sh]).args([folder.path(), &copy]).status().unwrap();
    assert!(done.success());
    let ran = run_command(&mut Command::new(&copy), "create", Some(&collector(None)), &[]);
    let why = "INTEL_JIT_PROFILER64 names no collector; absence: true; 0 files";
    assert_eq!(ran.said, format!("VTune is passed no code: {why}\n"));
    assert_eq!(ran.told, [""; 0]);
}

/// A code in a module with two inlined calls, one in the other, of which one has two ranges.
fn described([code, outer, inner]: [&str; 3], address: u64, module: &str) -> Vec<String> {
    let (here, lib) = ("\"/src/here.lang\"", "\"/src/lib.lang\"");
    let at = |offset: u64| format!("{:#x}", address + offset);
    vec![
        // Behind the last call, the lines are of another file.
        format!("load {code} \"fib\" {}+28 [4:1 16:7 24:2 28:7] NULL {here} {module} 0", at(0)),
        format!("inline {outer} in {code} \"outer\" {}+c [4:20 8:25 12:21] NULL {lib}", at(4)),
        format!("inline {outer} in {code} \"outer\" {}+4 [4:22] NULL {lib}", at(24)),
        format!("inline {inner} in {outer} \"inner\" {}+4 [4:30] NULL {lib}", at(8)),
    ]
}

fn codes() {
    let ran = run("codes");
    let table = "[1:2 12:4 15:2 18:1 21:30]";
    let module = "\"a\\x20runtime\"";
    let plain = |id, name, place| format!("load {id} \"{name}\" {place} [] NULL NULL {module} 0");
    let unload = |id, place| format!("unload {id} \"\" {place} [] NULL NULL");
    let source = "NULL \"/src/here.lang\"";
    let mut expected = vec![format!("load #1 \"table\" 0x1000+15 {table} {source} {module} 0")];
    expected.extend(described(["#2", "#3", "#4"], 0x2000, module));
    expected.extend([
        plain("#5", "plain", "0x3000+10"),
        unload("#2", "0x2000+28"),
        plain("#6", "over", "0xff0+14"),
        plain("#7", "again", "0x3000+10"),
        // What was loaded over is gone already.
        unload("#7", "0x3000+10"),
        unload("#6", "0xff0+14"),
    ]);
    assert_eq!(ran.events(), expected);
}

fn names() {
    let ran = run("names");
    let events = ran.events();
    let place = "0x1000+4 [4:1] NULL";
    let long = "n".repeat(1997) + "...";
    let expected = [
        format!("load #1 \"a?b?c\" {place} NULL \"jit\" 0"),
        format!("load #2 \"\\xff\\xfe?\" {place} \"/with\\x0anewline\" \"jit\" 0"),
        format!("load #3 \"<unnamed>\" {place} NULL \"jit\" 0"),
        format!("load #4 \"gr\\xc3\\xb6\\xc3\\x9fe\" {place} NULL \"jit\" 0"),
        format!("load #5 \"{long}\" {place} \"/a\" \"jit\" 0"),
    ];
    assert_eq!(events, expected);
}

fn places() {
    let ran = run("places");
    let expected = [
        "load #1 \"large\" 0x1000+ffffffff [] NULL NULL \"jit\" 0",
        "unload #1 \"\" 0x1000+ffffffff [] NULL NULL",
        "load #2 \"last\" 0xffffffffffffffff+ffffffff [] NULL NULL \"jit\" 0",
        "unload #2 \"\" 0xffffffffffffffff+ffffffff [] NULL NULL",
    ];
    assert_eq!(ran.events(), expected);
}

fn moves() {
    let ran = run("moves");
    let module = "\"jit\"";
    let unload = |id, place| format!("unload {id} \"\" {place} [] NULL NULL");
    let mut expected = described(["#1", "#2", "#3"], 0x1000, module);
    expected.push(unload("#1", "0x1000+28"));
    expected.extend(described(["#1", "#2", "#3"], 0x2000, module));
    expected.push(unload("#1", "0x2000+28"));
    let here = "NULL \"/src/here.lang\"";
    expected.extend([
        format!("load #4 \"fib\" 0x3000+28 [4:0 16:7 24:0 28:7] {here} {module} 0"),
        "inline #5 in #4 \"outer\" 0x3004+c [] NULL NULL".to_owned(),
        "inline #5 in #4 \"outer\" 0x3018+4 [] NULL NULL".to_owned(),
        format!("load #6 \"new\" 0x9000+10 [] NULL NULL {module} 0"),
        unload("#4", "0x3000+28"),
    ]);
    assert_eq!(ran.events(), expected);
}

fn threads() {
    let ran = run("threads");
    // By thread, as each has its own order.
    let mut by_thread: HashMap<&str, Vec<&str>> = HashMap::new();
    for line in ran.told.iter().filter(|line| *line != "initialize") {
        let thread = line.split(' ').nth(1).unwrap();
        by_thread.entry(thread).or_default().push(line.as_str());
    }
    assert_eq!(by_thread.len(), THREADS as usize);
    let mut used = HashSet::new();
    for lines in by_thread.values() {
        let mut lines = lines.iter().map(|line| line.split(' ').skip(2).collect::<Vec<_>>());
        for number in 0..CODES {
            let load = lines.next().unwrap();
            assert_eq!(load[0], "load", "{load:?}");
            assert!(used.insert(load[1].to_owned()), "{load:?}");
            let inlined = [(); 3].map(|()| lines.next().unwrap());
            let parents = [load[1], load[1], inlined[0][1]];
            for (inline, parent) in inlined.iter().zip(parents) {
                assert_eq!((inline[0], inline[3]), ("inline", parent), "{inline:?}");
            }
            assert_eq!(inlined[0][1], inlined[1][1]);
            assert!(used.insert(inlined[0][1].to_owned()) && used.insert(inlined[2][1].to_owned()));
            if number % 2 == 0 {
                let unload = lines.next().unwrap();
                assert_eq!(unload[..2], ["unload", load[1]]);
            }
        }
        assert_eq!(lines.next(), None);
    }
}

fn fork() {
    let ran = run("fork");
    let expected = [
        "load #1 \"before\" 0x1000+10 [] NULL NULL \"jit\" 0",
        "load #2 \"child\" 0x2000+10 [] NULL NULL \"jit\" 0",
        "unload #1 \"\" 0x1000+10 [] NULL NULL",
        "load #2 \"parent\" 0x2000+10 [] NULL NULL \"jit\" 0",
        "unload #1 \"\" 0x1000+10 [] NULL NULL",
    ];
    // Both count on from the same id, each in its process.
    assert_eq!(ran.events(), expected);
    let processes: Vec<&str> =
        ran.told[1..].iter().map(|line| line.split(' ').next().unwrap()).collect();
    let [parent, child] = [processes[0], processes[1]];
    assert_ne!(parent, child);
    assert_eq!(processes, [parent, child, child, parent, parent]);

    let ran = run("fork amid work");
    let why = "the process was forked while another thread was announcing code";
    assert_eq!(ran.said, format!("VTune is passed no code: {why}\n"));
    let expected = [
        "load #1 \"waits\" 0x1000+10 [] NULL NULL \"jit\" 0",
        "unload #1 \"\" 0x1000+10 [] NULL NULL",
    ];
    assert_eq!(ran.events(), expected);
}

fn refused() {
    let ran = run("refused");
    let granted: u32 = ran.said.trim().parse().unwrap();
    assert!(granted > 10, "{granted}");
    // The last run is whole, and no event of the others lacks a part.
    let whole: Vec<String> = ran.events().into_iter().map(anonymous).collect();
    let last = &whole[whole.len() - 10..];
    assert!(last[9].starts_with("unload"), "{last:#?}");
    for event in &whole {
        assert!(last.contains(event), "{event}");
    }
}

/// An event without its ids.
fn anonymous(event: String) -> String {
    event.split(' ').filter(|word| !word.starts_with('#')).collect::<Vec<_>>().join(" ")
}
