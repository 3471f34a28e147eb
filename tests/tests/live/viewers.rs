//! hotspot and samply show the same code as perf: in jitted code, and in native code as often as without our images.

use std::path::Path;

use end_to_end::corpus::Corpus;
use end_to_end::live::{Recorder, Recording};
use end_to_end::perf::Perf;
use end_to_end::recordings::NODE;
use end_to_end::runtimes::script;
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
    let output = corpus.inject(recording);
    let both = agreements(&output, &Perf::installed().samples(&output));
    report(producer, &both);
    let [hotspot, samply] = both;
    assert_eq!(hotspot.jitted, jitted, "{producer}: {hotspot:?}");
    assert!(hotspot.is_enough(true), "{producer}: {hotspot:?}");
    assert!(samply.is_enough(false), "{producer}: {samply:?}");
}

#[test]
fn both_agree_with_perf_on_recordings_of_the_corpus() {
    for (producer, recording, jitted) in [
        ("node18-b12", "g", 676),
        // Its addresses are reused much.
        ("jsc-b12", "g", 303),
        ("dotnet10-u2404", "g", 121),
        ("lli14-b12", "g", 1801),
        ("php82-jitdebug32", "g", 165),
        ("java17-perfmap", "g", 1196),
        ("erl25-map", "g", 231),
        ("mono68-b12", "g", 1011),
        ("rakudo2022", "g", 318),
        ("qemu10-aarch64-perfmap", "g", 302),
        // Its code is trampolines, which call the interpreter: few samples are in them.
        ("py313-perf_jit-dwarf", "d", 1),
        // Modules come and go at the same addresses.
        ("wasmtime-jitdump", "g", 459),
    ] {
        recorded(producer, recording, jitted);
    }
}

/// Compares a recording, whose dump may have code inside the program itself, with the same without images.
fn live(recording: &Recording, what: &str) -> [Agreement; 2] {
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

/// Records a program that runs the usual script; the variables with this folder in them say where it writes its dump.
fn record(program: &Path, option: &str, variables: &[(&str, &str)]) -> Recording {
    let recorder = Recorder::new();
    let dumps = recorder.dir().to_str().expect("a UTF-8 path").to_owned();
    let recorder = variables.iter().fold(recorder, |recorder, (name, value)| {
        recorder.env(name, &value.replace("DUMPS", &dumps))
    });
    recorder.record(&[program.to_str().expect("a UTF-8 path"), option, &script("spin.js")])
}

#[test]
fn both_agree_with_perf_on_what_runs_here() {
    let flags = "--perf-prof,--perf-prof-path=DUMPS,--interpreted-frames-native-stack";
    let of_deno = [("DENO_V8_FLAGS", flags), ("DENO_DIR", "DUMPS")];
    let of_bun = [("BUN_JSC_useJITDump", "1"), ("BUN_JSC_jitDumpDirectory", "DUMPS")];
    for (what, recording) in [
        ("deno", record(&deno(), "run", &of_deno)),
        ("bun", record(&bun(), "run", &of_bun)),
        ("node here", NODE.get()),
    ] {
        let [hotspot, _] = live(&recording, what);
        assert!(hotspot.is_enough(true), "{what}: {hotspot:?}");
    }
}

/// The file does not name the code in it, so that an image covers a part of the file.
#[test]
fn node_without_symbols() {
    let node = run(tool("sh").args(["-c", "command -v node"])).stdout;
    let node = Path::new(node.trim()).canonicalize().expect("node");
    let folder = tempfile::tempdir().expect("a folder");
    let stripped = folder.path().join("node");
    run(tool("strip").arg("--strip-all").arg("-o").arg(&stripped).arg(node));
    // Where an image is in the middle of a file, hotspot's reader sometimes rejects one of the two, and then has no name for the address that it was
    // looking up (perfsymboltable.cpp, `lookupFrame` after `reportElf`). It has no wrong name.
    let [hotspot, _] = live(&record(&stripped, "--perf-prof", &[]), "node without symbols");
    assert_eq!(hotspot.jitted_agreed + hotspot.jitted_unnamed, hotspot.jitted, "{hotspot:?}");
    assert!(hotspot.jitted_agreed > 0, "{hotspot:?}");
}
