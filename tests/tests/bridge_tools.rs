//! Runtimes that do not link the library, run by `jitscribe run` under tools that know their code at once.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use end_to_end::jitscribe::{jitscribe, preload};
use end_to_end::map_oracle::MapOracle;
use end_to_end::profile::Profile;
use end_to_end::tool::{Printed, run, tool};
use tempfile::TempDir;

/// `jitscribe run --with TOOL OPTIONS -- COMMAND` in a folder of its own.
fn run_with(dir: &Path, with: &[&str], command: &[&str]) -> Printed {
    drop(tool(command[0]));
    let mut all = jitscribe();
    all.arg("run").arg("--with").args(with).arg("--").args(command);
    all.env_remove("JITSCRIBE").env_remove("JITSCRIBE_DIR").env_remove("JITSCRIBE_LIMIT");
    all.env("JITSCRIBE_PRELOAD", preload()).current_dir(dir);
    // Code is compiled by a thread; what it is too late for on a busy machine would not be jitted.
    run(all.env("MVM_SPESH_BLOCKING", "1"))
}

/// What callgrind wrote, without what `record` does to it afterwards, names all code that the runtime's own map has: nothing was left to
/// be named, and all costs are there. Returns the cost of what was announced.
fn expect_named_at_once(dir: &Path, command: &[&str]) -> u64 {
    let printed = run_with(dir, &["callgrind", "--json"], command);
    let json = printed.stdout.find("[\n  {").map_or("", |at| &printed.stdout[at..]);
    let report: serde_json::Value = serde_json::from_str(json).expect("a report");
    let report = &report[0];
    assert_eq!(report["named_at_once"], true, "{report}");
    let output = dir.join(report["output"].as_str().expect("a path"));
    let profile = Profile::read(&output);
    assert_eq!(profile.sum(), profile.totals, "self costs");
    let written = format!("/tmp/perf-{}.map", profile.pid);
    let map = MapOracle::read(written.as_ref());
    _ = std::fs::remove_file(written);
    for function in profile.own.keys() {
        let address = function.name.split('\'').next().and_then(|name| name.strip_prefix("0x"));
        let address = address.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let owner = address.filter(|_| function.object == "???").and_then(|at| map.at(at));
        assert_eq!(owner, None, "{function:?} was named by nobody");
    }
    assert_eq!(report["events"][0]["named"], 0, "by the bridge, and not afterwards: {report}");
    let of_bridge =
        profile.own.iter().filter(|(function, _)| function.object.contains(".jit/jit-"));
    of_bridge.map(|(_, costs)| costs[0]).sum()
}

/// Raku that counts letters, as in KDE's bug 492835.
fn words(dir: &Path, count: u64) -> &'static str {
    let mut words = String::new();
    for number in 0..count {
        _ = writeln!(words, "word{}abc{}", number * 7919 % 100_003, number % 13);
    }
    std::fs::write(dir.join("words"), words).expect("a file");
    "my %idx; for \"words\".IO.lines { for .comb { %idx{$_}++ } }; say %idx.sort.tail(10);"
}

#[test]
fn rakudo_under_callgrind() {
    let dir = TempDir::with_prefix("jitscribe-bridge-").expect("a folder");
    let script = words(dir.path(), 12_000);
    let cost = expect_named_at_once(dir.path(), &["rakudo-m", "-e", script]);
    assert!(cost > 50_000_000, "{cost}");
}

/// Its opcache is loaded such that the C library's functions would come first.
#[test]
fn php_under_callgrind() {
    let dir = TempDir::with_prefix("jitscribe-bridge-").expect("a folder");
    let script = "<?php function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
        for ($i = 0; $i < 12; $i++) { echo fib(14), \"\\n\"; }";
    std::fs::write(dir.path().join("fib.php"), script).expect("a file");
    let cost = expect_named_at_once(dir.path(), &["php", "fib.php"]);
    assert!(cost > 100_000, "{cost}");
}

/// A function of Raku stands between those of the interpreter and of the C library that it calls, in a stack that ends
/// in `main`.
#[test]
fn rakudo_under_gdb() {
    let dir = TempDir::with_prefix("jitscribe-bridge-").expect("a folder");
    let script = words(dir.path(), 3_000);
    let mut with = vec!["gdb", "-batch"];
    for command in [
        "set breakpoint pending on",
        "set width 0",
        "break '(-e:1)'",
        "run",
        "delete",
        "break MVM_string_substring",
        "continue",
        "backtrace",
    ] {
        with.extend(["-ex", command]);
    }
    let printed = run_with(dir.path(), &with, &["rakudo-m", "-e", script]);
    let frames: Vec<&str> = printed.stdout.lines().filter(|line| line.starts_with('#')).collect();
    let of = |name: &str| frames.iter().position(|frame| frame.contains(name));
    // Whichever function of the script's, or of what it calls, takes a string apart.
    let raku = of("(-e:").or(of("(SETTING::")).or(of(".nqp:"));
    let stack = [of("MVM_string_substring"), raku, of("MVM_interp_run"), of("__libc_start")];
    assert!(stack.iter().all(Option::is_some) && stack.is_sorted(), "{}", printed.stdout);
}

/// A map has no bytes; the bridge has taken them when the line was written.
#[test]
fn a_map_gets_assembly_under_perf() {
    let dir = TempDir::with_prefix("jitscribe-bridge-").expect("a folder");
    let script = words(dir.path(), 30_000);
    run_with(dir.path(), &["perf", "-F", "999"], &["rakudo-m", "-e", script]);
    let mut annotate: Command = tool("perf");
    annotate
        .args(["annotate", "--stdio", "-i", "perf.data", "-s", "(-e:1)"])
        .current_dir(dir.path());
    let shown = run(&mut annotate).stdout;
    assert!(shown.contains("push") && shown.contains("%rbp"), "{shown}");
}
