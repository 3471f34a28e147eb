//! QEMU's user mode: functions and lines of the guest, compared with the guest's symbols and debug information.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use end_to_end::addr2line::inlined_chains;
use end_to_end::jitscribe::jitscribe;
use end_to_end::live::workload;
use end_to_end::perf::Perf;
use end_to_end::record::Record;
use end_to_end::tool::{argument, installed, run, tool};
use tempfile::TempDir;

/// Debian 13's QEMU: that of Debian 12 announces no code.
fn qemu() -> PathBuf {
    installed("qemu/usr/bin/qemu-x86_64")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}

fn compile(dir: &Path, options: &[&str]) -> PathBuf {
    let guest = dir.join("guest");
    run(tool("cc").arg("-o").arg(&guest).args(options).arg(workload("guest.c")));
    guest
}

/// A function of the guest.
#[derive(Default)]
struct Function {
    size: u64,
    /// `qsort_r` is also `__qsort_r`.
    names: Vec<String>,
}

/// The functions of a program, by address.
fn functions(guest: &Path) -> BTreeMap<u64, Function> {
    let printed = run(tool("nm").args(["-S", "--defined-only"]).arg(guest)).stdout;
    let mut functions: BTreeMap<u64, Function> = BTreeMap::new();
    for line in printed.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [start, size, kind, name] = words[..] else { continue };
        // Weak ones too: they are further names.
        if !matches!(kind, "t" | "T" | "w" | "W" | "i") {
            continue;
        }
        let number = |word| u64::from_str_radix(word, 16).expect("a number");
        let function = functions.entry(number(start)).or_default();
        function.size = function.size.max(number(size));
        function.names.push(name.to_owned());
    }
    functions
}

/// The lines of QEMU's perf map: host address → size and guest address. It has a line for each guest instruction.
fn map(path: &Path) -> BTreeMap<u64, (u64, u64)> {
    let text = fs::read_to_string(path).expect("a perf map");
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [host, size, name] = words[..] else { return None };
        let number = |word| u64::from_str_radix(word, 16).ok();
        Some((number(host)?, (number(size)?, number(name.strip_prefix("guest-0x")?)?)))
    };
    text.lines().filter_map(line).filter(|(_, (size, _))| *size > 0).collect()
}

