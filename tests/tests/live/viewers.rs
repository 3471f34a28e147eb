//! hotspot and samply show the same code as perf: in jitted code, and in native code as often as without our images.

use std::ffi::OsStr;
use std::iter;
use std::path::{Path, PathBuf};

use end_to_end::corpus::Corpus;
use end_to_end::jitscribe::inject;
use end_to_end::live::{Recorder, workload};
use end_to_end::perf::Perf;
use end_to_end::sample::Sample;
use end_to_end::tool::{bun, deno, run, tool};
use end_to_end::viewers::{Agreement, hotspot, samply};

/// What hotspot and samply make of a recording, with images in `DATA.jit`.
fn agreements(data: &Path, samples: &[Sample]) -> [Agreement; 2] {
    let mut folder = data.as_os_str().to_owned();
    folder.push(".jit");
    [hotspot, samply].map(|reader| reader(data, samples, folder.as_ref()))
}

#[expect(clippy::print_stdout, reason = "the table of docs/viewers.md")]
fn report(what: &str, [hotspot, samply]: &[Agreement; 2]) {
    let of = |reader: &Agreement| format!("{} of {}", reader.jitted_agreed, reader.jitted);
    let native = |reader: &Agreement| format!("{} of {}", reader.native_agreed, reader.native);
    let cells = [of(hotspot), of(samply), native(hotspot), native(samply)];
    println!("| {what} | {} |", cells.join(" | "));
}

/// Injects a recording of the corpus. `jitted` is how many samples perf has in its images.
fn recorded(producer: &str, recording: &str, jitted: usize) {
    let corpus = Corpus::unpack(producer);
    let output = corpus.scratch().join(format!("{recording}.out.data"));
    let input = corpus.file(&format!("{recording}.data"));
    inject(&input, &output, ["--aux-dir".as_ref(), corpus.dir().as_os_str()]);
    let both = agreements(&output, &Perf::installed().samples(&output));
    report(producer, &both);
    let [hotspot, samply] = both;
    assert_eq!(hotspot.jitted, jitted, "{hotspot:?}");
    assert!(hotspot.is_enough(true), "{hotspot:?}");
    assert!(samply.is_enough(false), "{samply:?}");
}

#[test]
fn node_18() {
    recorded("node18-b12", "g", 676);
}

/// Its addresses are reused much.
#[test]
fn javascriptcore() {
    recorded("jsc-b12", "g", 303);
}

#[test]
fn dotnet_10() {
    recorded("dotnet10-u2404", "g", 121);
}

#[test]
fn llvm() {
    recorded("lli14-b12", "g", 1801);
}

#[test]
fn php() {
    recorded("php82-jitdebug32", "g", 165);
}

#[test]
fn java_17() {
    recorded("java17-perfmap", "g", 1196);
}

#[test]
fn erlang_25() {
    recorded("erl25-map", "g", 231);
}

#[test]
fn mono() {
    recorded("mono68-b12", "g", 1011);
}

#[test]
fn rakudo() {
    recorded("rakudo2022", "g", 318);
}

#[test]
fn qemu() {
    recorded("qemu10-aarch64-perfmap", "g", 302);
}

/// Its code is trampolines, which call the interpreter: few samples are in them.
#[test]
fn cpython_313() {
    recorded("py313-perf_jit-dwarf", "d", 1);
}

/// Modules come and go at the same addresses.
#[test]
fn wasmtime() {
    recorded("wasmtime-jitdump", "g", 459);
}

/// Compares a recording, whose dump may have code inside the program itself, with the same without images.
fn live(recorder: Recorder, program: &Path, options: &[&str], what: &str) -> [Agreement; 2] {
    let script = workload("spin.js");
    let options = options.iter().map(OsStr::new);
    let program: Vec<&OsStr> =
        iter::once(program.as_os_str()).chain(options).chain([script.as_os_str()]).collect();
    let recording = recorder.record(&program);
    let raw = agreements(&recording.data(), recording.raw());
    let ours = recording.ours();
    let injected = agreements(&ours.data, &ours.samples);
    report(what, &injected);
    let [_, samply] = &injected;
    assert!(samply.is_enough(false), "{samply:?}");
    for (raw, injected) in raw.iter().zip(&injected) {
        assert!(injected.native > 0, "{injected:?}");
        let share =
            |agreement: &Agreement| agreement.native_agreed as f64 / agreement.native as f64;
        assert!(share(injected) >= share(raw) - 0.05, "{injected:?}, without images {raw:?}");
    }
    injected
}

fn node(program: &Path, what: &str) -> [Agreement; 2] {
    live(Recorder::new(), program, &["--perf-prof"], what)
}

#[test]
fn deno_here() {
    let recorder = Recorder::new();
    let dumps = recorder.dir().to_str().expect("a UTF-8 path").to_owned();
    let flags = format!("--perf-prof,--perf-prof-path={dumps},--interpreted-frames-native-stack");
    let recorder = recorder.env("DENO_V8_FLAGS", &flags).env("DENO_DIR", &dumps);
    let [hotspot, _] = live(recorder, &deno(), &["run"], "deno");
    assert!(hotspot.is_enough(true), "{hotspot:?}");
}

#[test]
fn bun_here() {
    let recorder = Recorder::new();
    let dumps = recorder.dir().to_str().expect("a UTF-8 path").to_owned();
    let recorder = recorder.env("BUN_JSC_useJITDump", "1");
    let recorder = recorder.env("BUN_JSC_jitDumpDirectory", &dumps);
    let [hotspot, _] = live(recorder, &bun(), &["run"], "bun");
    assert!(hotspot.is_enough(true), "{hotspot:?}");
}

fn installed_node() -> PathBuf {
    let path = run(tool("sh").args(["-c", "command -v node"])).stdout;
    PathBuf::from(path.trim()).canonicalize().expect("node")
}

#[test]
fn node_here() {
    let [hotspot, _] = node(&installed_node(), "node here");
    assert!(hotspot.is_enough(true), "{hotspot:?}");
}

/// The file does not name the code in it, so that an image covers a part of the file.
#[test]
fn node_without_symbols() {
    let folder = tempfile::tempdir().expect("a folder");
    let stripped = folder.path().join("node");
    run(tool("strip").arg("--strip-all").arg("-o").arg(&stripped).arg(installed_node()));
    // Where an image is in the middle of a file, hotspot's reader sometimes rejects one of the two, and then has no name for the address that it was
    // looking up (perfsymboltable.cpp, `lookupFrame` after `reportElf`). It has no wrong name.
    let [hotspot, _] = node(&stripped, "node without symbols");
    assert_eq!(hotspot.jitted_agreed + hotspot.jitted_unnamed, hotspot.jitted, "{hotspot:?}");
    assert!(hotspot.jitted_agreed > 0, "{hotspot:?}");
}
