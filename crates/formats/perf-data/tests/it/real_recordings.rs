//! Copies of recordings that `perf record` makes here must look the same to perf.
//!
//! Only the software events are used, which any virtual machine has.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::events;
use perf_data::{End, Input, Record, Writer};
use test_privilege::{Privilege, have};

/// A process that runs for some milliseconds, forks, execs and maps files.
const WORK: &str =
    "ls -R /usr/include/linux >/dev/null & i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; wait";

fn perf(home: &Path) -> Command {
    let mut command = Command::new("perf");
    command.env("HOME", home).env("PERF_CONFIG", "/dev/null").stdin(Stdio::null());
    command
}

/// Records [`WORK`]; `-` in place of the output file makes a pipe.
fn record(home: &Path, options: &[&str], pipe: bool) -> PathBuf {
    let out = home.join("in.data");
    let mut command = perf(home);
    command.args(["record", "-q", "-N", "-o"]);
    command.arg(if pipe { Path::new("-") } else { &out });
    command.args(options).args(["--", "sh", "-c", WORK]);
    if pipe {
        command.stdout(File::create(&out).unwrap());
    }
    let output = command.output().expect("perf is missing: run scripts/setup.sh");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    out
}

/// What a perf command prints, without the lines with time and place, and without tips.
fn shown(home: &Path, verb: &[&str], data: &Path) -> Vec<String> {
    const ABOUT_THE_FILE: [&str; 9] = [
        "# captured on",
        "# header version",
        "# data offset",
        "# data size",
        "# feat offset",
        "# (Tip:",
        // Properties that the copy no longer has, and the list of absent features that mentions them.
        "# compressed :",
        "# directory data version",
        "# missing features",
    ];
    let output = perf(home).args(verb).arg("-i").arg(data).output().expect("perf runs");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let lines = text
        .lines()
        .filter(|line| !ABOUT_THE_FILE.iter().any(|start| line.starts_with(start)))
        // For an ordinary user, perf makes this of an event whose name only a file has, and aligns all by the longest name.
        .map(|line| line.replace(":uH", ":u").split_whitespace().collect::<Vec<_>>().join(" "));
    let mut lines: Vec<String> = lines.collect();
    if verb == REPORT_OF_CHAINS {
        lines.sort_unstable();
    }
    lines
}

const SCRIPT: &[&str] = &["script", "--no-inline", "--show-task-events", "--show-mmap-events"];
/// Without the children's share: reading a pipe, perf learns too late that there are call chains.
const REPORT: &[&str] = &["report", "--stdio", "--no-inline", "--no-children"];
/// One line for each chain, which are sorted: the order of those with the same share changes from run to run, and with it the drawing of a tree.
const REPORT_OF_CHAINS: &[&str] =
    &["report", "--stdio", "--no-inline", "--no-children", "-g", "folded"];
/// For system-wide recordings, where looking up the symbols of other processes may take minutes. (Call chains would
/// bring them back, because perf fixes the fields too early when it reads a pipe.)
const SCRIPT_OF_ALL: &[&str] =
    &["script", "--show-task-events", "--show-mmap-events", "-F", "comm,pid,tid,time,event,ip,dso"];
const REPORT_OF_ALL: &[&str] =
    &["report", "--stdio", "--no-children", "-g", "none", "-s", "comm,dso"];
const ATTRIBUTES: &[&str] = &["evlist", "-v"];
const HEADER: &[&str] = &["report", "--header-only"];
const BUILD_IDS: &[&str] = &["buildid-list"];

/// Copies a recording to a file or a pipe. Returns how many samples it has, and how it ends.
fn copy(from: &Path, to: &Path, as_pipe: bool) -> (usize, End) {
    let mut input = Input::open(from).unwrap();
    let out = File::create(to).unwrap();
    let mut writer =
        if as_pipe { Writer::pipe(out, &input) } else { Writer::file(out, &input).unwrap() };
    let mut samples = 0;
    while let Some(event) = input.next_event().unwrap() {
        samples += usize::from(matches!(event.record().unwrap(), Record::Sample(_)));
        writer.write_event(&event).unwrap();
    }
    writer.finish().unwrap();
    (samples, input.end())
}

/// Copies a recording that is whole, and has samples.
fn copy_all(from: &Path, to: &Path, as_pipe: bool) {
    let (samples, end) = copy(from, to, as_pipe);
    assert!(samples > 10, "{samples} samples");
    assert_eq!(end, End::Complete);
}

