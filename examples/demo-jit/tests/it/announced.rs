//! What a run writes, read back by the readers of the formats, is the truth.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use demo_jit::{CodeVersion, InlinedInto, MemoryKind, Options, Pace, Report, run};
use jitdump::extension::InlinedCall;
use jitdump::{CodeEvent, CodeLoad, Dump};

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

/// The codes of a dump.
fn codes(bytes: &[u8]) -> Vec<CodeLoad<'_>> {
    let codes = Dump::parse(bytes).unwrap().codes();
    codes
        .map(|event| match event.unwrap() {
            CodeEvent::Load(code) => code,
            other => panic!("the library writes no {other:?}"),
        })
        .collect()
}

/// A dump says what the truth says, the times within what the truth can know.
fn compare(bytes: &[u8], truth: &[CodeVersion]) {
    let codes = codes(bytes);
    assert_eq!(codes.len(), truth.len());
    for (code, version) in codes.iter().zip(truth) {
        let name = str::from_utf8(code.name).unwrap();
        assert_eq!(name, version.symbol);
        assert_eq!((code.address, code.size), (version.address, version.size), "{name}");
        assert_eq!(Some(version.tier.name().as_bytes()), code.tier());
        assert!((version.announcing..=version.loaded).contains(&code.timestamp), "{name}");
        assert_eq!(code.died().is_some(), version.died.is_some(), "{name}");
        assert!(code.died() >= version.died, "{name}");
        let successor = truth
            .iter()
            .find(|next| next.address == version.address && next.announcing > version.announcing);
        if let Some(successor) = successor {
            assert!(code.died().unwrap() <= successor.announcing, "{name}");
        }
        if !code.is_without_bytes() {
            let hex: String = code.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, version.bytes, "{name}");
            assert_eq!(code.unwind().unwrap().mapped_size, version.unwind_size, "{name}");
        }
        assert!(code.lines().all(|line| line.file == version.file.as_bytes()));
        let told = code.lines().map(|line| (line.address, line.line, line.column));
        let mut lines: Vec<(u64, u32, u32)> =
            version.lines.iter().map(|at| (at.address, at.line, at.column)).collect();
        lines.dedup_by_key(|(_, line, column)| (*line, *column));
        assert_eq!(told.collect::<Vec<_>>(), lines, "{name}");
        let calls: Vec<_> = code.inlined().collect();
        for address in code.address..code.end() {
            let row = version.lines.iter().rfind(|row| row.address <= address).unwrap();
            assert_eq!(chain(&calls, address), row.inlined, "{name} at {address:#x}");
        }
    }
}

/// The inlined calls around an address, from the innermost outward.
fn chain(calls: &[InlinedCall<'_>], address: u64) -> Vec<InlinedInto> {
    let covers =
        |call: &&InlinedCall<'_>| call.ranges.clone().any(|range| range.contains(&address));
    let around: Vec<_> = calls.iter().filter(covers).collect();
    // Each but the first was inlined into the one before: there are no two beside one another.
    for pair in around.windows(2) {
        let parent = &calls[pair[1].parent.unwrap() as usize];
        assert!(std::ptr::eq(parent, pair[0]));
    }
    assert!(around.first().is_none_or(|call| call.parent.is_none()));
    let told = |call: &&InlinedCall<'_>| InlinedInto {
        callee: String::from_utf8(call.name.to_vec()).unwrap(),
        line: call.line,
        column: call.column,
    };
    around.iter().rev().map(told).collect()
}

fn check(report: &Report, dir: &Path) {
    let truth = truth(dir);
    assert_eq!(truth, report.versions);
    let dump = report.dump.as_ref().unwrap();
    let bytes = fs::read(dump).unwrap();
    compare(&bytes, &truth);
    // A shorter code in a longer one's place covers part of it, and rightly so.
    let mut findings = jitdump::check::check(&bytes).findings;
    findings.retain(|finding| finding.rule != "partial-overlap");
    assert_eq!(findings, []);
    let name = format!("jit-{}.dump", std::process::id());
    assert_eq!(dump.file_name().unwrap(), name.as_str());
    assert_eq!(fs::metadata(dump).unwrap().permissions().mode() & 0o777, 0o600);

    let map = fs::read(report.perf_map.as_ref().unwrap()).unwrap();
    let mut entries: Vec<_> = perf_map::entries(&map)
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.address, entry.size, String::from_utf8(entry.name.to_vec()).unwrap()))
        .collect();
    for version in truth.iter().filter(|version| version.died.is_none()) {
        let entry = (version.address, version.size, version.symbol.clone());
        assert!(entries.contains(&entry), "{entry:?}");
    }
    entries.retain(|(_, size, _)| *size > 0);
    entries.sort();
    assert!(entries.is_sorted_by(|a, b| a.0 + a.1 <= b.0), "no two lines claim one address");
}

#[test]
fn dump_and_perf_map_say_what_the_truth_says() {
    for frame_pointers in [true, false] {
        for memory in [MemoryKind::Anonymous, MemoryKind::Memfd] {
            let dir = tempfile::tempdir().unwrap();
            let report = run(&Options { frame_pointers, memory, ..options(dir.path()) }).unwrap();
            check(&report, dir.path());
            assert_eq!((report.loads, report.moves), (12, 1));
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
        let first = &version.lines[0];
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
fn what_is_inlined_and_the_second_line_table_lead_to_the_texts() {
    let dir = tempfile::tempdir().unwrap();
    let ir_dir = Some(dir.path().join("ir"));
    let report = run(&Options { ir_dir, ..options(dir.path()) }).unwrap();
    check(&report, dir.path());
    let depth = |name: &str, tier: &str| {
        let found =
            report.versions.iter().find(|version| version.symbol == format!("{tier}::{name}"));
        let lines = found.unwrap().lines.iter();
        lines.map(|line| line.inlined.len()).max()
    };
    assert_eq!(depth("collatz", "baseline"), Some(0));
    assert_eq!(depth("collatz", "speed"), Some(2));
    assert_eq!(depth("collatz", "compact"), Some(2));
    assert_eq!(depth("cool_down", "speed"), Some(1));

    let bytes = fs::read(report.dump.as_ref().unwrap()).unwrap();
    for code in codes(&bytes) {
        let file = dir
            .path()
            .join("ir")
            .join(format!("{}.clif", str::from_utf8(code.name).unwrap().replace("::", "-")));
        let text = fs::read_to_string(&file).unwrap();
        let shown: Vec<&str> = code
            .ir_lines()
            .map(|line| {
                assert_eq!(line.file, file.to_str().unwrap().as_bytes());
                text.lines().nth(line.line as usize - 1).unwrap()
            })
            .collect();
        let has = |operation: &str| shown.iter().any(|line| line.contains(operation));
        assert!(has("return "), "{shown:#?}");
        let calls = code.name.ends_with(b"::longest") || code.name == b"baseline::collatz";
        assert!(!calls || has("call_indirect"), "{shown:#?}");
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
