//! hotspot and samply show the same code as perf: in jitted code, and in native code as often as without our images.

use std::path::Path;

use end_to_end::corpus::Corpus;
use end_to_end::jitscribe::inject;
use end_to_end::live::{Recorder, workload};
use end_to_end::perf::Perf;
use end_to_end::sample::Sample;
use end_to_end::tool::{run, tool};
use end_to_end::viewers::{Agreement, hotspot, samply};
use object::Object;

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
    recorded("php82-jitdebug32", "g", 161);
}

/// Modules come and go at the same addresses.
#[test]
fn wasmtime() {
    recorded("wasmtime-jitdump", "g", 459);
}

/// Whether the installed node is one file with a symbol table; Debian's is in a library without.
fn node_has_symbols() -> bool {
    let path = run(tool("sh").args(["-c", "command -v node"])).stdout;
    let program = std::fs::read(path.trim()).expect("node");
    let file = object::File::parse(&*program).expect("an ELF file");
    file.symbol_table().is_some()
}

/// A runtime whose dump has code inside its own program, on this machine: native code is as before.
#[test]
fn node_here() {
    let script = workload("spin.js");
    let script = script.to_str().expect("a UTF-8 path");
    let recording = Recorder::new().record(&["node", "--perf-prof", script]);
    let raw = agreements(&recording.data(), recording.raw());
    let ours = recording.ours();
    let injected = agreements(&ours.data, &ours.samples);
    report("node here", &injected);
    let [hotspot, samply] = injected;
    assert!(samply.is_enough(false), "{samply:?}");
    // It has no name for a few addresses in builtins of a node without symbols, and has for their neighbours.
    assert!(hotspot.jitted_agreed * 100 >= hotspot.jitted * 95, "{hotspot:?}");
    // Of a node without symbols, an image covers a part (see TODO.md), and native code has no names to compare.
    let readers = raw.iter().zip(&injected).filter(|_| node_has_symbols());
    for (raw, injected) in readers {
        assert!(injected.native > 0, "{injected:?}");
        let share =
            |agreement: &Agreement| agreement.native_agreed as f64 / agreement.native as f64;
        assert!(share(injected) >= share(raw) - 0.05, "{injected:?}, without images {raw:?}");
    }
}
