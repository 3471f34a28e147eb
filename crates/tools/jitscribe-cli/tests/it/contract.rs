//! What scripts rely on: exit codes, earlier recordings, closed descriptors, and the options of all verbs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use crate::common::{Bench, Done, expect_tool, finish};
use test_privilege::{Privilege, have};

const BIN: &str = env!("CARGO_BIN_EXE_jitscribe");

/// Records node for half a second, which it spends in a function of this name.
fn record_node(bench: &Bench, function: &str, options: &[&str]) -> Done {
    expect_tool("node");
    let script = format!(
        "function {function}(n) {{ return n < 2 ? n : {function}(n - 1) + {function}(n - 2) }}
         const end = Date.now() + 400; while (Date.now() < end) {function}(18)"
    );
    bench.write("spin.js", &script);
    let words = [&["-F", "999"], options, &["--", "node", "spin.js"]].concat();
    let done = bench.record(&words);
    assert_eq!(done.code, 0, "{}", done.stderr);
    done
}

/// Whether perf report shows a function of node's program.
fn shows(bench: &Bench, recording: &str, function: &str) -> bool {
    let words = ["perf", "report", "-i", recording, "--stdio", "-g", "none", "--sort", "symbol"];
    bench.run(&words).lines().any(|line| line.contains(&format!("{function} ")))
}

/// The files and folders of recordings.
fn recordings(bench: &Bench) -> Vec<String> {
    let mut files = bench.files();
    files.retain(|name| name.starts_with("perf.data"));
    files
}

/// Runs a shell script in the folder; `$0` is the command under test.
fn shell(bench: &Bench, script: &str) -> Done {
    let mut command = bench.command("bash");
    command.args(["-c", script, BIN]).env("JITSCRIBE_JAVA_AGENT", "");
    finish(command)
}

#[test]
fn an_earlier_recording_is_kept_with_its_code() {
    if !have(&[Privilege::Perf]) {
        return;
    }
    let bench = Bench::new();
    record_node(&bench, "first", &[]);
    assert_eq!(recordings(&bench), ["perf.data", "perf.data.jit"]);
    let second = record_node(&bench, "second", &[]);
    assert!(second.stderr.contains("the earlier recording: perf.data.old"), "{}", second.stderr);
    assert!(shows(&bench, "perf.data", "second") && !shows(&bench, "perf.data", "first"));
    assert!(shows(&bench, "perf.data.old", "first"));

    // The first is deleted, and its images with it.
    record_node(&bench, "third", &[]);
    assert!(shows(&bench, "perf.data", "third") && shows(&bench, "perf.data.old", "second"));
    let (now, old) = ("perf.data.jit.3", "perf.data.jit.2");
    assert_eq!(recordings(&bench), ["perf.data", old, now, "perf.data.old"]);

    // With --force nothing is renamed, and what is kept still has its code.
    record_node(&bench, "fourth", &["--force"]);
    assert!(shows(&bench, "perf.data", "fourth") && shows(&bench, "perf.data.old", "second"));
    assert_eq!(recordings(&bench), ["perf.data", "perf.data.jit", old, "perf.data.old"]);
}

#[test]
fn a_recording_that_was_moved_keeps_its_code() {
    if !have(&[Privilege::Perf]) {
        return;
    }
    let bench = Bench::new();
    record_node(&bench, "moved", &[]);
    fs::rename(bench.path("perf.data"), bench.path("saved")).expect("it moves");
    for function in ["one", "two", "three"] {
        let done = record_node(&bench, function, &[]);
        assert!(done.stderr.contains("rm -r perf.data.jit\n"), "{}", done.stderr);
        assert!(shows(&bench, "perf.data", function) && shows(&bench, "saved", "moved"));
    }
    assert!(shows(&bench, "perf.data.old", "two"));
}