/// A copy as a file looks the same with every command, and as a pipe has the same samples.
fn copies_look_the_same(options: &[&str]) {
    let all = options.contains(&"-a");
    if !have(&[if all { Privilege::PerfOfAll } else { Privilege::Perf }]) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (original, out, pipe) = (record(home, options, false), home.join("out"), home.join("pipe"));
    copy_all(&original, &out, false);
    let has_chains = options.iter().any(|option| ["-g", "--call-graph"].contains(option));
    let [script, report] = match all {
        true => [SCRIPT_OF_ALL, REPORT_OF_ALL],
        false if has_chains => [SCRIPT, REPORT_OF_CHAINS],
        false => [SCRIPT, REPORT],
    };
    for verb in [script, report, ATTRIBUTES, HEADER, BUILD_IDS] {
        let expected = shown(home, verb, &original);
        assert!(!expected.is_empty(), "{verb:?}: {expected:?}");
        assert_eq!(shown(home, verb, &out), expected, "{options:?} {verb:?}");
    }
    copy_all(&original, &pipe, true);
    for verb in [script, report] {
        assert_eq!(
            shown(home, verb, &pipe),
            shown(home, verb, &original),
            "{options:?} pipe: {verb:?}"
        );
    }
    // And back: what a file has in sections, a pipe has in events.
    copy_all(&pipe, &out, false);
    for verb in [script, report, ATTRIBUTES] {
        assert_eq!(
            shown(home, verb, &out),
            shown(home, verb, &original),
            "{options:?} back: {verb:?}"
        );
    }
}

#[test]
fn copies_of_files_look_the_same() {
    for options in [
        &["-e", "cpu-clock"][..],
        &["-e", "cpu-clock,task-clock,page-faults"],
        &["-e", "{cpu-clock,page-faults}:S", "-g"],
        &["-g", "-e", "cpu-clock"],
        &["-d", "--call-graph", "dwarf,4096", "-e", "cpu-clock"],
        &["-k", "mono", "-e", "cpu-clock"],
        &["--buildid-mmap", "-e", "cpu-clock"],
    ] {
        copies_look_the_same(options);
    }
}

#[test]
fn copies_of_compressed_files_and_directories_look_the_same() {
    for options in [
        &["-z", "-g", "-F", "5000", "-e", "cpu-clock"][..],
        &["--threads", "-g", "-F", "5000", "-e", "cpu-clock"],
        &["--threads", "-z", "-g", "-F", "5000", "-e", "cpu-clock,page-faults"],
    ] {
        copies_look_the_same(options);
    }
}

#[test]
fn copies_of_system_wide_recordings_look_the_same() {
    copies_look_the_same(&["-a", "-e", "cpu-clock"]);
}

/// A pipe's copies as a pipe and as a file.
#[test]
fn pipe_and_compressed_pipe() {
    if !have(&[Privilege::Perf]) {
        return;
    }
    for options in
        [&["-g", "-e", "cpu-clock,page-faults"][..], &["-z", "-F", "5000", "-e", "cpu-clock"]]
    {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let (original, out, pipe) =
            (record(home, options, true), home.join("out"), home.join("pipe"));
        copy_all(&original, &out, false);
        copy_all(&original, &pipe, true);
        for verb in [SCRIPT, REPORT, ATTRIBUTES] {
            let expected = shown(home, verb, &original);
            assert!(!expected.is_empty(), "{verb:?}: {expected:?}");
            assert_eq!(shown(home, verb, &out), expected, "{options:?} {verb:?}");
            assert_eq!(shown(home, verb, &pipe), expected, "{options:?} {verb:?} as a pipe");
        }
        // A file's header is shown framed and at once, a pipe's as it comes.
        let header = |data| {
            let mut lines = shown(home, HEADER, data);
            lines.retain(|line| line.len() > 3 && line != "# ========");
            lines.sort();
            lines
        };
        assert_eq!(header(&out), header(&original));
    }
}

/// The same through a real pipe, which cannot be read twice.
#[test]
fn standard_input() {
    if !have(&[Privilege::Perf]) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let original = record(home.path(), &["-e", "cpu-clock"], true);
    let (read, mut write) = std::io::pipe().unwrap();
    let bytes = fs::read(&original).unwrap();
    let expected = Input::open(&original).unwrap();
    let feeder = std::thread::spawn(move || std::io::Write::write_all(&mut write, &bytes).unwrap());
    let mut input = Input::from_file(File::from(std::os::fd::OwnedFd::from(read))).unwrap();
    feeder.join().unwrap();
    assert_eq!(input.attrs().list(), expected.attrs().list());
    assert_eq!(input.features(), expected.features());
    let first = events(&mut input).0.len();
    input.restart();
    assert_eq!(events(&mut input).0.len(), first);
    assert!(first > 10);
}

/// The recorder is killed: no data size, no features.
#[test]
fn killed_recorder() {
    if !have(&[Privilege::Perf]) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let original = record(home, &["-e", "cpu-clock,page-faults"], false);
    let mut bytes = fs::read(&original).unwrap();
    let data_at = u64::from_le_bytes(bytes[40..48].try_into().unwrap());
    let data_size = u64::from_le_bytes(bytes[48..56].try_into().unwrap());
    bytes[48..56].fill(0);
    bytes.truncate((data_at + data_size) as usize);
    let killed = home.join("killed");
    fs::write(&killed, bytes).unwrap();
    let out = home.join("out");
    let (_, end) = copy(&killed, &out, false);
    assert_eq!(end, End::CutOff { file: 0, offset: data_at + data_size });
    let fields = ["script", "-F", "comm,pid,tid,event,time,ip,sym,symoff,dso"];
    let samples = shown(home, &fields, &out);
    assert!(samples.len() > 10);
    assert_eq!(samples, shown(home, &fields, &original));
}
