//! Code in files that are gone from their paths while it runs. The same library, left in place, is the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use end_to_end::jitscribe::jitscribe;
use end_to_end::live::workload;
use end_to_end::perf::Perf;
use end_to_end::record::{Record, Recorded};
use end_to_end::running::Running;
use end_to_end::tool::{argument, run, tool};
use serde_json::Value;
use tempfile::TempDir;
use test_privilege::needs;

const EXPORTED: &str = "gone_exported";
const INNER: &str = "gone_inner";
const OPTIONS: [&str; 3] = ["-F", "999", "--call-graph=none"];
/// Where a test without privileges runs as another user.
const NOBODY: u32 = 65_534;

/// The loader, the library, and another one that takes its place.
struct Programs(TempDir);

impl Programs {
    fn build() -> Self {
        let programs = Self(tempfile::tempdir().expect("a folder"));
        let library = workload("gone/library.c");
        for (name, options) in [("library.so", &[][..]), ("other.so", &["-DOTHER"])] {
            let mut compile = tool("cc");
            compile.args(["-g", "-O2", "-fPIC", "-shared", "-Wl,--build-id"]).args(options);
            run(compile.arg(&library).arg("-o").arg(programs.path(name)));
        }
        let mut compile = tool("cc");
        compile.args(["-O2"]).arg(workload("gone/loader.c")).arg("-o");
        run(compile.arg(programs.path("loader")).arg("-ldl"));
        programs
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The command that runs the library for so many seconds of processor time.
    fn words(&self, how: &str, seconds: &str) -> Vec<String> {
        let path = |name| argument(self.path(name));
        vec![
            path("loader"),
            how.to_owned(),
            path("library.so"),
            path("other.so"),
            seconds.to_owned(),
        ]
    }
}

/// The share of samples of each function, in percent, and the lines that are sampled, as perf reads them.
fn sampled(data: &Path) -> (BTreeMap<String, f64>, BTreeSet<String>) {
    let samples = Perf::installed().samples_with_lines(data);
    assert!(samples.len() > 100, "{}", samples.len());
    let mut shares = BTreeMap::new();
    let mut lines = BTreeSet::new();
    for sample in &samples {
        let name = sample.name().unwrap_or("[unknown]").to_owned();
        *shares.entry(name).or_insert(0.0) += 100.0 / samples.len() as f64;
        lines.extend(sample.srcline.clone().filter(|line| line.contains("library.c")));
    }
    (shares, lines)
}

/// The functions with more than a tenth of the samples, as `jitscribe report` lists them.
fn top(data: &Path) -> BTreeSet<String> {
    let mut report = jitscribe();
    report.args(["report", "--stdio", "--json", "-i"]).arg(data);
    let report = end_to_end::jitscribe::json(&mut report);
    let number = |value: &Value| value.as_u64().expect("a number");
    let samples = number(&report["top"]["samples"]);
    let functions = report["top"]["functions"].as_array().expect("functions").iter();
    let functions = functions.filter(|it| number(&it["samples"]) * 10 > samples);
    functions.map(|it| it["name"].as_str().expect("text").to_owned()).collect()
}

/// Compares a recording with that of the library in place: names and lines.
fn check(recorded: &Recorded, truth: &Recorded, how: &str) {
    let (known, lines) = sampled(&truth.data());
    let (shares, own_lines) = sampled(&recorded.data());
    let share = |shares: &BTreeMap<String, f64>, name| shares.get(name).copied().unwrap_or(0.0);
    for name in [EXPORTED, INNER] {
        let (share, known) = (share(&shares, name), share(&known, name));
        assert!((share - known).abs() < 15.0 && known > 20.0, "{how}: {name} {share} {known}");
    }
    // Of a busy loop, each line has many samples.
    assert!(lines.intersection(&own_lines).count() >= 2, "{how}: {lines:?} {own_lines:?}");
    let names = [EXPORTED, INNER].map(str::to_owned);
    assert_eq!(top(&recorded.data()), BTreeSet::from(names), "{how}");
    let mut annotate = jitscribe();
    annotate.args(["annotate", "-i"]).arg(recorded.data()).args(["--", INNER]);
    let annotated = run(&mut annotate).stdout;
    assert!(annotated.contains("6364136223846793005ULL"), "{how}: {annotated}");
}

/// Whether other processes' files can be opened by their mappings.
fn may_open_mappings() -> bool {
    let mapped = fs::read_dir("/proc/self/map_files").ok().and_then(|mut all| all.next());
    mapped.is_some_and(|one| one.is_ok_and(|one| fs::File::open(one.path()).is_ok()))
}

#[test]
fn deleted_replaced_and_in_memory() {
    needs!(Perf);
    needs!(Trace);
    let programs = Programs::build();
    let record = |how| Record::new(&OPTIONS).program(&programs.words(how, "0.6"));
    let truth = record("stay");
    assert!(!truth.images().join("gone").exists());
    let needs_no_privilege = ["memfd", "end"];
    let others: &[&str] = if may_open_mappings() { &["unlink", "closed", "rename"] } else { &[] };
    for how in needs_no_privilege.iter().chain(others) {
        let recorded = record(how);
        check(&recorded, &truth, how);
        assert!(recorded.said.contains("1 file with recorded code is gone"), "{}", recorded.said);
        assert!(recorded.images().join("gone/0").is_dir(), "{how}");
    }
}

#[test]
fn a_running_process() {
    needs!(Perf);
    needs!(Trace);
    let programs = Programs::build();
    for how in ["unlink", "memfd"] {
        let folder = tempfile::tempdir().expect("a folder");
        let words = programs.words(how, "600");
        let (program, arguments) = words.split_first().expect("a program");
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder.path()).stdout(Stdio::piped());
        let mut running = Running::start(&mut command);
        running.wait_for_line("ready");
        let pid = running.pid().to_string();
        let options = [&OPTIONS[..], &["-p", &pid]].concat();
        let recorded = Record::new(&options).program(&["sleep", "1"]);
        let (shares, _) = sampled(&recorded.data());
        assert!(shares.contains_key(EXPORTED), "{how}: {shares:?}");
        // It is not exported: what is loaded of a file does not name it.
        let is_named = shares.contains_key(INNER);
        assert!(is_named || how != "memfd" && !may_open_mappings(), "{how}: {shares:?}");
    }
}