#[test]
fn only_recordings_are_renamed_or_deleted() {
    let bench = Bench::new();
    let name = "perf.data";
    type Make = fn(&Path) -> io::Result<()>;
    let cases: [(Make, &str); 3] = [
        (|path| fs::write(path, "text"), "--force"),
        (|path| fs::create_dir(path), "is not a file"),
        (|path| std::os::unix::fs::symlink("none", path), ""),
    ];
    for (make, says) in cases {
        make(&bench.path(name)).expect("made");
        let done = bench.record(&["--", "touch", "ran"]);
        assert_eq!(done.code, 1, "{}", done.stderr);
        assert!(done.stderr.contains("perf.data: already exists"), "{}", done.stderr);
        assert!(done.stderr.contains(says), "{}", done.stderr);
        // The command was not run, as its recording could not be written.
        assert_eq!(bench.files(), [name]);
        let path = bench.path(name);
        assert!(fs::read(&path).map_or(true, |content| content == b"text"));
        fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).expect("it goes");
    }
    if !have(&[Privilege::Perf]) {
        return;
    }
    bench.write(name, "text");
    let forced = bench.record(&["--force", "--allow-empty", "--", "touch", "ran"]);
    assert_eq!(forced.code, 0, "{}", forced.stderr);
    assert_ne!(fs::read(bench.path(name)).expect("a recording"), b"text");
    assert_eq!(bench.files(), [name, "ran"]);
    fs::remove_file(bench.path("ran")).expect("it goes");
    bench.write("perf.data.old", "text");
    let done = bench.record(&["--", "touch", "ran"]);
    assert!(done.stderr.contains("perf.data.old: already exists"), "{}", done.stderr);
    assert_eq!(bench.files(), ["perf.data", "perf.data.old"]);
    // perf leaves empty files, which are no loss.
    bench.write("perf.data", "");
    assert_eq!(bench.record(&["--allow-empty", "--", "true"]).code, 0);
    assert_eq!(fs::read_to_string(bench.path("perf.data.old")).unwrap(), "text");
}

#[test]
fn a_recording_cannot_make_us_delete_what_is_not_its_image() {
    if !have(&[Privilege::Perf]) {
        return;
    }
    let bench = Bench::new();
    record_node(&bench, "mine", &[]);
    let images = bench.path("perf.data.jit");
    bench.write("perf.data.jit/notes.txt", "mine");
    // Another place that the recording refers to as it does to its images.
    let there = fs::read(bench.path("perf.data")).expect("the recording");
    let text = images.to_str().expect("UTF-8").as_bytes().to_vec();
    let mut elsewhere = text.clone();
    elsewhere.splice(text.len() - 3.., *b"box");
    let mut changed = there.clone();
    for at in 0..there.len() - text.len() {
        if there[at..].starts_with(&text) {
            changed[at..at + text.len()].copy_from_slice(&elsewhere);
        }
    }
    assert_ne!(changed, there);
    fs::rename(&images, bench.path("perf.data.box")).expect("it moves");
    let before = fs::read_dir(bench.path("perf.data.box")).expect("a folder").count();
    assert!(before > 1);
    fs::write(bench.path("perf.data.old"), changed).expect("a recording");
    record_node(&bench, "another", &[]);
    assert_eq!(fs::read_dir(bench.path("perf.data.box")).expect("a folder").count(), before);
}

#[test]
fn the_raw_recording_is_kept_on_demand_and_replaced_by_force() {
    if !have(&[Privilege::Perf]) {
        return;
    }
    let bench = Bench::new();
    let words = ["--keep-raw", "--json", "--allow-empty", "--", "true"];
    let done = bench.record(&words);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let report: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert!(report["samples"]["samples"].is_u64(), "{report}");
    assert_eq!(bench.files(), ["perf.data", "perf.data.raw"]);
    let mode = fs::metadata(bench.path("perf.data.raw")).expect("a folder").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let refused = bench.record(&words);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("perf.data.raw: already exists; use --force"));
    let forced = bench.record(&[&["--force"], &words[..]].concat());
    assert_eq!(forced.code, 0, "{}", forced.stderr);
    assert_eq!(bench.files(), ["perf.data", "perf.data.raw"]);
    fs::remove_file(bench.path("perf.data.raw/perf.data")).expect("the raw recording");
    let refused = bench.record(&[&["--force"], &words[..]].concat());
    assert!(refused.stderr.contains("not the folder of an earlier recording"));
}

#[test]
fn closed_and_full_descriptors_lose_nothing() {
    if !have(&[Privilege::Perf]) {
        return;
    }
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
    ] {
        _ = fs::remove_file(bench.path("perf.data"));
        let done = shell(&bench, &format!("{record} {redirected}"));
        assert_eq!(done.code, code, "{redirected}: {}", done.stderr);
        assert!(done.stderr.contains(says), "{redirected}: {}", done.stderr);
        assert!(!done.stderr.contains("panicked"), "{redirected}: {}", done.stderr);
        bench.run(&["perf", "evlist", "-i", "perf.data"]);
    }
    for pipe in ["| head -1", "2>&1 | head -1", "2>&1 >/dev/null | head -1", "2>&1 | true"] {
        _ = fs::remove_file(bench.path("perf.data"));
        let done = shell(&bench, &format!("{record} {pipe}; exit ${{PIPESTATUS[0]}}"));
        assert_eq!((done.code, done.stderr.contains("panicked")), (0, false), "{pipe}");
        bench.run(&["perf", "evlist", "-i", "perf.data"]);
    }
    // The command's exit code is more important than ours.
    let failing = "\"$0\" record -f --json -- sh -c 'exit 7'";
    for redirected in ["2>&-", ">&-", ">/dev/full", "2>/dev/full", "| head -1"] {
        let done = shell(&bench, &format!("{failing} {redirected}; exit ${{PIPESTATUS[0]}}"));
        assert_eq!(done.code, 7, "{redirected}: {}", done.stderr);
    }
}

