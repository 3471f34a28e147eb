//! Code in an arena: what perf shows of it with no further step, and what it is to our own tools and publishers.

#![cfg(target_arch = "x86_64")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use end_to_end::jitscribe::jitscribe;
use end_to_end::tool::{run, tool};

fn program(directory: &Path, jitscribe: &str) -> Command {
    let mut command = Command::new("env");
    command.arg(format!("JITSCRIBE={jitscribe}"));
    command.arg(format!("JITSCRIBE_DIR={}", directory.display()));
    command.arg(env!("CARGO_BIN_EXE_run-arena"));
    command
}

/// How many samples each function of the arena has.
fn samples(directory: &Path, recording: &str) -> BTreeMap<String, usize> {
    let mut perf = tool("perf");
    perf.arg("--buildid-dir").arg(directory.join("cache")).current_dir(directory);
    let text = run(perf.args(["script", "-F", "ip,sym", "-i", recording])).stdout;
    let mut found = BTreeMap::new();
    for (_, name) in text.lines().filter_map(|line| line.trim().split_once(' ')) {
        *found.entry(name.to_owned()).or_insert(0) += 1;
    }
    found
}

#[test]
fn perf_shows_the_same_as_after_inject() {
    let directory = tempfile::tempdir().unwrap();
    let mut perf = tool("perf");
    perf.arg("--buildid-dir").arg(directory.path().join("cache")).current_dir(directory.path());
    perf.args(["record", "-q", "-F", "997", "-k", "1", "-o", "perf.data", "--"]);
    let spin = program(directory.path(), "jitdump");
    perf.arg(spin.get_program()).args(spin.get_args()).arg("8000");
    run(&mut perf);
    let plain = samples(directory.path(), "perf.data");
    let mut inject = jitscribe();
    run(inject
        .args(["inject", "--allow-empty", "-i", "perf.data", "-o", "injected.data"])
        .current_dir(directory.path()));
    let injected = samples(directory.path(), "injected.data");
    let of_arena = |all: &BTreeMap<String, usize>| {
        all.iter()
            .filter(|(name, _)| name.starts_with("arena::"))
            .map(|(name, count)| (name.clone(), *count))
            .collect::<Vec<_>>()
    };
    assert_eq!(of_arena(&plain).len(), 5, "{plain:?}");
    assert_eq!(of_arena(&plain), of_arena(&injected), "{plain:?}\n{injected:?}");
    let jitted: usize = of_arena(&plain).iter().map(|(_, count)| count).sum();
    let all: usize = plain.values().sum();
    assert!(jitted * 10 > all * 8, "{plain:?}");
}

#[test]
fn valgrind_is_shown_code_in_an_arena() {
    let directory = tempfile::tempdir().unwrap();
    let mut valgrind = tool("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=profile", "--trace-children=yes"]);
    valgrind.args(["--compress-strings=no", "--compress-pos=no"]).current_dir(directory.path());
    let spin = program(directory.path(), "valgrind");
    run(valgrind.arg(spin.get_program()).args(spin.get_args()).arg("3"));
    let mut annotate = tool("callgrind_annotate");
    annotate.args(["--threshold=100", "profile"]).current_dir(directory.path());
    let listing = run(&mut annotate).stdout;
    for number in 0..5_u64 {
        // Two instructions a round, and those before and behind; three rounds.
        let own = 3 * (2 * (number + 1) * 10_000 + 3);
        let digits = own.to_string();
        let (thousands, rest) = digits.split_at(digits.len() - 3);
        let wanted = format!("{thousands},{rest} (");
        let name = format!("arena::count{number} ");
        let line = listing.lines().find(|line| line.contains(&name));
        let line = line.unwrap_or_else(|| panic!("{listing}"));
        assert!(line.trim_start().starts_with(&wanted), "{wanted}\n{line}");
        assert!(line.contains("/src/run.arena"), "{line}");
    }
}
