//! Runtimes that do not link the library, run by `jitscribe run` under tools that know their code at once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use end_to_end::bridge::{folder_with, letters, run_with};
use end_to_end::map_oracle::MapOracle;
use end_to_end::profile::Profile;
use end_to_end::tool::{argument, crate_dir, run, tool};
use serde_json::Value;
use tempfile::TempDir;

/// What `run` reports of each process, behind what the program printed.
fn reports(dir: &Path, with: &[&str], command: &[&str]) -> Vec<Value> {
    let printed = run_with(dir, with, command);
    let json = printed.stdout.find("[\n  {").map_or("", |at| &printed.stdout[at..]);
    serde_json::from_str(json).expect("a report for each process")
}

/// What callgrind wrote, without what `record` does to it afterwards, names all code that the runtime's own map has: nothing was left to
/// be named, and all costs are there. Returns the cost of what was announced.
fn expect_named_at_once(dir: &Path, report: &Value) -> u64 {
    assert_eq!(report["named_at_once"], true, "{report}");
    let output = dir.join(report["output"].as_str().expect("a path"));
    let profile = Profile::read(&output);
    assert_eq!(profile.sum(), profile.totals, "self costs");
    let map = MapOracle::read(format!("/tmp/perf-{}.map", profile.pid).as_ref());
    for function in profile.own.keys() {
        let address = function.name.split('\'').next().and_then(|name| name.strip_prefix("0x"));
        let address = address.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let owner = address.filter(|_| function.object == "???").and_then(|at| map.at(at));
        assert_eq!(owner, None, "{function:?} has no name");
    }
    assert_eq!(report["events"][0]["named"], 0, "by the bridge, and not afterwards: {report}");
    let of_bridge =
        profile.own.iter().filter(|(function, _)| function.object.contains(".jit/jit-"));
    of_bridge.map(|(_, costs)| costs[0]).sum()
}

