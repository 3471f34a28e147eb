//! What scripts rely on: exit codes, earlier recordings, closed descriptors, and the options of all verbs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::{fs, io};

use crate::common::{Bench, Done, expect_tool, finish};
use serde_json::Value;
use test_privilege::needs;

/// Takes a second of processor time, most of it in compiled code.
const WORK_JS: &str = "function work(n) { return n < 2 ? n : work(n - 1) + work(n - 2) }
for (let i = 0; i < 20000; i++) work(18)";

/// Records node for half a second, which it spends in a function of this name.
fn record_node(bench: &Bench, function: &str, options: &str) -> Done {
    expect_tool("node");
    let script = format!(
        "function {function}(n) {{ return n < 2 ? n : {function}(n - 1) + {function}(n - 2) }}
         const end = Date.now() + 400; while (Date.now() < end) {function}(18)"
    );
    bench.write("spin.js", script);
    bench.record(&format!("-F 999 {options} -- node spin.js")).ok()
}

/// Whether perf report shows a function of node's program.
fn is_shown(bench: &Bench, recording: &str, function: &str) -> bool {
    let symbols = bench.run(&format!("perf report -i {recording} --stdio -g none --sort symbol"));
    symbols.lines().any(|line| line.contains(&format!("{function} ")))
}

/// Fails unless each recording has its function.
#[track_caller]
fn expect_shown(bench: &Bench, recordings: &[(&str, &str)]) {
    for (recording, function) in recordings {
        assert!(is_shown(bench, recording, function), "{function} in {recording}");
    }
}

/// The files and folders of recordings.
fn recordings(bench: &Bench) -> Vec<String> {
    let mut files = bench.files();
    files.retain(|name| name.starts_with("perf.data"));
    files
}

#[test]
fn an_earlier_recording_is_kept_with_its_code() {
    needs!(Perf);
    let bench = Bench::new();
    record_node(&bench, "first", "");
    assert_eq!(recordings(&bench), ["perf.data", "perf.data.jit"]);
    record_node(&bench, "second", "").says("the earlier recording: perf.data.old");
    expect_shown(&bench, &[("perf.data", "second"), ("perf.data.old", "first")]);
    assert!(!is_shown(&bench, "perf.data", "first"));

    // The first is deleted, and its images with it.
    record_node(&bench, "third", "");
    expect_shown(&bench, &[("perf.data", "third"), ("perf.data.old", "second")]);
    let (now, old) = ("perf.data.jit.3", "perf.data.jit.2");
    assert_eq!(recordings(&bench), ["perf.data", old, now, "perf.data.old"]);

    // With --force nothing is renamed, and what is kept still has its code.
    record_node(&bench, "fourth", "--force");
    expect_shown(&bench, &[("perf.data", "fourth"), ("perf.data.old", "second")]);
    assert_eq!(recordings(&bench), ["perf.data", "perf.data.jit", old, "perf.data.old"]);
}

#[test]
fn a_recording_that_was_moved_keeps_its_code() {
    needs!(Perf);
    let bench = Bench::new();
    record_node(&bench, "moved", "");
    fs::rename(bench.path("perf.data"), bench.path("saved")).expect("it moves");
    for function in ["one", "two", "three"] {
        record_node(&bench, function, "").says("rm -r perf.data.jit\n");
        expect_shown(&bench, &[("perf.data", function), ("saved", "moved")]);
    }
    expect_shown(&bench, &[("perf.data.old", "two")]);
}

