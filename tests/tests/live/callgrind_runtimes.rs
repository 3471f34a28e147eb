//! Runtimes that know nothing of valgrind, profiled by callgrind and named afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use end_to_end::bridge::letters;
use end_to_end::jitscribe;
use end_to_end::map_oracle::MapOracle;
use end_to_end::profile::{Profile, callgrind};
use end_to_end::tool::{run, tool};
use tempfile::TempDir;

/// A profile before and after, and the map with the addresses of names.
struct Both {
    dir: TempDir,
    before: Profile,
    after: Profile,
    report: serde_json::Value,
    map: MapOracle,
}

impl Both {
    /// Profiles `command`, which writes a perf map.
    fn of(command: impl FnOnce(&Path) -> Command) -> Self {
        let dir = TempDir::with_prefix("jitscribe-callgrind-").expect("a temporary folder");
        let command = command(dir.path());
        let (path, _) = callgrind(dir.path(), &["--smc-check=all-non-file"], &command);
        let report = jitscribe::callgrind::<&str>(&path, &[]);
        let before = Profile::read(&path);
        let after = Profile::read(report["output"].as_str().expect("a path").as_ref());
        let written = format!("/tmp/perf-{}.map", before.pid);
        let map = MapOracle::read(written.as_ref());
        _ = std::fs::remove_file(written);
        Self { dir, before, after, report, map }
    }

    /// No function that the map knows is left as an address, none is two, and nothing is lost.
    fn expect_named(&self) -> u64 {
        assert_eq!(self.before.totals, self.after.totals);
        assert_eq!(self.after.sum(), self.after.totals, "self costs");
        let own_before = cost_of_known(&self.before);
        assert_eq!(own_before, cost_of_known(&self.after), "what callgrind knew");
        for function in self.after.own.keys().chain(self.after.calls.keys().map(|(_, to)| to)) {
            if function.object != "???" {
                continue;
            }
            let address = function.name.split('\'').next().and_then(|name| name.strip_prefix("0x"));
            let address = address.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            let owner = address.and_then(|address| self.map.at(address));
            assert_eq!(owner, None, "{function:?} is not named");
        }
        // One function of a file, one object.
        let mut identities: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
        let callers = self.after.calls.keys().flat_map(|(from, to)| [from, to]);
        for function in self.after.own.keys().chain(callers) {
            if function.object.contains("perf-") {
                let name = (function.name.as_str(), function.file.as_str());
                identities.entry(name).or_default().insert(&function.object);
            }
        }
        assert!(!identities.is_empty(), "{}", self.report);
        let split: Vec<_> = identities.iter().filter(|(_, of)| of.len() > 1).collect();
        assert!(split.is_empty(), "{split:?}");
        self.report["events"][0]["named"].as_u64().expect("a number")
    }
}

fn cost_of_known(profile: &Profile) -> u64 {
    let jitted = |object: &str| object == "???" || object.contains("perf-");
    let known = profile.own.iter().filter(|(function, _)| !jitted(&function.object));
    known.map(|(_, costs)| costs[0]).sum()
}

/// The case of KDE's bug 492835.
#[test]
fn rakudo() {
    let both = Both::of(|dir| {
        let script = letters(dir, 12_000);
        let mut command = tool("rakudo-m");
        command.args(["-e", script]);
        // Code is compiled by a thread; what it is too late for on a busy machine would not be jitted.
        command.env("MVM_SPESH_BLOCKING", "1");
        command.env("MVM_JIT_PERF_MAP", "1").current_dir(dir);
        command
    });
    let named = both.expect_named();
    assert!(named > both.after.totals[0] / 50, "{}", both.report);
    // Each is called by the interpreter, and calls what it calls.
    let tree = run(tool("callgrind_annotate")
        .args(["--tree=both", "--inclusive=no"])
        .arg(both.report["output"].as_str().expect("a path"))
        .current_dir(both.dir.path()));
    let mut with_both = 0;
    for (number, line) in tree.stdout.lines().enumerate() {
        if line.contains("  *  ") && line.contains("/perf-") {
            let lines: Vec<&str> = tree.stdout.lines().collect();
            let above = lines[..number].iter().rev().take_while(|line| !line.is_empty()).count();
            let below =
                lines[number + 1..].iter().take_while(|line| line.contains("  >  ")).count();
            assert!(above > 0, "nobody calls {line}");
            with_both += usize::from(below > 0);
        }
    }
    assert!(with_both >= 5, "{with_both} functions with callers and callees\n{}", tree.stdout);
}

