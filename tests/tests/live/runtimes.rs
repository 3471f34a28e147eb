//! The code of each runtime that writes a jitdump or a perf map has the names of stock perf, or those of the map.

use end_to_end::live::{Recorder, Recording, Tally};
use end_to_end::recordings::{LLVM, NODE};
use end_to_end::runtimes::{Words, erlang, java, jsc, mono, node, php, script, wasmtime};

fn record(program: impl FnOnce(&Recorder) -> Words) -> Recording {
    let recorder = Recorder::new();
    let program = program(&recorder);
    recorder.record(&program)
}

/// Builtins of V8 have names in its dump and in node's own file: both count.
fn is_enough_of_node(tally: &Tally) -> bool {
    tally.same + tally.named_by_files > tally.all / 10 && tally.unknown == 0
}

fn is_a_tenth(tally: &Tally) -> bool {
    tally.same > tally.all / 10 && tally.unknown == 0
}

#[test]
fn code_in_dumps_has_the_names_of_stock_perf() {
    type Row = (&'static str, fn() -> Recording, fn(&Tally) -> bool);
    let dumping: [Row; 8] = [
        ("node", || NODE.get(), is_enough_of_node),
        (
            "node with unwinding information",
            || record(|_| node(&["--perf-prof", "--perf-prof-unwinding-info"])),
            is_enough_of_node,
        ),
        (
            "node with interpreted frames",
            || record(|_| node(&["--perf-prof", "--interpreted-frames-native-stack"])),
            is_enough_of_node,
        ),
        (
            "PHP, which writes a perf map as well",
            || record(|_| php(&["-dopcache.enable=1", "-dopcache.jit_debug=32"])),
            |tally| tally.same > tally.all / 10 && tally.unknown < tally.all / 50,
        ),
        (
            "Erlang, which writes a perf map as well",
            || record(|recorder| erlang(recorder.dir(), &["+JPperf", "true"])),
            is_a_tenth,
        ),
        // It loads code over the addresses of dropped code: the best cheap test of time. How much is compiled within the second
        // depends on what else the machine does.
        ("JavaScriptCore", record_jsc, |tally| tally.same > 0 && tally.unknown == 0),
        ("LLVM", || LLVM.get(), |tally| tally.same > tally.all / 2 && tally.unknown == 0),
        ("wasmtime", || record(|_| wasmtime("jitdump")), is_a_tenth),
    ];
    for (what, record, is_enough) in dumping {
        let tally = record().expect_as_good_as_stock();
        assert!(is_enough(&tally), "{what}: {tally:?}");
    }
}

fn record_jsc() -> Recording {
    let recorder = Recorder::new().env("JSC_useJITDump", "1");
    let dir = recorder.dir().to_str().expect("a UTF-8 path").to_owned();
    recorder.env("JSC_jitDumpDirectory", &dir).record(&jsc())
}

fn record_rakudo() -> Recording {
    Recorder::new().env("MVM_JIT_PERF_MAP", "1").record(&["rakudo", &script("spin.raku")])
}

fn record_java() -> Recording {
    let options =
        ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit", "-XX:+PreserveFramePointer"];
    record(|recorder| java(recorder.dir(), &options, "1500"))
}

#[test]
fn code_in_maps_has_the_names_of_the_map() {
    type Enough = fn(unknown: usize, named: usize, all: usize) -> bool;
    let is_any = |_: usize, _: usize, _: usize| true;
    type Make = fn() -> Recording;
    let mapping: [(&str, Make, Enough); 5] = [
        // Mono does not list all of its trampolines.
        (
            "Mono",
            || record(|recorder| mono(recorder.dir())),
            |unknown, named, _| unknown * 100 <= named,
        ),
        ("Rakudo", record_rakudo, |unknown, _, _| unknown == 0),
        ("node, whose map is unsorted", || record(|_| node(&["--perf-basic-prof"])), is_any),
        ("wasmtime", || record(|_| wasmtime("perfmap")), |_, named, all| named > all / 10),
        ("Java, which writes the map at its exit", record_java, is_any),
    ];
    for (what, record, is_enough) in mapping {
        let recording = record();
        let tally = recording.expect_map_applied();
        let is_enough = is_enough(tally.unknown, tally.named, recording.raw().len());
        assert!(is_enough, "{what}: {tally:?}");
    }
}