#[test]
fn only_recordings_are_renamed_or_deleted() {
    let bench = Bench::new();
    let path = bench.path("perf.data");
    type Make = fn(&Path) -> io::Result<()>;
    let cases: [(Make, &str); 3] = [
        (|path| fs::write(path, "text"), "--force"),
        (|path| fs::create_dir(path), "is not a file"),
        (|path| std::os::unix::fs::symlink("none", path), ""),
    ];
    for (make, says) in cases {
        make(&path).expect("made");
        let done = bench.record("-- touch ran").ends(1);
        done.says("perf.data: already exists").says(says);
        // The command was not run, as its recording could not be written.
        assert_eq!(bench.files(), ["perf.data"]);
        assert!(fs::read(&path).map_or(true, |content| content == b"text"));
        fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).expect("it goes");
    }
    needs!(Perf);
    bench.write("perf.data", "text");
    bench.record("--force --allow-empty -- touch ran").ok();
    assert_ne!(bench.read("perf.data"), b"text");
    assert_eq!(bench.files(), ["perf.data", "ran"]);
    fs::remove_file(bench.path("ran")).expect("it goes");
    bench.write("perf.data.old", "text");
    bench.record("-- touch ran").says("perf.data.old: already exists");
    assert_eq!(bench.files(), ["perf.data", "perf.data.old"]);
    // perf leaves empty files, which are no loss.
    bench.write("perf.data", "");
    bench.record("--allow-empty -- true").ok();
    assert_eq!(bench.read("perf.data.old"), b"text");
}

#[test]
fn a_recording_cannot_make_us_delete_what_is_not_its_image() {
    needs!(Perf);
    let bench = Bench::new();
    record_node(&bench, "mine", "");
    bench.write("perf.data.jit/notes.txt", "mine");
    // Another place that the recording refers to as it does to its images.
    let there = bench.read("perf.data");
    let images = bench.name("perf.data.jit").into_bytes();
    let elsewhere = bench.name("perf.data.box").into_bytes();
    let mut changed = there.clone();
    for at in 0..there.len() - images.len() {
        if there[at..].starts_with(&images) {
            changed[at..at + images.len()].copy_from_slice(&elsewhere);
        }
    }
    assert_ne!(changed, there);
    fs::rename(bench.path("perf.data.jit"), bench.path("perf.data.box")).expect("it moves");
    let count = || fs::read_dir(bench.path("perf.data.box")).expect("a folder").count();
    let before = count();
    assert!(before > 1);
    bench.write("perf.data.old", changed);
    record_node(&bench, "another", "");
    assert_eq!(count(), before);
}

#[test]
fn the_raw_recording_is_kept_on_demand_and_replaced_by_force() {
    needs!(Perf);
    let bench = Bench::new();
    let record =
        |option| bench.record(&format!("{option} --keep-raw --json --allow-empty -- true"));
    let report = record("").ok().json();
    assert!(report["samples"]["samples"].is_u64(), "{report}");
    assert_eq!(bench.files(), ["perf.data", "perf.data.raw"]);
    let mode = fs::metadata(bench.path("perf.data.raw")).expect("a folder").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    record("").ends(1).says("perf.data.raw: already exists; use --force");
    record("--force").ok();
    assert_eq!(bench.files(), ["perf.data", "perf.data.raw"]);
    fs::remove_file(bench.path("perf.data.raw/perf.data")).expect("the raw recording");
    record("--force").says("not the folder of an earlier recording");
}

#[test]
fn closed_and_full_descriptors_lose_nothing() {
    needs!(Perf);
    let bench = Bench::new();
    // Some of it is in code with a name for perf.
    let record = "\"$0\" record -f --allow-empty --json -- sh -c ': nothing'";
    let full = "jitscribe: error: standard output: No space left on device";
    for (redirected, code, says) in [
        ("2>&-", 0, ""),
        (">&-", 0, "samples"),
        ("<&-", 0, "samples"),
        ("<&- >&- 2>&-", 0, ""),
        ("2>/dev/full", 0, ""),
        (">/dev/full", 1, full),
        (">/dev/full 2>&-", 1, ""),
        ("> >(true)", 0, "samples"),
        ("2> >(true)", 0, ""),
        ("| head -1", 0, ""),
        ("2>&1 | head -1", 0, ""),
        ("2>&1 >/dev/null | head -1", 0, ""),
        ("2>&1 | true", 0, ""),
    ] {
        _ = fs::remove_file(bench.path("perf.data"));
        let done = bench.shell(&format!("{record} {redirected}; exit ${{PIPESTATUS[0]}}"));
        done.ends(code).says(says).says_not("panicked");
        bench.run("perf evlist -i perf.data");
    }
    // The command's exit code is more important than ours.
    let failing = "\"$0\" record -f --json -- sh -c 'exit 7'";
    for redirected in ["2>&-", ">&-", ">/dev/full", "2>/dev/full", "| head -1"] {
        bench.shell(&format!("{failing} {redirected}; exit ${{PIPESTATUS[0]}}")).ends(7);
    }
}