#[test]
fn php() {
    let both = Both::of(|dir| {
        let script = "<?php function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
            function sum($n) { $s = 0; for ($i = 0; $i < $n; $i++) { $s += $i & 7; } return $s; }
            for ($i = 0; $i < 12; $i++) { echo fib(14) + sum(9000), \"\\n\"; }";
        std::fs::write(dir.join("spin.php"), script).expect("a file");
        let mut command = tool("php");
        command.args(["-dopcache.enable_cli=1", "-dopcache.jit=tracing"]);
        command.args(["-dopcache.jit_buffer_size=16M"]);
        command.args(["-dopcache.jit_debug=16", "-dopcache.file_update_protection=0", "spin.php"]);
        command.current_dir(dir);
        command
    });
    assert!(both.expect_named() > 100_000, "{}", both.report);
}

#[test]
fn node() {
    let both = Both::of(|dir| {
        let script = "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
            let sum = 0; for (let i = 0; i < 40; i++) sum += fib(15); console.log(sum);";
        std::fs::write(dir.join("spin.js"), script).expect("a file");
        let mut command = tool("node");
        command
            .args(["--perf-basic-prof", "--single-threaded", "--max-lazy", "spin.js"])
            .current_dir(dir);
        command
    });
    assert!(both.expect_named() > 1_000_000, "{}", both.report);
}

/// Debian's LuaJIT writes no perf map, but prints the addresses of its traces on request.
#[test]
fn luajit() {
    let dir = TempDir::with_prefix("jitscribe-luajit-").expect("a temporary folder");
    let script = "local function sum(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
        local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
        local t = 0 for i = 1, 30 do t = t + sum(5000) end print(t, fib(15))";
    std::fs::write(dir.path().join("spin.lua"), script).expect("a file");
    let mut command = tool("luajit");
    command.args(["-jdump=m,traces", "spin.lua"]).current_dir(dir.path());
    let (path, _) = callgrind(dir.path(), &["--smc-check=all-non-file"], &command);
    let traces = std::fs::read_to_string(dir.path().join("traces")).expect("the dump");
    let (mut map, mut name, mut size) = (String::new(), String::new(), None);
    for line in traces.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["----", "TRACE", number, "start", from @ ..] => {
                name = format!("trace {number} {}", from.last().expect("a place"));
            }
            ["----", "TRACE", _, "mcode", bytes] => size = bytes.parse::<u32>().ok(),
            [address, ..] => {
                if let Some(size) = size.take() {
                    _ = writeln!(map, "{address} {size:x} {name}");
                }
            }
            [] => {}
        }
    }
    let written = dir.path().join("luajit.map");
    std::fs::write(&written, &map).expect("a file");
    let report = jitscribe::callgrind(&path, &["--perf-map".as_ref(), written.as_os_str()]);
    let event = |key: &str| report["events"][0][key].as_u64().expect("a number");
    assert!(event("named") > 100_000, "{report}\n{map}");
    // Exits of traces have a few instructions that no trace has.
    assert!(event("unknown") - event("named") < event("named") / 1000, "{report}\n{map}");
    let named = Profile::read(report["output"].as_str().expect("a path").as_ref());
    assert_eq!(named.sum(), named.totals);
}
