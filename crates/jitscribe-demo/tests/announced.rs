//! What a run writes, read back by the readers of the formats, is the truth.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use jitdump::{CodeEvent, Dump, End};
use jitscribe_demo::{CodeLine, CodeVersion, Error, MemoryKind, Options, Pace, Report, run};

/// Few calls, everything written into `dir`.
fn options(dir: &Path) -> Options {
    Options {
        pace: Pace::Calls(1),
        dump_dir: Some(dir.to_owned()),
        perf_map_dir: Some(dir.to_owned()),
        source_dir: Some(dir.to_owned()),
        truth: Some(dir.join("truth.json")),
        ..Options::default()
    }
}

fn truth(dir: &Path) -> Vec<CodeVersion> {
    let text = fs::read_to_string(dir.join("truth.json")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The dump as versions, without what a dump cannot say.
fn versions_of_dump(bytes: &[u8], like: &[CodeVersion]) -> Vec<CodeVersion> {
    let dump = Dump::parse(bytes).unwrap();
    let mut versions: Vec<CodeVersion> = Vec::new();
    let mut codes = dump.codes();
    for event in &mut codes {
        match event.unwrap() {
            CodeEvent::Load(code) => {
                let (tier, name) = str::from_utf8(code.name).unwrap().split_once("::").unwrap();
                let unwind = code.unwind().unwrap();
                assert_eq!(
                    unwind.mapped_size,
                    (unwind.eh_frame.len() + unwind.eh_frame_hdr.len()) as u64
                );
                let files: BTreeSet<&[u8]> = code.lines().map(|line| line.file).collect();
                assert_eq!(files.len(), 1);
                versions.push(CodeVersion {
                    name: name.into(),
                    symbol: format!("{tier}::{name}"),
                    tier: serde_json::from_value(tier.into()).unwrap(),
                    code_index: code.index,
                    address: code.address,
                    size: code.size,
                    unwind_size: unwind.mapped_size,
                    loaded: code.timestamp,
                    died: None,
                    moved_from: None,
                    frame_pointer: like[0].frame_pointer,
                    file: String::from_utf8(files.first().unwrap().to_vec()).unwrap(),
                    lines: code
                        .lines()
                        .map(|line| CodeLine {
                            address: line.address,
                            line: line.line,
                            column: line.column,
                        })
                        .collect(),
                    bytes: code.bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
                });
            }
            CodeEvent::Move(moved) => {
                let old = versions.iter().rfind(|version| version.code_index == moved.index);
                let mut new = old.unwrap().clone();
                assert_eq!((new.address, new.size), (moved.old_address, moved.size));
                for line in &mut new.lines {
                    line.address = line.address - moved.old_address + moved.new_address;
                }
                new.address = moved.new_address;
                new.loaded = moved.timestamp;
                new.moved_from = Some(moved.old_address);
                versions.push(new);
            }
            CodeEvent::Close { .. } => {}
        }
    }
    assert!(matches!(codes.end(), Some(End::Complete { .. })), "{:?}", codes.end());
    versions
}

fn check(report: &Report, dir: &Path) {
    let mut truth = truth(dir);
    assert_eq!(truth, report.versions);
    for version in &mut truth {
        version.died = None;
    }
    let dump = report.dump.as_ref().unwrap();
    let bytes = fs::read(dump).unwrap();
    assert_eq!(versions_of_dump(&bytes, &truth), truth);
    // A shorter code in a longer one's place covers part of it, and rightly so.
    let mut findings = jitdump::check::check(&bytes).findings;
    findings.retain(|finding| finding.rule != "partial-overlap");
    assert_eq!(findings, []);
    let name = format!("jit-{}.dump", std::process::id());
    assert_eq!(dump.file_name().unwrap(), name.as_str());
    assert_eq!(fs::metadata(dump).unwrap().permissions().mode() & 0o777, 0o600);

    let map = fs::read(report.perf_map.as_ref().unwrap()).unwrap();
    let entries: Vec<_> = perf_map::entries(&map)
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.address, entry.size, String::from_utf8(entry.name.to_vec()).unwrap()))
        .collect();
    let expected: Vec<_> = truth
        .iter()
        .map(|version| (version.address, version.size, version.symbol.clone()))
        .collect();
    assert_eq!(entries, expected);
}