#[test]
fn stacks_go_through_it() {
    needs!(Perf);
    needs!(Trace);
    let programs = Programs::build();
    let options = ["-F", "499", "--call-graph=dwarf,4096"];
    let recorded = Record::new(&options).program(&programs.words("unlink", "0.5"));
    let stacks = &recorded.report["stacks"];
    let count = |name: &str| stacks[name].as_u64().expect("a number");
    assert!(count("whole") > 50, "{stacks}");
    assert!(count("whole") * 100 >= count("stacks") * 90, "{stacks}");
    let chains = recorded.chains();
    let calls = |chain: &&end_to_end::chains::Chain| {
        let names: Vec<&str> = chain.frames.iter().filter_map(|frame| frame.name()).collect();
        names.contains(&EXPORTED) && names.contains(&"main")
    };
    let through = chains.iter().filter(calls).count();
    assert!(through * 100 >= chains.len() * 90, "{through} of {}", chains.len());
}

#[test]
fn what_is_loaded_is_named_without_privileges() {
    needs!(OtherUsers, Perf, Trace);
    let programs = Programs::build();
    let folder = tempfile::tempdir().expect("a folder");
    for path in [programs.0.path(), folder.path()] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("permissions");
    }
    // The user may not be able to reach the workspace.
    let command = folder.path().join("jitscribe");
    fs::copy(jitscribe().get_program(), &command).expect("a copy");
    let own = folder.path().join("own");
    fs::create_dir(&own).expect("a folder");
    std::os::unix::fs::chown(&own, Some(NOBODY), Some(NOBODY)).expect("an owner");
    let as_other = |words: &[&str]| {
        let mut other = tool("setpriv");
        other.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).args(words);
        other.current_dir(&own).env("HOME", &own);
        other
    };
    for how in ["unlink", "end", "memfd"] {
        let words = programs.words(how, "0.6");
        let command = argument(&command);
        let mut record = as_other(&[&command, "record", "-f", "-o", "it.data"]);
        run(record.args(OPTIONS).arg("--").args(&words));
        let kept = own.join("it.data.jit/gone/0");
        assert_eq!(fs::read_dir(&kept).expect("a folder").count(), 1, "{how}");
        let report = run(&mut as_other(&[&command, "report", "--stdio", "-i", "it.data"])).stdout;
        assert!(report.contains(EXPORTED), "{how}: {report}");
        assert_eq!(report.contains(INNER), how != "unlink", "{how}: {report}");
    }
}

#[test]
fn no_code_has_the_names_of_the_file_that_replaced_it() {
    needs!(Perf, Kernel);
    let programs = Programs::build();
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("perf.data");
    let perf = Perf::installed();
    let mut record = perf.command();
    record.current_dir(folder.path()).args(["record", "-F", "999", "-e", "cpu-clock:u", "-o"]);
    run(record.arg(&data).arg("--").args(programs.words("rename", "0.5")));
    let report = run(jitscribe().args(["report", "--stdio", "-i"]).arg(&data)).stdout;
    assert!(report.contains("[loaded.so]"), "{report}");
    for name in ["other_", INNER, EXPORTED] {
        assert!(!report.contains(name), "{report}");
    }
}

#[test]
fn earlier_recordings_take_their_files_with_them() {
    needs!(Perf);
    needs!(Trace);
    let programs = Programs::build();
    let folder = tempfile::tempdir().expect("a folder");
    let images = |number: &str| folder.path().join(format!("it.data.jit{number}"));
    let record = || {
        let mut record = jitscribe();
        record.current_dir(folder.path()).args(["record", "-o", "it.data"]).args(OPTIONS);
        run(record.arg("--").args(programs.words("memfd", "0.5")));
    };
    record();
    assert!(images("").join("gone/0/code").exists());
    record();
    assert!(images("").exists() && images(".2").join("gone/0/code").exists());
    // FILE.old, which the first folder belongs to, is replaced.
    record();
    record();
    let count = fs::read_dir(folder.path()).expect("a folder").flatten();
    let count = count.filter(|entry| entry.file_name().to_string_lossy().contains(".jit")).count();
    assert_eq!(count, 2);
}