#[test]
fn all_verbs_survive_closed_and_full_descriptors() {
    let bench = Bench::with("perf-7.map", "1000 20 fib\n2000 20 fob\n").and("bad.map", "x\n");
    for (words, code, on_full) in [
        ("dump perf-7.map", 0, 1),
        ("dump --json perf-7.map", 0, 1),
        ("check perf-7.map", 0, 1),
        ("check --json bad.map", 1, 1),
        ("completions bash", 0, 1),
        ("man", 0, 1),
        ("--help", 0, 1),
        ("record --help", 0, 1),
        ("inject -i none", 1, 1),
        ("callgrind none", 1, 1),
        ("record", 2, 2),
        ("dump --bad", 2, 2),
        ("debug --print-script", 0, 1),
    ] {
        for (redirected, code) in [
            ("2>&-", code),
            (">&-", code),
            ("<&- >&- 2>&-", code),
            ("2>/dev/full", code),
            ("2>&1 >/dev/null | true", code),
            (">/dev/full", on_full),
        ] {
            let script = format!("\"$0\" {words} {redirected}; exit ${{PIPESTATUS[0]}}");
            bench.shell(&script).ends(code).says_not("panicked");
        }
    }
}

#[test]
fn what_names_nothing_has_an_exit_code_of_its_own() {
    needs!(Perf);
    let bench = Bench::new();
    expect_tool("node");
    bench.write("work.js", WORK_JS);
    let node = "--no-env --no-memory -F 999 -- node work.js";
    let empty = bench.record(&format!("--json {node}")).ends(3);
    empty.says("error: nothing was named").says("it is node without --perf-basic-prof");
    assert!(bench.path("perf.data").exists());
    assert_eq!(empty.json()["child"]["exit_code"], 0);
    let failed = bench.record(&["--json", "--", "sh", "-c", "exit 7"]).ends(7);
    assert_eq!(failed.json()["child"]["exit_code"], 7);
    bench.record(&format!("-f --allow-empty {node}")).ok();
    bench.ask("inject -f").ends(3);
    bench.ask("inject -f --allow-empty").ok();
    // Without a JIT compiler, there is nothing to name.
    bench.record("-f -- true").ok().says("none of them in jitted code").says_not("error");
    bench.ask("inject -f").ok();
}

/// The documentation of what scripts rely on.
fn documentation() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/scripts.md");
    fs::read_to_string(path).expect("the documentation")
}

#[test]
fn the_table_of_exit_codes_is_in_the_documentation() {
    let help = Bench::new().ask("--help").stdout;
    let table = help.split("EXIT CODES:").nth(1).expect("a table");
    let docs = documentation();
    let mut count = 0;
    for row in table.lines().skip(1).take_while(|line| line.starts_with("  ")) {
        let (code, meaning) = row.trim().split_at(9);
        let line = format!("| {} | {} |", code.trim(), meaning.trim());
        assert!(docs.contains(&line), "docs/scripts.md has no line {line}");
        count += 1;
    }
    assert_eq!(count, 7);
}

/// All verbs, as the list of man pages has them, but `fleet`, which is a program of its own.
fn verbs(bench: &Bench) -> Vec<String> {
    let list = bench.ask("man --list").ok().stdout;
    let verbs = list.lines().filter_map(|name| name.strip_prefix("jitscribe-"));
    verbs.filter(|verb| *verb != "fleet").map(str::to_owned).collect()
}