#[test]
fn dump_and_perf_map_say_what_the_truth_says() {
    for frame_pointers in [true, false] {
        for memory in [MemoryKind::Anonymous, MemoryKind::Memfd] {
            let dir = tempfile::tempdir().unwrap();
            let report = run(&Options { frame_pointers, memory, ..options(dir.path()) }).unwrap();
            check(&report, dir.path());
            assert_eq!((report.loads, report.moves), (10, 1));
        }
    }
}

#[test]
fn the_demo_has_every_kind_of_event() {
    let dir = tempfile::tempdir().unwrap();
    let report = run(&options(dir.path())).unwrap();
    let of = |name: &str| -> Vec<&CodeVersion> {
        report.versions.iter().filter(|version| version.name == name).collect()
    };
    let [first, second, third] = of("collatz")[..] else { panic!("collatz is compiled thrice") };
    assert_eq!((first.address, second.address), (second.address, third.address));
    let symbols = [first, second, third].map(|version| version.symbol.as_str());
    assert_eq!(symbols, ["baseline::collatz", "speed::collatz", "compact::collatz"]);
    assert_ne!(first.bytes, second.bytes);
    let [before, after] = of("fib")[..] else { panic!("fib is moved once") };
    assert_eq!(after.moved_from, Some(before.address));
    assert_eq!(after.bytes, before.bytes);
    let (freed, next) = (of("warm_up")[0], of("cool_down")[0]);
    assert_eq!(freed.address, next.address);
    assert!(freed.died.unwrap() < next.loaded);

    let source = fs::read_to_string(report.source.unwrap()).unwrap();
    for version in &report.versions {
        assert_eq!(version.lines[0].address, version.address);
        assert!(version.lines.is_sorted_by(|a, b| a.address < b.address));
        let first = version.lines[0];
        let text = source.lines().nth(first.line as usize - 1).unwrap();
        assert!(text[first.column as usize - 1..].starts_with(&version.name), "{text}");
    }
    let values: Vec<Vec<i64>> = report
        .phases
        .iter()
        .map(|phase| phase.calls.iter().map(|called| called.value).collect())
        .collect();
    let same = [10946, 118, 6_444_646_913_788_741_210, 948];
    for (phase, last) in values.iter().zip([4152, 4152, 4152, 111_127_776_111, 111_127_776_111]) {
        assert_eq!(*phase, [&same[..], &[last]].concat());
    }
}

#[test]
fn many_functions_are_announced_each() {
    let dir = tempfile::tempdir().unwrap();
    let report = run(&Options { many: Some(500), ..options(dir.path()) }).unwrap();
    check(&report, dir.path());
    assert_eq!(report.loads, 500);
    let addresses: BTreeSet<u64> = report.versions.iter().map(|version| version.address).collect();
    assert_eq!(addresses.len(), 500);
    for (number, called) in (0..).zip(&report.phases[0].calls) {
        let n = 1_i64 << 40;
        let value = ((n * number) ^ (n >> (number % 63 + 1))) + number % 1000;
        assert_eq!((called.function.as_str(), called.value), (&*format!("many_{number}"), value));
    }
}

#[test]
fn files_of_others_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "kept").unwrap();
    let taken = dir.path().join(format!("jit-{}.dump", std::process::id()));
    std::os::unix::fs::symlink(&victim, &taken).unwrap();
    let error = run(&options(dir.path())).unwrap_err();
    assert!(matches!(&error, Error::File { path, .. } if *path == taken), "{error}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
}
