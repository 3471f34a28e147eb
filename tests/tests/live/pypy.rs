//! PyPy, whose log is neither a jitdump nor a perf map: every reader takes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use end_to_end::jitscribe::jitscribe;
use end_to_end::live::workload;
use end_to_end::record::Record;
use end_to_end::running::Running;
use end_to_end::runtimes::script;
use end_to_end::tool::{run, tool};

/// The functions of the workload, and their lines.
fn functions() -> BTreeMap<&'static str, std::ops::RangeInclusive<u64>> {
    let text = fs::read_to_string(workload("traces.py")).expect("the workload");
    let begins = |name: &str| {
        let found =
            text.lines().zip(1..).find(|(line, _)| line.starts_with(&format!("def {name}(")));
        found.map(|(_, line)| line).expect("a function")
    };
    let of = |name, next: &str| (name, begins(name)..=begins(next));
    let last =
        text.lines().zip(1..).find(|(line, _)| line.starts_with("print(")).expect("a call").1;
    [of("leaf", "loop"), of("loop", "fib"), of("fib", "work"), ("work", begins("work")..=last)]
        .into()
}

#[test]
fn record_and_report_name_loops_and_bridges_with_their_lines() {
    let recorded = Record::new(&["-F", "999"]).program(&["pypy3", &script("traces.py")]);
    let samples = &recorded.report["samples"];
    let count = |name: &str| samples[name].as_u64().expect("a number");
    assert!(count("named") > 100, "{samples}");
    assert!(count("named") > count("unnamed") * 30, "{samples}");
    assert!(count("with_lines") * 100 >= count("named") * 97, "{samples}");
    // Whatever is sampled in an image is in one of the script's functions, on one of its lines.
    let functions = functions();
    let data = recorded.data();
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    for sample in recorded.samples().iter().filter(|sample| sample.dso.contains(".jit/")) {
        *named.entry(sample.name().unwrap_or_default().to_owned()).or_default() += 1;
    }
    for function in ["loop", "fib"] {
        assert!(named.contains_key(function), "{named:?}");
    }
    let known: usize = functions.keys().filter_map(|name| named.get(*name)).sum();
    let all: usize = named.values().sum();
    assert!(known * 100 >= all * 97, "{named:?}");
    let mut shown = tool("perf");
    shown.args(["script", "-F", "ip,sym,srcline", "-i"]).arg(&data).current_dir(recorded.folder());
    let shown = run(&mut shown).stdout;
    let lines = shown.lines().filter_map(|line| line.trim().strip_prefix("traces.py:"));
    let lines: Vec<u64> = lines.map(|line| line.parse().expect("a line")).collect();
    assert!(lines.len() > 100, "{shown}");
    let outside = lines.iter().filter(|line| !functions.values().any(|lines| lines.contains(line)));
    assert_eq!(outside.count(), 0, "{lines:?}");
}

/// `report`'s counts are those of the summary.
#[test]
fn callgrind_attributes_instructions_to_the_functions() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut record = jitscribe();
    record.args(["record", "--tool=callgrind", "--", "pypy3", "-c"]).current_dir(folder.path());
    let text = fs::read_to_string(workload("traces.py")).expect("the workload");
    record.arg(
        text.replace("print(work(200", "print(work(9").replace("print(work(2000", "print(work(9"),
    );
    let said = run(&mut record).stderr;
    let files =
        fs::read_dir(folder.path()).expect("files").map(|file| file.expect("a file").path());
    let is_profile = |path: &Path| path.to_string_lossy().contains("callgrind.out.");
    let profile =
        files.into_iter().find(|path| is_profile(path)).unwrap_or_else(|| panic!("{said}"));
    let shown = run(tool("callgrind_annotate").arg("--threshold=100").arg(&profile)).stdout;
    for function in [":loop", ":fib"] {
        assert!(shown.contains(function), "{shown}\n{said}");
    }
}

/// A process that was not prepared for it: its log, which it has open, is found.
#[test]
fn debuggers_and_listings_find_the_log_that_a_process_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = tool("pypy3");
    command.arg(workload("traces.py")).arg("goes on").stdout(Stdio::piped());
    command.env("PYPYLOG", format!("jit-backend-addr,jit-log-opt:{}/%d", folder.path().display()));
    let mut process = Running::start(&mut command);
    process.wait_for_line("warm");
    let pid = process.pid().to_string();

    let listed = run(jitscribe().arg("dump").arg(folder.path().join(&pid))).stdout;
    let names: Vec<&str> =
        listed.lines().filter_map(|line| line.split_whitespace().nth(6)).collect();
    assert!(names.contains(&"loop") && names.contains(&"fib"), "{listed}");

    // Most of the time, it is in jitted code.
    let script = folder.path().join("script");
    fs::write(&script, "set width 0\nbacktrace 3\ninfo line *$pc\n").expect("a file");
    let mut found = String::new();
    for _ in 0..20 {
        let mut debug = jitscribe();
        debug.args([
            "debug", "--arg", "-q", "--arg", "-nx", "--arg", "-batch", "--arg", "-x", "--arg",
        ]);
        debug.arg(&script).args(["-p", &pid]).stdin(Stdio::null());
        debug.env_remove("DEBUGINFOD_URLS");
        found = run(&mut debug).stdout;
        // Not that of a caller.
        let mut frames = found.lines().filter(|line| line.starts_with("#0 "));
        if frames.any(|frame| frame.contains("traces.py:")) {
            break;
        }
    }
    let frame = found.lines().find(|line| line.starts_with("#0 ")).expect("a frame");
    let (_, line) = frame.rsplit_once("traces.py:").unwrap_or_else(|| panic!("{found}"));
    let line: u64 = line.trim().parse().expect("a line");
    let functions = functions();
    let name = functions.keys().find(|name| frame.contains(&format!(" {name} (")));
    let name = name.unwrap_or_else(|| panic!("{frame}"));
    assert!(functions[name].contains(&line), "{frame}");
    drop(process);
}
