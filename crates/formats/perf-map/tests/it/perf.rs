//! The rules about perf match its behaviour: a program runs code in one page for each spelling of a line, and perf
//! names its samples.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use test_privilege::{Privilege, have};

const BASE: u64 = 0x70_0000_0000;

/// Runs a busy loop in each of as many pages as the argument says, one after another in
/// short turns, and prints its pid.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int pages = atoi(argv[1]);
    char *at = mmap((void *)0x7000000000, pages * 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED) return 1;
    /* mov ecx, 0x400000; 1: dec ecx; jnz 1b; ret */
    static const unsigned char code[] = {0xb9, 0, 0, 0x40, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
    for (int page = 0; page < pages; page++) memcpy(at + page * 4096, code, sizeof code);
    for (int turn = 0; turn < 4; turn++)
        for (int page = 0; page < pages; page++) ((void (*)(void))(at + page * 4096))();
    printf("%d\n", getpid());
    return 0;
}
"#;

/// Runs a command that must succeed.
fn run(command: &mut Command) -> Output {
    let output = command.output();
    let output = output.unwrap_or_else(|e| panic!("{command:?}: {e}; see scripts/setup.sh"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Records the program with `pages` pages; the answer is its pid.
fn record(folder: &Path, pages: usize) -> u32 {
    fs::write(folder.join("loops.c"), PROGRAM).unwrap();
    let compiler = ["-O1", "-o", "loops", "loops.c"];
    run(Command::new("cc").args(compiler).current_dir(folder));
    let recorder =
        ["record", "-q", "-e", "cpu-clock:u", "-F", "5000", "-o", "perf.data", "./loops"];
    let output =
        run(Command::new("perf").args(recorder).arg(pages.to_string()).current_dir(folder));
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

/// The name that perf gives to the samples of each page.
fn names(folder: &Path) -> BTreeMap<usize, String> {
    let script = ["script", "-i", "perf.data", "-F", "ip,sym"];
    let output = run(Command::new("perf").args(script).current_dir(folder));
    let mut names = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).split_terminator('\n') {
        let (address, name) = line.trim_start().split_once(' ').unwrap_or((line.trim_start(), ""));
        let address = u64::from_str_radix(address, 16).unwrap();
        if let Some(offset) = address.checked_sub(BASE).filter(|offset| *offset < 1 << 20) {
            names.insert(usize::try_from(offset / 0x1000).unwrap(), name.to_owned());
        }
    }
    names
}

/// What is in a line before and after the address, the name that perf then shows, and the one that our reader finds, if any.
const CASES: [(&str, &str, &str, Option<&str>); 12] = [
    ("", " 20 plain\n", "plain", Some("plain")),
    ("0x", " 0x20 prefixed\n", "prefixed", Some("prefixed")),
    ("", "\t20\ttabbed\n", "tabbed", Some("tabbed")),
    ("", " 20   blanks\n", "  blanks", Some("blanks")),
    ("  ", " 20 indented\n", "indented", Some("indented")),
    ("", " 20 crlf\r\n", "crlf\r", Some("crlf")),
    ("", " 20 fn\n", "[unknown]", Some("fn")),
    ("", " 20 f  \n", "f  ", Some("f")),
    ("", " 20\n", "[unknown]", Some("")),
    ("", " 0 zero\n", "[unknown]", None),
    ("", " 20 nul\0cut\n", "nul", Some("nul\0cut")),
    ("", " 20 last", "las", Some("last")),
];

/// A map with a line for each page.
fn map() -> String {
    let line = |(page, (before, after, ..)): (u64, &(&str, &str, &str, Option<&str>))| {
        format!("{before}{:x}{after}", BASE + page * 0x1000)
    };
    (0..).zip(&CASES).map(line).collect()
}

#[test]
fn perf_reads_each_spelling_as_the_rules_say() {
    if !have(&[Privilege::Perf]) {
        return;
    }
    let folder = std::env::temp_dir().join(format!("perf-map-test-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let pid = record(&folder, CASES.len());

    let path = format!("/tmp/perf-{pid}.map");
    // perf looks only here. What is there is of an earlier process with this id.
    _ = fs::remove_file(&path);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path).unwrap();
    file.write_all(map().as_bytes()).unwrap();
    let names = names(&folder);
    fs::remove_file(&path).unwrap();
    fs::remove_dir_all(&folder).unwrap();

    let expected: BTreeMap<_, _> = (0..).zip(CASES.map(|case| case.2.to_owned())).collect();
    assert_eq!(names, expected);
}

#[test]
fn our_reader_names_all_codes_that_are_not_empty() {
    let map = map();
    let pieces = perf_map::resolve(perf_map::entries(map.as_bytes()).flatten());
    for (page, case) in (0..).zip(CASES) {
        let piece = perf_map::find(&pieces, BASE + page * 0x1000 + 7);
        let name = piece.map(|piece| piece.entry.name);
        assert_eq!(name, case.3.map(str::as_bytes), "page {page}");
    }
}
