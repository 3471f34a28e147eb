//! `jitscribe demo` with the real perf.

use end_to_end::jitscribe::{demo_jit, jitscribe};
use end_to_end::record::Record;
use end_to_end::tool::{argument, ended, path_behind, run, tool};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use test_privilege::needs;

/// `jitscribe demo -o demo` in a folder that is also its home.
fn demo(folder: &TempDir) -> Command {
    let mut command = jitscribe();
    // It is searched for next to the command first, and the two may come from different builds.
    let demo = demo_jit();
    let programs = Path::new(demo.get_program()).parent().expect("a folder");
    command.env("PATH", path_behind(programs));
    command.current_dir(folder).env("HOME", folder.path());
    command.args(["demo", "-o", "demo"]);
    command
}

#[test]
fn the_demo_shows_names_lines_and_stacks() {
    needs!(Perf);
    let folder = TempDir::with_prefix("jitscribe-demo-").expect("a temporary folder");
    let done = run(demo(&folder).args(["--phase", "200"]));
    let (before, after) = done.stdout.split_once("── perf report, after ──").expect("two reports");
    for function in ["::collatz", "::fib", "::mix"] {
        assert!(!before.contains(function), "{function} before: {before}");
        assert!(after.contains(function), "{function}: {after}");
    }
    // perf annotate shows lines of the source between those of the code.
    assert!(after.contains("── perf annotate "), "{after}");
    assert!(after.contains("demo.scribe:"), "{after}");
    let (_, ir) = after.split_once("── the same with jitscribe inject --lines ir ──").expect("IR");
    let (ir, rest) = ir.split_once("\n\n").expect("more");
    // A line of the listing: where in the source, and an instruction.
    assert!(ir.contains(" @00"), "{ir}");
    let (_, inlined) = rest.split_once("── addr2line -i, ").expect("inlined calls");
    let (inlined, _) = inlined.split_once("\n\n").expect("more");
    assert!(inlined.contains(" (inlined by) "), "{inlined}");
    assert!(done.stderr.contains("next: jitscribe report -i "), "{}", done.stderr);
    assert!(folder.path().join("demo/perf.data").exists());
    let files = fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(files, 1, "more than the folder `demo`");

    // A second run would overwrite the first.
    let again = ended(&mut demo(&folder));
    assert_eq!(again.code, Some(1), "{}", again.stderr);
}

/// As for any program that links the library, `record` sets a variable.
#[test]
fn the_program_itself_has_names_without_a_flag() {
    needs!(Perf);
    let demo = argument(demo_jit().get_program());
    for (option, is_named) in [("--call-graph=none", true), ("--no-env", false)] {
        let record = Record::new(&["--force", "--allow-empty", "-F", "999", option]);
        let report = record.program(&[&*demo, "--quiet", "--phase", "100"]).report;
        let count = |key: &str| report["samples"][key].as_u64().expect("a count");
        // What nothing announces has an inferred name.
        let (named, inferred) = (count("named"), count("inferred"));
        let counts = if is_named { (named, inferred) } else { (inferred, named) };
        assert!(counts.0 > 50 && counts.1 == 0, "{option}: {report}");
    }
}

#[test]
fn stacks_reach_main_without_frame_pointers() {
    needs!(Perf);
    let folder = TempDir::with_prefix("jitscribe-demo-").expect("a temporary folder");
    run(demo(&folder).args(["--dwarf", "--phase", "100"]));
    let mut perf = tool("perf");
    perf.args(["script", "--no-inline", "-i", "demo/perf.data", "-F", "ip,sym,dso"]);
    let stacks = run(perf.current_dir(&folder).env("HOME", folder.path())).stdout;
    let through_both = stacks.split("\n\n").filter(|stack| {
        let jitted = stack.lines().any(|line| line.contains("perf.data.jit/"));
        jitted && stack.lines().any(|line| line.split_whitespace().nth(1) == Some("main"))
    });
    assert!(through_both.count() > 0, "no stack leads from jitted code to main");
}

/// Where perf is refused, the shipped recording is shown instead: the command's own tests (`demo.rs`) check that.
#[test]
fn without_the_program_the_message_says_how_to_install_it() {
    needs!(Perf);
    let folder = TempDir::new().expect("a temporary folder");
    let alone = folder.path().join("jitscribe");
    fs::copy(jitscribe().get_program(), &alone).expect("a copy");
    let done = ended(Command::new(&alone).arg("demo").env("PATH", "/usr/bin:/bin"));
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("cargo build --release -p demo-jit"), "{}", done.stderr);
}