/// Records a guest, and compares what perf shows of its functions. `above` is where the guest's program lies.
fn expect_functions_and_lines(options: &[&str], qemu_options: &[&str], has_lines: bool) {
    let record = Record::new(&["-F", "1999", "--call-graph", "none"]);
    let guest = compile(record.folder(), options);
    let qemu = argument(qemu());
    let program = [&[&*qemu], qemu_options, &[text(&guest)]].concat();
    let recorded = record.program(&program);
    let data = recorded.data();
    let said = &recorded.said;
    let map_file = said.split_whitespace().find(|word| word.starts_with("/tmp/perf-"));
    let map_file = map_file.unwrap_or_else(|| panic!("no map: {said}"));
    let map = map(Path::new(map_file));

    let perf = Perf::installed();
    let mut script = perf.command();
    let script = script.args(["script", "--no-inline", "--show-mmap-events", "-i", text(&data)]);
    let mapped = run(script).stdout;
    // [0x555555556000(0x1000) @ 0 fe:00 1 2]: r--p PATH
    let mapping = mapped.lines().find_map(|line| {
        let of_guest = line.contains("PERF_RECORD_MMAP2") && line.ends_with(text(&guest));
        let (address, rest) = line.split_once(": [0x")?.1.split_once('(')?;
        let offset = rest.split_once("@ ")?.1.split(' ').next()?.trim_start_matches("0x");
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        of_guest.then_some((number(address)?, number(offset)?))
    });
    let (start, offset) = mapping.expect("the recording shows the guest's program");
    assert_eq!(offset, 0);
    // Position independent or not: where the file's beginning is linked to.
    let headers = run(tool("readelf").args(["-lW", text(&guest)])).stdout;
    let load =
        headers.lines().find(|line| line.trim_start().starts_with("LOAD")).expect("a segment");
    let linked = load.split_whitespace().nth(2).expect("an address");
    let linked = u64::from_str_radix(linked.trim_start_matches("0x"), 16).expect("an address");

    let functions = functions(&guest);
    let function_at = |address: u64| {
        let (start, function) = functions.range(..=address).next_back()?;
        (address - start < function.size).then_some(function)
    };
    let samples = perf.samples_in_images(&data, &recorded.images(), recorded.folder());
    let mut in_guest: BTreeMap<&str, u64> = BTreeMap::new();
    let mut expected_lines: Vec<(u64, String)> = Vec::new();
    for sample in &samples {
        let Some((host, (size, at))) = map.range(..=sample.ip).next_back() else { continue };
        if sample.ip - host >= *size {
            continue;
        }
        let address = at.wrapping_sub(start).wrapping_add(linked);
        let Some(function) = function_at(address) else { continue };
        let name =
            sample.name().and_then(|shown| function.names.iter().find(|name| *name == shown));
        let name =
            name.unwrap_or_else(|| panic!("{sample}: guest {address:#x} is {:?}", function.names));
        *in_guest.entry(name).or_default() += 1;
        let line = sample.srcline.clone().unwrap_or_default();
        expected_lines.push((address, line));
    }
    for function in ["inner", "fib", "compare"] {
        assert!(in_guest.get(function).is_some_and(|&count| count > 0), "{function}: {in_guest:?}");
    }
    let addresses: Vec<u64> = expected_lines.iter().map(|(address, _)| *address).collect();
    let chains = inlined_chains(text(&guest), &addresses);
    assert_eq!(chains.len(), expected_lines.len());
    let mut with_lines = 0;
    for ((address, shown), chain) in expected_lines.iter().zip(&chains) {
        let line = chain.first().expect("a function").1;
        if !has_lines || line == 0 {
            assert!(!shown.contains("guest.c:"), "{address:#x}: {shown}");
            continue;
        }
        assert!(
            shown
                .split_whitespace()
                .next()
                .is_some_and(|at| at.ends_with(&format!("guest.c:{line}"))),
            "{address:#x}: {shown}, and addr2line says {line}"
        );
        with_lines += 1;
    }
    assert_eq!(with_lines > 20, has_lines, "{with_lines} of {} samples", samples.len());
    _ = fs::remove_file(map_file);
}

#[test]
fn functions_and_lines_are_those_of_the_guest() {
    for (options, qemu_options, has_lines) in [
        (&["-O1", "-g"][..], &[][..], true),
        (&["-O1", "-g", "-static", "-no-pie"], &[], true),
        // The lines of the map are those of the dump, too.
        (&["-O1", "-g"], &["-jitdump"], true),
        (&["-O1"], &[], false),
    ] {
        expect_functions_and_lines(options, qemu_options, has_lines);
    }
}

/// Without mappings of data, names are guest addresses, and the command says how to record.
#[test]
fn a_recording_without_the_guests_files() {
    let dir = TempDir::with_prefix("jitscribe-qemu-").expect("a folder");
    let guest = compile(dir.path(), &["-O1", "-g"]);
    let (data, out) = (dir.path().join("raw.data"), dir.path().join("out.data"));
    let perf = Perf::installed();
    let mut record = perf.command();
    record.args(["record", "-q", "-N", "-k", "mono", "-o", text(&data), "--", text(&qemu())]);
    record.args(["-jitdump"]);
    run(record.arg(&guest).current_dir(dir.path()));
    let printed = run(jitscribe().args(["inject", "-i", text(&data), "-o", text(&out)]));
    assert!(printed.stderr.contains("record with --data"), "{}", printed.stderr);
    let names = perf.samples(&out);
    let is_address = |name: &str| name.starts_with("guest-0x");
    assert!(names.iter().any(|sample| sample.name().is_some_and(is_address)));
}
