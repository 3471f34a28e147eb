//! The real perf names the samples of a process that loads, moves and frees code.
#![cfg(target_arch = "x86_64")]
// The roles print what happened, for the tests.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::unsafe_parts::Arena;
use publish_perf_map::{Options, PerfMap};
use test_privilege::{Privilege, have};

const ROLE: &str = "PUBLISH_PERF_MAP_ROLE";
const BASE: u64 = 0x70_0000_0000;

fn page(page: u64) -> u64 {
    BASE + page * 0x1000
}

/// Runs a command that must succeed.
fn run(command: &mut Command) -> Output {
    let output = command.output();
    let output = output.unwrap_or_else(|e| panic!("{command:?}: {e}; see scripts/setup.sh"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The program that perf records, if the environment requests it.
#[test]
fn role() {
    if env::var_os(ROLE).is_none() {
        return;
    }
    let mut arena = Arena::at(usize::try_from(BASE).unwrap(), 64 * 4096);
    // perf reads no other directory.
    let map = PerfMap::create(Options::new().reporter(|why| panic!("{why}"))).unwrap();
    println!("pid {}", std::process::id());

    map.load(page(0), 0x40, b"plain");
    map.load(page(1), 0x40, b"f");

    // A large dead code around a young one, which stock perf would prefer.
    map.load(page(2), 0x4000, b"dead_and_large");
    map.unload(page(2), 0x4000);
    map.load(page(3), 0x40, b"young");

    // The same without an announced unload.
    map.load(page(6), 0x1000, b"overwritten");
    map.load(page(6), 0x40, b"rejitted");

    map.load(page(8), 0x40, b"moved");
    map.moved(page(8), page(9), 0x40);
    map.load(page(8), 0x40, b"moved_in");

    map.load(page(10), 0x3000, b"stubs");
    map.load(page(11), 0x40, b"stub_a");

    map.load(page(13), 0x40, b"freed");
    map.unload(page(13), 0x40);

    // Enough to be rewritten several times.
    for n in 0..30_000_u64 {
        map.load(page(20), 0x40, format!("short_lived_{n}").as_bytes());
    }
    map.load(page(14), 0x40, "grün".as_bytes());
    for page in [0, 1, 3, 6, 8, 9, 10, 11, 12, 14, 20] {
        arena.spin(page);
    }
}

#[test]
fn perf_names_the_code_that_ran() {
    if !have(&[Privilege::Perf]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let me = env::current_exe().unwrap();
    let recorder = ["record", "-q", "-e", "cpu-clock:u", "-F", "5000", "-o", "perf.data"];
    let recorded = run(Command::new("perf")
        .args(recorder)
        .arg(&me)
        .args(["--exact", "perf::role", "--nocapture"])
        .env(ROLE, "spin")
        .current_dir(folder.path()));
    let said = String::from_utf8_lossy(&recorded.stdout).into_owned();
    let pid = said.lines().find_map(|line| line.split_once("pid ")).unwrap().1.to_owned();
    let path = format!("/tmp/perf-{}.map", pid.trim());
    let names = names(folder.path());
    let report = run(Command::new("perf")
        .args(["report", "-i", "perf.data", "--stdio", "-F", "sym", "-g", "none"])
        .current_dir(folder.path()));
    let length = fs::metadata(&path).unwrap().len();
    fs::remove_file(path).unwrap();

    let expected = [
        (0, "plain"),
        (1, "f  "),
        (3, "young"),
        (6, "rejitted"),
        (8, "moved_in"),
        (9, "moved"),
        (10, "stubs"),
        (11, "stub_a"),
        (12, "stubs"),
        (14, "grün"),
        (20, "short_lived_29999"),
    ];
    let expected: BTreeMap<u64, String> =
        expected.into_iter().map(|(page, name)| (page, name.to_owned())).collect();
    assert_eq!(names, expected);
    let report = String::from_utf8_lossy(&report.stdout);
    for name in expected.values() {
        assert!(report.contains(name.trim_end()), "no {name} in\n{report}");
    }
    assert!(length < 300 << 10, "{length}");
}

/// The name that perf gives to the samples of each page.
fn names(folder: &Path) -> BTreeMap<u64, String> {
    let script = ["script", "-i", "perf.data", "-F", "ip,sym"];
    let output = run(Command::new("perf").args(script).current_dir(folder));
    let mut names = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let (address, name) = line.trim_start().split_once(' ').unwrap_or((line.trim_start(), ""));
        let address = u64::from_str_radix(address, 16).unwrap();
        if let Some(offset) = address.checked_sub(BASE).filter(|offset| *offset < 1 << 20) {
            let before = names.insert(offset / 0x1000, name.to_owned());
            assert!(before.is_none_or(|before| before == name));
        }
    }
    names
}