#[test]
fn all_verbs_survive_closed_and_full_descriptors() {
    let bench = Bench::new();
    bench.write("perf-7.map", "1000 20 fib\n2000 20 fob\n");
    bench.write("bad.map", "x\n");
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
        let expect = |redirected: &str, code: i32| {
            let done =
                shell(&bench, &format!("\"$0\" {words} {redirected}; exit ${{PIPESTATUS[0]}}"));
            assert_eq!(done.code, code, "{words} {redirected}: {}", done.stderr);
            assert!(!done.stderr.contains("panicked"), "{words} {redirected}: {}", done.stderr);
        };
        for redirected in ["2>&-", ">&-", "<&- >&- 2>&-", "2>/dev/full", "2>&1 >/dev/null | true"] {
            expect(redirected, code);
        }
        expect(">/dev/full", on_full);
    }
}

#[test]
fn what_names_nothing_has_an_exit_code_of_its_own() {
    if !have(&[Privilege::Perf]) {
        return;
    }
    let bench = Bench::new();
    let empty = bench.record(&["--json", "--", "true"]);
    assert_eq!(empty.code, 3, "{}", empty.stderr);
    assert!(empty.stderr.contains("error: nothing was named"), "{}", empty.stderr);
    assert!(bench.path("perf.data").exists());
    let report: serde_json::Value = serde_json::from_str(&empty.stdout).expect("JSON");
    assert_eq!(report["child"]["exit_code"], 0);
    let failed = bench.record(&["--json", "--", "sh", "-c", "exit 7"]);
    assert_eq!(failed.code, 7, "{}", failed.stderr);
    let report: serde_json::Value = serde_json::from_str(&failed.stdout).expect("JSON");
    assert_eq!(report["child"]["exit_code"], 7);
    assert_eq!(bench.record(&["--allow-empty", "--", "true"]).code, 0);
    let inject = |more: &[&str]| bench.ask(&[&["inject", "-f"], more].concat()).code;
    assert_eq!((inject(&[]), inject(&["--allow-empty"])), (3, 0));
}

#[test]
fn the_table_of_exit_codes_is_in_the_documentation() {
    let mut help = Command::new(BIN);
    help.arg("--help").env("NO_COLOR", "1");
    let help = finish(help).stdout;
    let table = help.split("EXIT CODES:").nth(1).expect("a table");
    let rows = table.lines().skip(1).take_while(|line| line.starts_with("  "));
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/scripts.md");
    let docs = fs::read_to_string(docs).expect("the documentation");
    let mut count = 0;
    for row in rows {
        let (code, meaning) = row.trim().split_at(9);
        let line = format!("| {} | {} |", code.trim(), meaning.trim());
        assert!(docs.contains(&line), "docs/scripts.md has no line {line}");
        count += 1;
    }
    assert_eq!(count, 7);
}

const VERBS: [&str; 16] = [
    "run",
    "record",
    "inject",
    "export",
    "dump",
    "check",
    "ctl",
    "debug",
    "callgrind",
    "memcheck",
    "massif",
    "dhat",
    "cachegrind",
    "demo",
    "completions",
    "man",
];

#[test]
fn every_verb_has_the_same_colours() {
    let bench = Bench::new();
    let coloured = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = bench.command(BIN);
        command.env_remove("NO_COLOR").env_remove("CLICOLOR").env_remove("CLICOLOR_FORCE");
        command.args(words).envs(variables.iter().copied());
        let done = finish(command);
        (done.code, (done.stderr + &done.stdout).contains("\x1b["))
    };
    let forced = ("CLICOLOR_FORCE", "1");
    for verb in VERBS {
        let with = |color: &str, variables: &[(&str, &str)]| {
            let refused = coloured(&[verb, "--no-such-option", color], variables);
            let help = coloured(&[color, verb, "--help"], variables);
            assert_eq!((refused.0, help.0), (2, 0), "{verb} {color}");
            assert_eq!(refused.1, help.1, "{verb} {color}");
            help.1
        };
        assert!(with("--color=always", &[]), "{verb}");
        assert!(with("--color=always", &[("NO_COLOR", "1")]), "{verb}");
        assert!(with("--color=auto", &[forced]), "{verb}");
        assert!(!with("--color=auto", &[]), "{verb}");
        assert!(!with("--color=auto", &[forced, ("NO_COLOR", "1")]), "{verb}");
        assert!(!with("--color=never", &[forced]), "{verb}");
    }
    // Messages of our own: an error, and a warning.
    let missing = ["inject", "-i", "none"];
    assert!(!coloured(&missing, &[]).1);
    assert!(coloured(&missing, &[forced]).1);
    assert!(coloured(&["--color", "always", "inject", "-i", "none"], &[]).1);
}

