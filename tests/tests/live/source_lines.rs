//! Lines reach the user's sources, and branches their targets.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use end_to_end::jitscribe::inject;
use end_to_end::line_oracle::LineOracle;
use end_to_end::live::{Recorder, Recording, workload};
use end_to_end::runtimes::erl;
use end_to_end::sample::Sample;
use end_to_end::tool::{cache, run, succeeded, tool};

fn text(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}

/// A package of ES modules that were generated from TypeScript.
fn package() -> PathBuf {
    let module = cache().join("marked-15.0.12/lib/marked.esm.js");
    assert!(module.is_file(), "no {}: run scripts/setup.sh test", module.display());
    module
}

fn record_package() -> Recording {
    let (script, package) = (workload("mapped.mjs"), package());
    let program = ["node", "--perf-prof", text(&script), text(&package)];
    Recorder::new().record(&program)
}

/// The samples of an injected recording that are in its images, with lines. No other file is given to addr2line: node's own has a hundred megabytes.
fn samples_with_lines(recording: &Recording, data: &Path) -> Vec<Sample> {
    let tools = recording.dir().join("tools");
    fs::create_dir_all(&tools).expect("a folder");
    let (script, log) = (tools.join("addr2line"), tools.join("log"));
    // Of an earlier call.
    _ = fs::remove_file(&log);
    let content =
        format!("#!/bin/sh\necho \"$*\" >> {}\nexec /usr/bin/addr2line \"$@\"\n", text(&log));
    fs::write(&script, content).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("its permissions");
    let images = images(data);
    let samples = recording.perf().samples_in_images(data, &images, &tools);
    let asked = fs::read_to_string(log).expect("perf asks addr2line");
    for line in asked.lines() {
        assert!(line.contains(text(&images)), "{line}");
    }
    samples
}

fn images(data: &Path) -> PathBuf {
    let mut images = data.as_os_str().to_owned();
    images.push(".jit");
    images.into()
}

/// `FILE:LINE` of a sample.
fn line_of(sample: &Sample) -> Option<&str> {
    sample.srcline.as_deref()?.split_whitespace().next()
}

/// What node's own reader of source maps says of positions.
fn originals(map: &Path, positions: &[(u32, u32)]) -> Vec<String> {
    let mut node = tool("node");
    node.arg(workload("original.js")).arg(map).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = node.spawn().expect("node");
    let all: String = positions.iter().map(|(line, column)| format!("{line}:{column}\n")).collect();
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(all.as_bytes()).expect("a reader");
    drop(input);
    let output = child.wait_with_output().expect("its output");
    let printed = succeeded(&node, &output).stdout;
    printed.lines().map(str::to_owned).collect()
}

#[test]
fn lines_of_modules_go_through_their_source_maps() {
    let recording = record_package();
    let dump = recording.dir().join(format!("jit-{}.dump", recording.pid()));
    let oracle = LineOracle::read(&dump);
    let module = format!("file://{}", text(&package()));
    let map = package().with_extension("js.map");

    let ours = recording.ours();
    let samples = samples_with_lines(&recording, &ours.data);
    let in_module: Vec<(&Sample, (u32, u32))> = samples
        .iter()
        .filter_map(|sample| {
            let (file, line, column) = oracle.position(sample.ip)??;
            (file == module).then_some((sample, (line, column)))
        })
        .collect();
    let positions: Vec<(u32, u32)> = in_module.iter().map(|(_, position)| *position).collect();
    let originals = originals(&map, &positions);
    assert_eq!(originals.len(), positions.len());
    let mut mapped = 0;
    for ((sample, (line, _)), original) in in_module.iter().zip(&originals) {
        // What comes from no source, such as helpers of the bundler, keeps its line.
        let expected = match original.as_str() {
            "-" => format!("marked.esm.js:{line}"),
            original => original.to_owned(),
        };
        assert_eq!(line_of(sample), Some(expected.as_str()), "{sample}");
        mapped += usize::from(original != "-");
    }
    assert!(mapped > 50, "{mapped} of {} samples in images", samples.len());

    let as_they_ran = recording.dir().join("as-they-ran.data");
    inject(&recording.data(), &as_they_ran, ["--no-source-maps"]);
    for sample in samples_with_lines(&recording, &as_they_ran) {
        if let Some(Some((file, line, _))) = oracle.position(sample.ip)
            && file == module
        {
            let expected = format!("marked.esm.js:{line}");
            assert_eq!(line_of(&sample), Some(expected.as_str()), "{sample}");
        }
    }

    expect_targets(&images(&ours.data));
}

/// Checks that what is called outside of the images has its name, or its address in the process.
fn expect_targets(images: &Path) {
    let (mut calls, mut named, mut absurd) = (0, 0, Vec::new());
    for image in images.read_dir().expect("images") {
        let image = image.expect("an image").path();
        if image.extension().is_none_or(|extension| extension != "elf") {
            continue;
        }
        let printed = run(tool("objdump").args(["-d", "--no-show-raw-insn"]).arg(&image)).stdout;
        for line in printed.lines() {
            let Some((_, target)) =
                line.split_once("call ").and_then(|(_, to)| to.split_once(" <"))
            else {
                continue;
            };
            let distance = target.trim_end_matches('>').rsplit_once("+0x");
            let distance = distance.and_then(|(_, hex)| u64::from_str_radix(hex, 16).ok());
            calls += 1;
            named += usize::from(target.starts_with("Builtins_") && distance.is_none());
            if distance.unwrap_or(0) >= 1 << 20 {
                absurd.push(line.to_owned());
            }
        }
    }
    // Constants behind code look like calls to addresses where nothing is. Without labels, a quarter is absurd.
    assert!(absurd.len() * 1000 <= calls, "{} of {calls}: {absurd:#?}", absurd.len());
    assert!(named * 10 > calls, "{named} of {calls} calls are of builtins with a name");
}

/// Erlang gives base names.
#[test]
fn base_names_are_found_in_folders() {
    let recorder = Recorder::new();
    let source = recorder.dir().join("src/app");
    fs::create_dir_all(&source).expect("a folder");
    let file = source.join("spin.erl");
    fs::copy(workload("spin.erl"), &file).expect("a copy");
    let mut erlc = tool("erlc");
    run(erlc.args(["-o", ".", "src/app/spin.erl"]).current_dir(recorder.dir()));
    let source = source.parent().expect("a folder").to_owned();
    let recording = recorder.record(&erl(&["+JPperf", "true"]));
    let ours = recording.ours_with(&["--source-dir", text(&source)]);
    let tables: String = images(&ours.data)
        .read_dir()
        .expect("images")
        .map(|image| image.expect("an image").path())
        .filter(|image| image.extension().is_some_and(|extension| extension == "elf"))
        .map(|image| run(tool("llvm-dwarfdump").arg("--debug-line").arg(image)).stdout)
        .collect();
    let folder = text(file.parent().expect("a folder"));
    assert!(tables.contains(&format!("\"{folder}\"")), "no {folder} in the line tables");
    assert!(tables.contains("\"spin.erl\""));
}
