//! `jitscribe record --tool` with real runtimes, and with programs that link the library.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use end_to_end::calls::{Calls, compile_heap};
use end_to_end::jitscribe::{demo_jit, jitscribe};
use end_to_end::profile::Profile;
use end_to_end::tool::{run, tool};
use serde_json::Value;
use tempfile::TempDir;

/// What the warning of an earlier process's map says.
const OF_EARLIER: &str = "an earlier process with this id wrote it";

/// `jitscribe record --tool` in a folder of its own, and what it left there.
struct Recorded {
    dir: TempDir,
    said: String,
    report: Value,
}

impl Recorded {
    fn new(of: &str, variables: &[(&str, &str)], command: &Command) -> Self {
        Self::with_options(&[], of, variables, command)
    }

    /// With this script in the folder.
    fn script(name: &str, text: &str, of: &str, command: &Command) -> Self {
        let dir = TempDir::with_prefix("jitscribe-record-").expect("a folder");
        std::fs::write(dir.path().join(name), text).expect("a file");
        Self::record(dir, of, &[], &[], command)
    }

    fn with_options(
        options: &[&str],
        of: &str,
        variables: &[(&str, &str)],
        command: &Command,
    ) -> Self {
        let dir = TempDir::with_prefix("jitscribe-record-").expect("a folder");
        Self::record(dir, of, options, variables, command)
    }

    fn record(
        dir: TempDir,
        of: &str,
        options: &[&str],
        variables: &[(&str, &str)],
        command: &Command,
    ) -> Self {
        let mut record = jitscribe();
        record.args(["record", "--json", &format!("--tool={of}")]).args(options).arg("--");
        record.arg(command.get_program()).args(command.get_args());
        record.envs(variables.iter().copied()).current_dir(dir.path());
        let printed = run(&mut record);
        // What the program prints stands before it.
        let json = printed.stdout.find("[\n  {").map_or("", |at| &printed.stdout[at..]);
        let report: Value = serde_json::from_str(json).expect("a report");
        assert_eq!(report.as_array().map(Vec::len), Some(1), "{report}");
        Self { dir, said: printed.stderr, report: report[0].clone() }
    }

    /// Without those of maps that a process with this id left in an earlier test.
    fn warnings(&self) -> Vec<&str> {
        let warnings = self.report["warnings"].as_array().expect("warnings");
        let warnings = warnings.iter().map(|warning| warning.as_str().expect("a text"));
        warnings.filter(|warning| !warning.contains(OF_EARLIER)).collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn files(&self, folder: &Path) -> Vec<String> {
        let Ok(entries) = self.dir.path().join(folder).read_dir() else { return Vec::new() };
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into()).collect()
    }