#[test]
fn every_verb_has_the_same_colours() {
    let bench = Bench::new();
    let coloured = |words: &str, variables: &[(&str, &str)]| {
        let mut command = bench.jitscribe(words);
        command.env_remove("NO_COLOR").env_remove("CLICOLOR").env_remove("CLICOLOR_FORCE");
        let done = finish(command.envs(variables.iter().copied()));
        (done.code, (done.stderr + &done.stdout).contains("\x1b["))
    };
    let (forced, no_color) = (("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1"));
    for verb in verbs(&bench) {
        for (color, variables, is_coloured) in [
            ("--color=always", &[][..], true),
            ("--color=always", &[no_color], true),
            ("--color=auto", &[forced], true),
            ("--color=auto", &[], false),
            ("--color=auto", &[forced, no_color], false),
            ("--color=never", &[forced], false),
        ] {
            let refused = coloured(&format!("{verb} --no-such-option {color}"), variables);
            assert_eq!(refused, (2, is_coloured), "{verb} {color} {variables:?}");
            let help = coloured(&format!("{color} {verb} --help"), variables);
            assert_eq!(help, (0, is_coloured), "{verb} {color} {variables:?}");
        }
    }
    // Messages of our own: an error, and a warning.
    let missing = "inject -i none";
    assert!(!coloured(missing, &[]).1);
    assert!(coloured(missing, &[forced]).1);
    assert!(coloured("--color always inject -i none", &[]).1);
}

#[test]
fn every_verb_can_be_quiet_or_verbose() {
    let bench = Bench::new();
    for verb in verbs(&bench) {
        for option in ["-q", "--quiet", "-v", "--verbose", "-vv"] {
            bench.ask(&[option, &verb, "--help"]).ok();
            bench.ask(&[&verb, option, "--help"]).ok();
        }
    }
    needs!(Perf);
    let quiet = record_node(&bench, "quiet", "-q");
    // An earlier process with node's id may have left a map in `/tmp`.
    let is_own = |line: &&str| !line.contains("an earlier process with this id wrote it");
    assert_eq!(quiet.stderr.lines().find(is_own), None);
    record_node(&bench, "loud", "--force --verbose")
        .says("jitscribe: running: perf record -k mono")
        .says(" codes of process ")
        .says("next: jitscribe report");
    // Warnings and errors are printed, and options of the command are its own.
    let echo = bench.record("-q -f -- echo -v -q").ok();
    assert_eq!((echo.stdout.as_str(), echo.stderr.as_str()), ("-v -q\n", ""));
    bench.write("work.js", WORK_JS);
    let refused = bench.record("-q -f --no-env -- node work.js").ends(3);
    refused.says("error: nothing was named").says_not("samples,");
}

/// The fields of an object, sorted.
fn fields(value: &Value) -> Vec<&str> {
    let mut fields: Vec<&str> =
        value.as_object().expect("an object").keys().map(String::as_str).collect();
    fields.sort_unstable();
    fields
}

#[test]
fn the_json_reports_have_the_documented_fields() {
    needs!(Perf);
    let bench = Bench::new();
    let record = record_node(&bench, "spin", "--json --keep-raw").json();
    let words = "inject -i perf.data.raw/perf.data -o out.data --json --aux-dir .";
    let inject = bench.ask(words).ok().json();
    assert_eq!((&record["verb"], &inject["verb"]), (&"record".into(), &"inject".into()));
    assert_eq!(record["schema_version"], 1);

    let docs = documentation();
    let documented = |heading: &str| {
        let section = docs.split(&format!("### {heading}\n")).nth(1).expect("a section");
        let section = section.split("\n### ").next().unwrap_or_default();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let mut fields: Vec<&str> = rows.map(|(field, _)| field).collect();
        fields.sort_unstable();
        fields
    };
    let mut of_record = [&documented("The report")[..], &["child", "raw", "left"]].concat();
    of_record.sort_unstable();
    assert_eq!(fields(&record), of_record);
    assert_eq!(documented("Only `record`"), ["child", "left", "raw"]);
    assert_eq!(fields(&inject), documented("The report"));
    assert_eq!(fields(&record["child"]), documented("`child`"));
    for report in [&record, &inject] {
        assert_eq!(fields(&report["samples"]), documented("`samples`"));
        assert_eq!(fields(&report["activities"]), documented("`activities`"));
        assert!(report["unnamed"].is_array(), "{report}");
        for list in ["top", "sources", "images"] {
            assert_eq!(fields(&report[list][0]), documented(&format!("Each of `{list}`")));
        }
    }
    assert_eq!(fields(&record["top"][0]["tiers"][0]), ["samples", "tier"]);
    assert_eq!(record["raw"], record["input"]);
    assert!(record["left"].is_array(), "{record}");
    assert_eq!(record["stacks"]["recorded"], "walked", "{record}");
}