#[test]
fn every_verb_can_be_quiet_or_verbose() {
    let bench = Bench::new();
    for verb in VERBS {
        for option in ["-q", "--quiet", "-v", "--verbose", "-vv"] {
            for words in [[option, verb, "--help"], [verb, option, "--help"]] {
                let mut command = bench.command(BIN);
                command.args(words);
                assert_eq!(finish(command).code, 0, "{words:?}");
            }
        }
    }
    if !have(&[Privilege::Perf]) {
        return;
    }
    let quiet = record_node(&bench, "quiet", &["-q"]);
    // An earlier process with node's id may have left a map in `/tmp`.
    let is_own = |line: &&str| !line.contains("an earlier process with this id wrote it");
    assert_eq!(quiet.stderr.lines().find(is_own), None);
    let loud = record_node(&bench, "loud", &["--force", "--verbose"]);
    assert!(loud.stderr.contains("jitscribe: running: perf record -k mono"), "{}", loud.stderr);
    assert!(loud.stderr.contains(" codes of process "), "{}", loud.stderr);
    assert!(loud.stderr.contains("next: jitscribe report"), "{}", loud.stderr);
    // Warnings and errors are printed, and options of the command are its own.
    let refused = bench.record(&["-q", "-f", "--", "echo", "-v", "-q"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (3, "-v -q\n"));
    assert!(refused.stderr.contains("error: nothing was named"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("samples,"), "{}", refused.stderr);
}

/// The fields of an object, sorted.
fn fields(value: &serde_json::Value) -> Vec<&str> {
    let mut fields: Vec<&str> =
        value.as_object().expect("an object").keys().map(String::as_str).collect();
    fields.sort_unstable();
    fields
}

#[test]
fn the_json_reports_have_the_documented_fields() {
    if !have(&[Privilege::Perf]) {
        return;
    }
    let bench = Bench::new();
    let done = record_node(&bench, "spin", &["--json", "--keep-raw"]);
    let record: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
    let raw = "perf.data.raw/perf.data";
    let words = ["inject", "-i", raw, "-o", "out.data", "--json", "--aux-dir", "."];
    let done = bench.ask(&words);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let inject: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!((&record["verb"], &inject["verb"]), (&"record".into(), &"inject".into()));
    assert_eq!(record["schema_version"], 1);

    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/scripts.md");
    let docs = fs::read_to_string(docs).expect("the documentation");
    let documented = |heading: &str| {
        let section = docs.split(&format!("### {heading}\n")).nth(1).expect("a section");
        let section = section.split("\n### ").next().unwrap_or_default();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let mut fields: Vec<&str> = rows.map(|(field, _)| field).collect();
        fields.sort_unstable();
        fields
    };
    let with = |own: &[&'static str]| {
        let mut all = documented("The report");
        all.extend(own);
        all.sort_unstable();
        all
    };
    assert_eq!(fields(&record), with(&["child", "raw", "left"]));
    assert_eq!(documented("Only `record`"), ["child", "left", "raw"]);
    assert_eq!(fields(&inject), with(&[]));
    assert_eq!(fields(&record["child"]), documented("`child`"));
    for report in [&record, &inject] {
        assert_eq!(fields(&report["samples"]), documented("`samples`"));
        assert_eq!(fields(&report["activities"]), documented("`activities`"));
        assert_eq!(fields(&report["top"][0]), documented("Each of `top`"));
        assert_eq!(fields(&report["sources"][0]), documented("Each of `sources`"));
        assert_eq!(fields(&report["images"][0]), documented("Each of `images`"));
    }
    assert_eq!(fields(&record["top"][0]["tiers"][0]), ["samples", "tier"]);
    assert_eq!(record["raw"], record["input"]);
    assert!(record["left"].is_array(), "{record}");
    assert_eq!(record["stacks"]["recorded"], "walked", "{record}");
}