    /// What was written, which is named behind the tool and ends with the process.
    fn output(&self, prefix: &str) -> PathBuf {
        let files = self.files(Path::new(""));
        let is_it = |name: &&String| {
            name.strip_prefix(prefix)
                .is_some_and(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let found: Vec<_> = files.iter().filter(is_it).collect();
        assert_eq!(found.len(), 1, "{files:?}");
        self.path(found[0])
    }
}

fn calls() -> Calls {
    Calls::build(env!("CARGO_BIN_EXE_run-calls"))
}

/// The command that runs the code in one way.
fn program(calls: &Calls, how: &str) -> Command {
    let words = calls.command(how, 1);
    let (program, arguments) = words.split_first().expect("a program");
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// The costs by function, file and line, of functions that `calls` has.
fn lines(calls: &Calls, profile: &Profile) -> BTreeMap<(String, String, u64), Vec<u64>> {
    let (mut lines, functions) = (BTreeMap::new(), calls.functions());
    for ((function, _, file, line), costs) in &profile.places {
        let name = function.name.split('\'').next().unwrap_or_default().to_owned();
        if functions.contains(&name) {
            let sums: &mut Vec<u64> = lines.entry((name, file.clone(), *line)).or_default();
            sums.resize(costs.len(), 0);
            sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
        }
    }
    lines
}

/// The cost of jitted functions of this name, with or without what V8 and PHP put around it.
fn cost(profile: &Profile, name: &str) -> u64 {
    let of_name = profile.own.iter().filter(|(function, _)| {
        let words = function.name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        function.object.contains("callgrind.out") && words.into_iter().any(|word| word == name)
    });
    of_name.map(|(_, costs)| costs[0]).sum()
}

#[test]
fn node_under_callgrind() {
    let script = "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
        let sum = 0; for (let i = 0; i < 40; i++) sum += fib(15); console.log(sum);";
    let mut node = tool("node");
    node.args(["--single-threaded", "fib.js"]);
    let recorded = Recorded::script("fib.js", script, "callgrind", &node);
    assert_eq!(recorded.report["named_at_once"], false);
    let profile = Profile::read(&recorded.output("callgrind.out."));
    assert_eq!(profile.sum(), profile.totals);
    assert!(cost(&profile, "fib") > 1_000_000, "{}", recorded.said);
    // Its machine code is kept; the dump that described it is deleted.
    let image = recorded.report["image"].as_str().expect("an object file");
    let code = run(tool("objdump").args(["-d", "-C"]).arg(recorded.path(image))).stdout;
    assert!(code.contains("fib"), "{code}");
    assert_eq!(recorded.files(Path::new("callgrind.out.jit")), [""; 0]);
}

#[test]
fn php_under_callgrind() {
    let script = "<?php function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
        for ($i = 0; $i < 30; $i++) { echo fib(14), \"\\n\"; }";
    let mut php = tool("php");
    php.arg("fib.php");
    let recorded = Recorded::script("fib.php", script, "callgrind", &php);
    let profile = Profile::read(&recorded.output("callgrind.out."));
    assert_eq!(profile.sum(), profile.totals);
    assert!(cost(&profile, "fib") > 100_000, "{}", recorded.said);
    _ = std::fs::remove_file(format!("/tmp/perf-{}.map", profile.pid));
}

/// Its code has names while it runs, and the object files that these are of stay.
#[test]
fn a_program_that_links_the_library() {
    let mut demo = demo_jit();
    demo.args(["--log", "--calls", "1"]);
    let recorded = Recorded::new("callgrind", &[], &demo);
    assert_eq!(recorded.report["named_at_once"], true);
    assert_eq!(recorded.warnings(), [""; 0], "{}", recorded.said);
    assert!(recorded.said.contains("had names while it ran"), "{}", recorded.said);
    let profile = Profile::read(&recorded.output("callgrind.out."));
    let fib = profile.own.keys().find(|function| function.name == "baseline::fib").expect("fib");
    assert!(Path::new(&fib.object).is_file(), "{} is gone", fib.object);
    let objects = recorded.files(Path::new("callgrind.out.jit"));
    assert!(!objects.is_empty() && objects.iter().all(|name| name.ends_with(".so")), "{objects:?}");
}

/// Every self cost by line, every count of calls and every inclusive cost is that of the same code in a shared object,
/// if the code is gone when callgrind writes the profile.
#[test]
fn lines_of_code_that_is_gone_at_the_end() {
    let calls = calls();
    let record = |how: &str| {
        let recorded = Recorded::new("callgrind", &[], &program(&calls, how));
        let profile = Profile::read(&recorded.output("callgrind.out."));
        assert_eq!(profile.sum(), profile.totals, "{how}");
        (recorded, profile)
    };
    let event = |recorded: &Recorded, key: &str| {
        recorded.report["events"][0][key].as_u64().expect("a number")
    };
    let (_, library) = record("library");
    let (known, known_lines) = (calls.part_of(&library), lines(&calls, &library));
    let jitted: u64 = known_lines.values().map(|costs| costs[0]).sum();
    for how in ["copy", "freed", "freed-at-once", "reused", "replaced"] {
        let (recorded, profile) = record(how);
        assert_eq!(known.differences(&calls.part_of(&profile), &[]), "", "{how}");
        let lines = lines(&calls, &profile);
        let [without, restored, corrected] =
            ["without_line", "restored", "corrected"].map(|key| event(&recorded, key));
        if how != "replaced" {
            assert_eq!(lines, known_lines, "{how}");
            assert_eq!(recorded.warnings(), [""; 0], "{}", recorded.said);
            // As long as Valgrind knows the lines, none is changed.
            let is_lost = matches!(how, "freed-at-once" | "reused");
            let lost = if is_lost { jitted } else { 0 };
            assert_eq!([without, restored, corrected], [lost, lost, 0], "{how}");
            continue;
        }
        // Of code that was run into, or entered in the middle, callgrind has the name of the function that it came from, which is
        // not that of the code.
        let undecided = ["fall_into", "mid_jump", "two_heads"];
        let decided = |lines: &BTreeMap<(String, String, u64), Vec<u64>>| {
            let mut lines = lines.clone();
            lines.retain(|(name, _, _), _| !undecided.contains(&name.as_str()));
            lines
        };
        assert_eq!(decided(&lines), decided(&known_lines));
        assert!(corrected > 1000 && restored + corrected > jitted - 1000, "{}", recorded.report);
        let warnings = recorded.warnings();
        assert_eq!(warnings.len(), 1, "{}", recorded.report);
        assert!(warnings[0].starts_with("3 announced functions"), "{}", recorded.report);
    }
}

/// cachegrind looks up lines when code first runs.
#[test]
fn cachegrind_has_lines_of_code_that_is_gone_at_the_end() {
    let calls = calls();
    let [there, gone] = ["copy", "reused"].map(|how| {
        let recorded = Recorded::new("cachegrind", &[], &program(&calls, how));
        let text = std::fs::read(recorded.output("cachegrind.out.")).expect("a profile");
        let text = String::from_utf8_lossy(&text);
        let sources = text.split("\nfl=").filter(|part| {
            let file = part.lines().next().unwrap_or_default();
            file.ends_with("workloads/calls/calls.c") || file.ends_with("workloads/calls/moves.S")
        });
        sources.map(str::to_owned).collect::<Vec<_>>()
    });
    assert_eq!(there.len(), 2);
    assert_eq!(there, gone);
}

/// Without addresses, lines cannot be restored, and without a log either. The report says so.
#[test]
fn lines_that_cannot_be_restored() {
    let calls = calls();
    let command = program(&calls, "reused");
    for (option, variables, expected) in [
        ("--dump-instr=no", &[][..], "with --dump-instr=yes they are restored"),
        ("--dump-instr=yes", &[("JITSCRIBE", "valgrind")], "To write one: JITSCRIBE=jitdump"),
    ] {
        let recorded = Recorded::with_options(&[option], "callgrind", variables, &command);
        assert_eq!(recorded.report["events"][0]["restored"], 0, "{option}");
        assert!(recorded.said.contains(expected), "{option}: {}", recorded.said);
    }
}

/// A map that was last changed before the command began is left out, and said.
#[test]
fn a_map_that_an_earlier_process_left() {
    let calls = calls();
    let script = "my $map = \"/tmp/perf-$$.map\"; open(my $file, '>', $map) or die; print $file \"1000 10 stale\\n\"; close $file;
        utime 1, 1, $map; exec @ARGV";
    let mut command = tool("perl");
    command.args(["-e", script]).args(calls.command("reused", 1));
    let recorded = Recorded::new("callgrind", &[("JITSCRIBE", "valgrind")], &command);
    let pid = Profile::read(&recorded.output("callgrind.out.")).pid;
    std::fs::remove_file(format!("/tmp/perf-{pid}.map")).expect("the map");
    assert!(recorded.said.contains(OF_EARLIER), "{}", recorded.said);
    assert!(recorded.said.contains("To write one: JITSCRIBE=jitdump"), "{}", recorded.said);
}

/// Code without lines is attributed to the file that described it, unless that file was deleted.
#[test]
fn no_output_refers_to_a_deleted_file() {
    let dir = TempDir::with_prefix("jitscribe-record-").expect("a folder");
    let library = compile_heap(dir.path(), "-g0");
    let mut copy = Command::new(env!("CARGO_BIN_EXE_run-calls"));
    copy.arg("copy").arg(&library).arg("3");
    // A leak check reads all of the log.
    let words = [("JITSCRIBE", "jitdump,valgrind=off"), ("JITSCRIBE_LIMIT", "1M")];
    let recorded = Recorded::record(dir, "memcheck", &[], &words, &copy);
    let log = std::fs::read_to_string(recorded.output("memcheck.out.")).expect("a log");
    assert!(log.contains(": read_behind\n"), "{log}");
    assert!(!log.contains(".dump"), "{log}");
    assert_eq!(recorded.files(Path::new("memcheck.out.jit")), [""; 0]);
}
