//! `jitscribe demo` where perf cannot record: the recording that comes with the command.

use std::fs;
use std::process::Command;

use crate::common::{Bench, Done, JITSCRIBE, finish};
use test_browser::Browser;
use test_privilege::{Refused, needs, refusing};

/// The samples of each function, which `scripts/demo-recording.sh` counted without jitscribe.
const EXPECTED: &str = include_str!("../../src/demo/shipped/expected.tsv");
/// Samples in code that the demo did not compile.
const OTHER: &str = "(other code)";

/// The functions and their samples, most first.
fn expected() -> Vec<(u64, &'static str)> {
    let rows = EXPECTED.lines().map(|line| line.split_once('\t').expect("two columns"));
    rows.map(|(count, symbol)| (count.parse().expect("a number"), symbol)).collect()
}

/// The functions in the summary, and their samples.
fn summary(stderr: &str) -> Vec<(u64, &str)> {
    let rows = stderr.lines().skip_while(|line| !line.trim_start().starts_with("self"));
    let rows = rows.skip(1).map_while(|line| {
        let line = line.strip_prefix("  ")?;
        let mut words = line.split_whitespace().skip_while(|word| word.contains(['.', '%']));
        Some((words.next()?.parse().ok()?, words.next()?))
    });
    rows.collect()
}

/// Checks that the recording was shown with exactly the functions and samples that are in it, and that all is in the folder `demo`.
fn expect_shown(bench: &Bench, done: &Done) {
    let Done { code: 0, stdout, stderr, .. } = done else { panic!("{done:?}") };
    let expected = expected();
    let all: u64 = expected.iter().map(|(count, _)| count).sum();
    let functions: Vec<_> =
        expected.iter().copied().filter(|(_, symbol)| *symbol != OTHER).collect();
    let jitted: u64 = functions.iter().map(|(count, _)| count).sum();
    let line = format!("{all} samples, {jitted} of them (");
    assert!(stderr.lines().any(|shown| shown.starts_with(&line)), "no {line}: {stderr}");
    done.says("named: 0.0 % before, 100.0 % now");
    done.says(&format!("{jitted} of the named samples (100.0 %) have"));
    // Samples in inlined calls count for the functions that were inlined, which have no symbols.
    let summary = summary(stderr);
    assert_eq!(summary[..3], functions[..3], "{stderr}");
    for (count, name) in &summary {
        let in_code = functions.iter().find(|(_, symbol)| symbol == name);
        assert!(in_code.is_none_or(|(in_code, _)| count <= in_code), "{name}: {stderr}");
    }

    let sections: Vec<&str> = stdout.split("\n── ").collect();
    let [_, before, after, annotated, calls] = sections[..] else { panic!("{stdout}") };
    for (_, symbol) in &functions {
        assert!(!before.contains(symbol), "{symbol} before: {before}");
    }
    assert!(before.matches("[anonymous memory]").count() >= 5, "{before}");
    for (count, name) in &summary {
        let is_row = |line: &&str| line.split_whitespace().last() == Some(name);
        let row = after.lines().find(is_row).expect("a row");
        assert_eq!(row.split_whitespace().nth(1), Some(&*count.to_string()), "{row}");
    }
    let (count, hottest) = functions[0];
    let row = after.lines().find(|line| line.ends_with(hottest)).expect("a row");
    assert_eq!(row.split_whitespace().nth(1), Some(count.to_string().as_str()), "{row}");
    assert!(annotated.starts_with(&format!("jitscribe annotate {hottest} ──")), "{annotated}");
    // The source of the hottest line, and an instruction that V8 would not have.
    assert!(annotated.contains("hash = (hash ^ n) * 1099511628211;"), "{annotated}");
    assert!(annotated.contains("imul"), "{annotated}");
    assert!(calls.contains(hottest), "{calls}");

    assert_eq!(bench.files(), ["demo"]);
    done.says(&format!("written: {} (", bench.name("demo/report.html")));
}