const PHP: &str = "<?php function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
    for ($i = 0; $i < 12; $i++) { echo fib(14), \"\\n\"; }";

/// A folder with programs for node and PHP.
fn programs() -> TempDir {
    let dir = folder_with("fib.js", JS);
    std::fs::write(dir.path().join("fib.php"), PHP).expect("a file");
    dir
}

const JS: &str = "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
const kept = [];
function keeper(n) { kept.push(Buffer.allocUnsafeSlow(100000 + n)); return fib(10); }
for (let i = 0; i < 100; i++) keeper(i);
";

/// Instructions in a profile with `--compress-strings=no --compress-pos=no`: all; those of the bridge's library; and those of
/// functions in the bridge's object files whose name contains a text, with a line and without one.
fn counts(profile: &Path, name: &str) -> [u64; 4] {
    let text = std::fs::read(profile).expect("a profile");
    let (mut object, mut function) = (String::new(), String::new());
    let (mut is_call, mut counts) = (false, [0; 4]);
    for line in String::from_utf8_lossy(&text).lines() {
        if let Some(value) = line.strip_prefix("ob=") {
            object = value.to_owned();
        } else if let Some(value) = line.strip_prefix("fn=") {
            function = value.to_owned();
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with("0x") && !std::mem::take(&mut is_call) {
            let words: Vec<&str> = line.split(' ').collect();
            // The place of a jump has a blank behind it, and no cost.
            let &[_, line, cost] = &words[..] else { continue };
            if cost.is_empty() {
                continue;
            }
            let cost: u64 = cost.parse().expect("a number");
            counts[0] += cost;
            if object.ends_with("/libjitscribe_preload.so") {
                counts[1] += cost;
            }
            if object.contains(".jit/jit-") && function.contains(name) {
                counts[if line == "0" { 3 } else { 2 }] += cost;
            }
        }
    }
    counts
}

/// Functions of the bridge's object files are those of MoarVM's map, whose names end in `(FILE:LINE)`: by name alone, in that file at that line, as no
/// finer lines are known. One name of a file stands for one function. Returns the cost of such functions.
fn expect_places(output: &Path) -> u64 {
    let profile = Profile::read(output);
    let map = std::fs::read_to_string(format!("/tmp/perf-{}.map", profile.pid)).expect("a map");
    let plain = |path: &str| path.strip_prefix("./").unwrap_or(path).to_owned();
    let in_map = map.lines().filter_map(|line| {
        let (name, place) = line.splitn(3, ' ').nth(2)?.strip_suffix(')')?.rsplit_once('(')?;
        let (file, line) = place.rsplit_once(':')?;
        let name = if name.is_empty() { "(anonymous)" } else { name };
        Some((name.to_owned(), plain(file), line.to_owned()))
    });
    let in_map: BTreeSet<_> = in_map.collect();
    let (mut all, mut lines_of) = (0, BTreeMap::new());
    for ((function, _, file, line), costs) in &profile.places {
        // The level of recursion follows the name.
        let name = function.name.split('\'').next().unwrap_or_default();
        if !function.object.contains(".jit/jit-") {
            continue;
        }
        let (file, line) = (plain(file), line.to_string());
        let of = |name: &str| (name.to_owned(), file.clone(), line.clone());
        let numbered = name.strip_suffix(&format!(":{line}"));
        if in_map.contains(&of(name)) || numbered.is_some_and(|name| in_map.contains(&of(name))) {
            all += costs[0];
            let before = lines_of.insert((name.to_owned(), file), line.clone());
            assert!(before.is_none_or(|before| before == line), "{function:?} at {line}");
        }
    }
    all
}

/// The counts of the process that executed the most instructions: Erlang starts others.
fn counts_of(dir: &Path, reports: &[Value], name: &str) -> [u64; 4] {
    let outputs = reports.iter().map(|report| report["output"].as_str().expect("a path"));
    let all = outputs.map(|output| counts(&dir.join(output), name));
    all.max_by_key(|counts| counts[0]).expect("a process")
}

/// Removes what the processes wrote into `/tmp`.
fn clean_up(reports: &[Value]) {
    for output in reports.iter().filter_map(|report| report["output"].as_str()) {
        if let Some((_, pid)) = output.rsplit_once('.') {
            _ = std::fs::remove_file(format!("/tmp/perf-{pid}.map"));
            _ = std::fs::remove_file(format!("/tmp/jit-{pid}.dump"));
        }
    }
}

#[test]
fn callgrind_names_code_at_once_and_does_not_count_the_bridge() {
    let words = programs();
    let script = letters(words.path(), 12_000);
    // Its start compiles 15,000 functions, each of which it writes to a dump in several parts, and to a map.
    let erlang = "F = fun(F, N) when N < 2 -> N; (F, N) -> F(F, N - 1) + F(F, N - 2) end,
        io:format(\"~p~n\", [F(F, 12)]), halt().";
    // The least cost of named code, where there is a map to compare with; a function in the bridge's files, and its least cost with a
    // line.
    for (dir, command, least_named, of_bridge) in [
        (words, &["rakudo-m", "-e", script][..], Some(50_000_000), None),
        // Its opcache is loaded such that the C library's functions would come first.
        (programs(), &["php", "fib.php"], Some(100_000), Some(("fib", 0))),
        // It writes both a dump and a map. V8 unmaps its code before the process ends, and code that it has compiled again and freed
        // while it ran has no lines.
        (
            programs(),
            &["node", "--perf-basic-prof", "fib.js"],
            Some(500_000),
            Some(("*fib ", 50_001)),
        ),
        (programs(), &["erl", "-noshell", "-eval", erlang], None, Some(("", 0))),
    ] {
        let plain = ["callgrind", "--json", "--compress-strings=no", "--compress-pos=no"];
        let reports = reports(dir.path(), &plain, command);
        if let Some(least) = least_named {
            let cost = expect_named_at_once(dir.path(), &reports[0]);
            assert!(cost > least, "{command:?}: {cost}");
            if command[0] == "rakudo-m" {
                let output = reports[0]["output"].as_str().expect("a path");
                let placed = expect_places(&dir.path().join(output));
                assert!(placed * 100 > cost * 99, "{placed} of {cost} have a place");
            }
        }
        if let Some((function, least_with_line)) = of_bridge {
            let [all, of_bridge, with_line, _] = counts_of(dir.path(), &reports, function);
            assert!(with_line >= least_with_line, "{command:?}: {with_line} with a line");
            assert!(of_bridge > 0 && of_bridge * 100 < all, "{command:?}: {of_bridge} of {all}");
        }
        clean_up(&reports);
    }
}

/// Every frame has a name, those of JavaScript between those of C++, down to `main`.
#[test]
#[ignore = "half a minute of processor time: cargo test -p end-to-end --test live bridge_tools:: -- --ignored"]
fn node_under_memcheck() {
    let dir = folder_with("keep.js", JS);
    let leaks = ["--leak-check=full", "--show-leak-kinds=all", "--num-callers=100", "-o", "log"];
    let with = [&["memcheck"][..], &leaks].concat();
    run_with(dir.path(), &with, &["node", "keep.js"]);
    let mut logs = std::fs::read_dir(dir.path()).expect("a folder").flatten();
    let is_log = |path: &Path| path.file_stem().is_some_and(|stem| stem == "log");
    let log = logs.find(|entry| entry.path().is_file() && is_log(&entry.path()));
    let log = std::fs::read_to_string(log.expect("a log").path()).expect("text");
    let is_whole = |stack: &str| {
        let places = [":~allocUnsafeSlow", "keeper", "node::Start", "(below main)"];
        let places = places.map(|name| stack.find(name));
        places.iter().all(Option::is_some) && places.is_sorted()
    };
    assert!(log.split("== \n").any(is_whole), "{log}");
    assert!(!log.contains(": ???"), "{log}");
}

/// perf itself reads the runtime's dump. With the bridge there is one code for each that the dump has, as without.
fn expect_told_once(dir: &Path, command: &[&str]) {
    // A short program may have no sample in its code.
    let words = ["perf", "--json", "--keep-raw", "--allow-empty"];
    let printed = run_with(dir, &words, command);
    let json = printed.stdout.find('{').map_or("", |at| &printed.stdout[at..]);
    let report: Value = serde_json::from_str(json).expect("a report");
    let sources = report["sources"].as_array().expect("sources");
    let dumps: Vec<_> = sources.iter().filter(|source| source["kind"] == "jitdump").collect();
    assert_eq!(dumps.len(), 1, "{report}");
    assert!(dumps[0]["codes"].as_u64() > Some(0), "{report}");
    let path = dumps[0]["path"].as_str().expect("a path");
    let head = std::fs::read(path).expect("a dump");
    let dump = jitdump::Dump::parse(&head).expect("a dump");
    assert!(dump.log().is_none(), "the runtime's, and not the bridge's");
    for source in sources {
        let path = Path::new(source["path"].as_str().expect("a path"));
        if !path.starts_with(dir) {
            _ = std::fs::remove_file(path);
        }
    }
}

#[test]
fn a_dump_is_announced_once_under_perf() {
    // PHP writes a line of its map before the record of its dump.
    for command in [["node", "fib.js"], ["php", "fib.php"]] {
        let dir = programs();
        expect_told_once(dir.path(), &command);
    }
}

/// A map has no bytes; the bridge has taken them when the line was written.
#[test]
fn a_map_gets_assembly_under_perf() {
    let dir = TempDir::with_prefix("jitscribe-bridge-").expect("a folder");
    let script = letters(dir.path(), 30_000);
    run_with(dir.path(), &["perf", "-F", "999"], &["rakudo-m", "-e", script]);
    let mut annotate: Command = tool("perf");
    annotate
        .args(["annotate", "--stdio", "-i", "perf.data", "-s", "(-e:1)"])
        .current_dir(dir.path());
    let shown = run(&mut annotate).stdout;
    assert!(shown.contains("push") && shown.contains("%rbp"), "{shown}");
}

/// Compiles the program whose code has names with a place.
fn places() -> (TempDir, String) {
    let dir = TempDir::with_prefix("jitscribe-bridge-").expect("a folder");
    let program = dir.path().join("places");
    let source = crate_dir().join("workloads/bridge/places.c");
    run(tool("cc").args(["-O1", "-o"]).arg(&program).arg(source));
    (dir, argument(program))
}

/// What Valgrind's tools that print stacks write themselves, while the program runs: each frame of such code has the file and the line of its name.
#[test]
fn frames_in_valgrinds_output_have_the_place_of_their_name() {
    let leaks = ["--leak-check=full", "--num-callers=4"];
    for (tool, options) in [
        ("memcheck", &leaks[..]),
        ("massif", &["--detailed-freq=1", "--threshold=0"]),
        ("dhat", &[]),
    ] {
        let (dir, program) = places();
        let with = [&[tool], options, &["-o", "out"]].concat();
        let ran = run_with(dir.path(), &with, &[&program]);
        let pid = ran.stdout.lines().next().expect("a process id");
        _ = std::fs::remove_file(format!("/tmp/perf-{pid}.map"));
        let output = std::fs::read_to_string(dir.path().join(format!("out.{pid}")));
        let output = output.expect("a file with the process id");
        for frame in [
            "collatz (p.raku:1)",
            "find (q.nqp:9)",
            // Another function of one name and file.
            "find:3 (q.nqp:3)",
            "JS:*f file:///a/x.js:2:3 (x.js:2)",
            "g (y.py:0)",
            "plain(int) (in ",
        ] {
            assert!(output.contains(&format!(": {frame}")), "{tool}: {frame}: {output}");
        }
        assert!(!ran.stderr.contains("unknown DHAT client request"), "{tool}: {}", ran.stderr);
    }
}

/// A debugger stops where the name of a function says that it begins.
#[test]
fn a_breakpoint_at_the_place_of_a_name() {
    let (dir, program) = places();
    let gdb = ["gdb", "-batch", "-ex", "set breakpoint pending on", "-ex", "break p.raku:1"];
    let then = ["-ex", "break x.js:2", "-ex", "run", "-ex", "backtrace", "-ex", "continue"];
    let last = ["-ex", "backtrace", "-ex", "kill"];
    let printed = run_with(dir.path(), &[&gdb[..], &then, &last].concat(), &[&program]).stdout;
    for frame in
        [" in collatz(p.raku:1) () at p.raku:1", "JS:*f file:///a/x.js:2:3 () at /a/x.js:2"]
    {
        assert!(printed.contains(frame), "{frame}: {printed}");
    }
    let setting = "settings set target.process.stop-on-exec false";
    let lldb = ["lldb", "-b", "-o", setting, "-o", "breakpoint set -f q.nqp -l 9", "-o", "run"];
    let then = ["-o", "bt", "-o", "kill"];
    let printed = run_with(dir.path(), &[&lldb[..], &then].concat(), &[&program]).stdout;
    assert!(printed.contains("find(src/q.nqp:9) at q.nqp:9"), "{printed}");
}
