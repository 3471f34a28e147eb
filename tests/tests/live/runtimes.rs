//! The code of each runtime that writes a jitdump or a perf map has the names of stock perf, or those of the map.

use end_to_end::live::{Recorder, Recording, Tally, workload};
use end_to_end::recordings::{LLVM, NODE, script};
use end_to_end::tool::{cache, run, tool};

/// A runtime that writes a jitdump.
struct Dumping {
    what: &'static str,
    record: fn() -> Recording,
    /// Whether enough samples have names.
    is_enough: fn(&Tally) -> bool,
}

/// Builtins of V8 have names in its dump and in node's own file: both count.
fn is_enough_of_node(tally: &Tally) -> bool {
    tally.same + tally.named_by_files > tally.all / 10 && tally.unknown == 0
}

fn is_a_tenth(tally: &Tally) -> bool {
    tally.same > tally.all / 10 && tally.unknown == 0
}

const DUMPING: [Dumping; 8] = [
    Dumping { what: "node", record: || NODE.get(), is_enough: is_enough_of_node },
    Dumping {
        what: "node with unwinding information",
        record: || node(&["--perf-prof", "--perf-prof-unwinding-info"]),
        is_enough: is_enough_of_node,
    },
    Dumping {
        what: "node with interpreted frames",
        record: || node(&["--perf-prof", "--interpreted-frames-native-stack"]),
        is_enough: is_enough_of_node,
    },
    Dumping {
        what: "PHP, which writes a perf map as well",
        record: php,
        is_enough: |tally| tally.same > tally.all / 10 && tally.unknown < tally.all / 50,
    },
    Dumping {
        what: "Erlang, which writes a perf map as well",
        record: erlang,
        is_enough: is_a_tenth,
    },
    // It loads code over the addresses of dropped code: the best cheap test of time. How much is compiled within the second depends on what else
    // the machine does.
    Dumping {
        what: "JavaScriptCore, as WebKitGTK ships it",
        record: jsc,
        is_enough: |tally| tally.same > 0 && tally.unknown == 0,
    },
    Dumping {
        what: "LLVM",
        record: || LLVM.get(),
        is_enough: |tally| tally.same > tally.all / 2 && tally.unknown == 0,
    },
    // Driven from Python: the same module is compiled over old addresses again and again.
    Dumping { what: "wasmtime", record: || wasmtime("jitdump"), is_enough: is_a_tenth },
];

fn node(options: &[&str]) -> Recording {
    Recorder::new().record(&[&["node"], options, &[&script("spin.js")]].concat())
}

fn php() -> Recording {
    let settings = [
        "opcache.enable=1",
        "opcache.enable_cli=1",
        "opcache.jit=tracing",
        "opcache.jit_buffer_size=64M",
        // A script that changed just now is not jitted otherwise.
        "opcache.file_update_protection=0",
        // A jitdump and a perf map.
        "opcache.jit_debug=32",
    ];
    let settings = settings.into_iter().flat_map(|setting| ["-d", setting]);
    let mut program: Vec<&str> = ["php"].into_iter().chain(settings).collect();
    let script = script("spin.php");
    program.push(&script);
    Recorder::new().record(&program)
}

fn erlang() -> Recording {
    let recorder = Recorder::new();
    run(tool("erlc").arg("-o").arg(recorder.dir()).arg(workload("spin.erl")));
    recorder.record(&[
        "erl", "+S", "2", "+JPperf", "true", "-noshell", "-s", "spin", "main", "-s", "init", "stop",
    ])
}

fn jsc() -> Recording {
    let recorder = Recorder::new().env("JSC_useJITDump", "1");
    let dir = recorder.dir().to_str().expect("a UTF-8 path").to_owned();
    recorder.env("JSC_jitDumpDirectory", &dir).record(&["jsc", &script("spin.js")])
}

fn wasmtime(profiler: &str) -> Recording {
    let python = cache().join("wasmtime/bin/python3");
    assert!(python.exists(), "wasmtime is not installed: run scripts/setup.sh test");
    let python = python.to_str().expect("a UTF-8 path");
    Recorder::new().record(&[python, &script("spin_wasm.py"), profiler])
}

#[test]
fn code_in_dumps_has_the_names_of_stock_perf() {
    for Dumping { what, record, is_enough } in DUMPING {
        let tally = record().expect_as_good_as_stock();
        assert!(is_enough(&tally), "{what}: {tally:?}");
    }
}

fn mono() -> Recording {
    let recorder = Recorder::new();
    let program = recorder.dir().join("Spin.exe");
    run(tool("mcs").arg(format!("-out:{}", program.display())).arg(workload("Spin.cs")));
    recorder.record(&["mono", "--jitmap", "Spin.exe"])
}

fn rakudo() -> Recording {
    Recorder::new().env("MVM_JIT_PERF_MAP", "1").record(&["rakudo", &script("spin.raku")])
}

fn java() -> Recording {
    let recorder = Recorder::new();
    run(tool("javac").arg("-d").arg(recorder.dir()).arg(workload("Spin.java")));
    recorder.record(&[
        "java",
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:+DumpPerfMapAtExit",
        "-XX:+PreserveFramePointer",
        "Spin",
    ])
}

#[test]
fn code_in_maps_has_the_names_of_the_map() {
    let is_any = |_: usize, _: usize, _: usize| true;
    type Recorded = fn() -> Recording;
    type Enough = fn(unknown: usize, named: usize, all: usize) -> bool;
    let mapping: [(&str, Recorded, Enough); 5] = [
        // Mono does not list all of its trampolines.
        ("Mono", mono, |unknown, named, _| unknown * 100 <= named),
        ("Rakudo", rakudo, |unknown, _, _| unknown == 0),
        ("node, whose map is unsorted", || node(&["--perf-basic-prof"]), is_any),
        ("wasmtime", || wasmtime("perfmap"), |_, named, all| named > all / 10),
        ("Java, which writes the map at its exit", java, is_any),
    ];
    for (what, record, is_enough) in mapping {
        let recording = record();
        let tally = recording.expect_map_applied();
        let is_enough = is_enough(tally.unknown, tally.named, recording.raw().len());
        assert!(is_enough, "{what}: {tally:?}");
    }
}