/// `jitscribe demo -o demo` with a search path on which nothing is.
fn demo_alone(bench: &Bench) -> Command {
    let mut command = bench.jitscribe("demo -o demo");
    command.env("PATH", bench.path("none"));
    command
}

/// The line that says what is in the way.
fn obstacle(done: &Done) -> &str {
    let is_it = |line: &&str| line.contains("perf cannot record here: ");
    let lines: Vec<&str> = done.stderr.lines().filter(is_it).collect();
    let [line] = lines[..] else { panic!("not one line: {}", done.stderr) };
    line
}

#[test]
fn without_perf_the_shipped_recording_is_shown() {
    let bench = Bench::new();
    let done = finish(&mut demo_alone(&bench));
    assert!(obstacle(&done).contains("apt-get install linux-perf"), "{}", done.stderr);
    expect_shown(&bench, &done);

    // A second run would overwrite the first.
    finish(&mut demo_alone(&bench)).ends(1).says("use --force to replace it");
    expect_shown(&bench, &finish(demo_alone(&bench).arg("--force")));
}

/// Ubuntu's `perf` is a script that looks for the one of the running kernel.
#[test]
fn a_perf_that_does_not_run_is_said() {
    let script = "#!/bin/sh\necho >&2\necho 'WARNING: perf not found for kernel 6.8' >&2\nexit 2\n";
    let bench = Bench::with("bin/perf", script);
    bench.run("chmod +x bin/perf");
    let done = finish(demo_alone(&bench).env("PATH", bench.path("bin")));
    let line = obstacle(&done);
    assert!(line.contains("(WARNING: perf not found for kernel 6.8)"), "{line}");
    fs::remove_dir_all(bench.path("bin")).expect("removed");
    expect_shown(&bench, &done);
}

/// Runs `jitscribe` where a filter refuses perf_event_open by this error.
fn filtered(bench: &Bench, error: u16, words: &str) -> Done {
    let words = [&[JITSCRIBE], &words.split(' ').collect::<Vec<_>>()[..]].concat();
    finish(&mut bench.by(&refusing(Refused::PerfEventOpen, error), &words))
}

/// As in Docker: its filter answers EPERM, other runtimes' ENOSYS.
#[test]
fn under_a_seccomp_filter_it_says_what_docker_and_kubernetes_need() {
    needs!(Filters);
    for (error, name) in [(1, "EPERM"), (38, "ENOSYS")] {
        let bench = Bench::new();
        let done = filtered(&bench, error, "demo -o demo");
        let line = obstacle(&done);
        for part in [
            &format!("a seccomp filter forbids perf_event_open ({name})"),
            "in Docker, --cap-add PERFMON or --security-opt seccomp=unconfined",
            "in Kubernetes, securityContext.capabilities.add: [PERFMON]",
            "seccompProfile.type: Unconfined",
        ] {
            assert!(line.contains(part), "no {part}: {line}");
        }
        expect_shown(&bench, &done);
    }
    // `record` says the same.
    let done = filtered(&Bench::new(), 1, "record -- true").ends(1);
    let said = done.stderr.lines().last().expect("a message");
    assert!(said.contains("perf recorded nothing") && said.contains("--cap-add PERFMON"), "{said}");
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn it_is_shown_where_it_is_asked_for() {
        let bench = Bench::new();
        let done = finish(demo_alone(&bench).arg("--shipped"));
        done.says_not("perf cannot record");
        expect_shown(&bench, &done);

        // The page has the same functions. Calls that were inlined are functions of their own there, so that only some are comparable.
        let mut browser = Browser::start();
        let mut page =
            browser.open(&bench.path("demo/report.html"), "#view=functions", (1400, 900));
        let all: u64 = expected().iter().map(|(count, _)| count).sum();
        let selection = page.text("#selection").replace(',', "");
        assert_eq!(selection, format!("{all} of {all} samples"));
        let first = page.eval(
            "[...document.querySelector('#functions .row').children].map((cell) => cell.innerText)",
        );
        let (count, hottest) = expected()[0];
        assert_eq!(first[4], hottest, "{first}");
        assert!(first.to_string().contains(&format!("\"{count}\"")), "{first}");
    }
}
