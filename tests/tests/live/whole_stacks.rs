//! Call stacks that were copied reach the bottom, in perf and as `record` counts them. Prints the table of `docs/viewers.md`:
//!
//! `cargo test -p end-to-end --locked --test live whole_stacks:: -- --nocapture --test-threads 1`

use std::path::Path;
use std::time::{Duration, Instant};

use end_to_end::chains::Chain;
use end_to_end::jitscribe::{jitscribe, report};
use end_to_end::live::workload;
use end_to_end::perf::Perf;
use end_to_end::recordings::script;
use end_to_end::stacks::{Stacks, WholeStacks};
use end_to_end::tool::{bun, cache, deno, run, tool};

fn record(program: &[&str]) -> Stacks {
    Stacks::record(program, |_| {})
}

fn python() -> String {
    let python = cache().join("trixie/run/python3.13");
    assert!(python.exists(), "Python 3.13 is not there: run scripts/setup.sh test");
    python.to_str().expect("a UTF-8 path").to_owned()
}

/// Adds up the counts of recordings until the first is above 100: where other programs have the processors, one recording has few samples.
fn add_up<const COUNTS: usize>(mut record: impl FnMut() -> [usize; COUNTS]) -> [usize; COUNTS] {
    let end = Instant::now() + Duration::from_secs(300);
    let mut sums = [0; COUNTS];
    while sums[0] <= 100 {
        assert!(Instant::now() < end, "too few samples: {sums:?}");
        for (sum, count) in sums.iter_mut().zip(record()) {
            *sum += count;
        }
    }
    sums
}

#[test]
fn stacks_reach_the_bottom() {
    let compile = |folder: &Path| {
        run(tool("javac").arg("-d").arg(folder).arg(workload("Spin.java")));
    };
    let [of_node, of_python, of_php] = ["spin.js", "spin.py", "spin.php"].map(script);
    let python = python();
    let php = [
        "php",
        "-dopcache.enable_cli=1",
        "-dopcache.jit=tracing",
        "-dopcache.jit_buffer_size=64M",
        "-dopcache.file_update_protection=0",
        &of_php,
    ];
    let is_less = |raw: usize, injected: usize| raw < injected;
    let is_any = |_, _| true;
    // Whether so many are whole in perf without images.
    type Expected = fn(raw: usize, injected: usize) -> bool;
    let rows: [(&str, &[&str], Expected); 5] = [
        ("node 18", &["node", &of_node], is_less),
        (
            "Java 17, `-XX:+PreserveFramePointer`",
            &["java", "-XX:+PreserveFramePointer", "Spin", "1500"],
            is_any,
        ),
        (
            "Java 17, `-XX:-PreserveFramePointer`",
            &["java", "-XX:-PreserveFramePointer", "Spin", "1500"],
            is_any,
        ),
        ("CPython 3.13", &[&python, &of_python], is_any),
        ("PHP 8.2", &php, |raw, injected| raw * 2 < injected),
    ];
    for (what, program, is_expected) in rows {
        let mut recorded = Stacks::record(program, |folder| {
            if program[0] == "java" {
                compile(folder);
            }
        });
        let counts = recorded.expect_agreement(what);
        let WholeStacks { stacks, raw, injected, counted, .. } = counts;
        // At least 95 of 100.
        let is_whole = injected * 100 >= stacks * 95 && counted * 100 >= stacks * 95;
        assert!(is_whole && is_expected(raw, injected), "{what}: {counts:?}");
    }
}

/// Erlang's processes have stacks of their own, which are not copied while C runs. A stack of Erlang's own code is whole.
#[test]
fn erlang() {
    let compile = |folder: &Path| {
        run(tool("erlc").arg("-o").arg(folder).arg(workload("spin.erl")));
    };
    let program = ["erl", "+S", "2", "-noshell", "-s", "spin", "main", "-s", "init", "stop"];
    let [all, whole] = add_up(|| {
        let mut stacks = Stacks::record(&program, compile);
        stacks.count("Erlang 25");
        let (all, whole) = stacks.from_jitted_code();
        [all, whole]
    });
    assert!(whole * 100 >= all * 90, "{whole} of {all}");
}

/// JavaScriptCore enters jitted code, and its interpreter, by code that keeps a frame pointer and has no tables. perf's libunwind
/// computes the wrong stack pointer there (see [`jitscribe_inject::Guess`]), which no image can change. Guessed rightly, stacks are whole.
#[test]
fn javascriptcore() {
    let counts = record(&["jsc", &script("spin.js")]).expect_agreement("JavaScriptCore 2.50");
    assert!(counts.guessed * 100 >= counts.stacks * 95, "{counts:?}");
}

/// The programs of deno and bun have no unwind tables, at which perf ends a stack. They keep frame pointers, which `jitscribe report` follows.
#[test]
fn stacks_without_tables_are_whole_by_guess() {
    for (what, program) in [("deno 2.9", deno()), ("bun 1.4", bun())] {
        let program = program.to_str().expect("a UTF-8 path");
        let counts = record(&[program, "run", &script("spin.js")]).expect_agreement(what);
        assert!(counts.guessed * 100 >= counts.stacks * 95, "{what}: {counts:?}");
    }
}

/// With frame pointers, which `record` chooses, perf shows whole stacks of both, except where the C library runs, which keeps none.
#[test]
fn deno_and_bun_by_frame_pointers() {
    for program in [deno(), bun()] {
        let [all, whole, named, unnamed] = add_up(|| by_frame_pointers(&program));
        assert!(named > 100 && unnamed * 100 <= named, "{program:?}: {named}, {unnamed} unnamed");
        assert!(whole * 100 >= all * 95, "{program:?}: {whole} of {all}");
    }
}

/// Records a program by frame pointers. Returns how many stacks from jitted code there are, and how many of them are whole; and how many samples are
/// named, and how many are not.
fn by_frame_pointers(program: &Path) -> [usize; 4] {
    let folder = tempfile::tempdir().expect("a folder");
    let mut record = jitscribe();
    record.args(["record", "--json", "-F", "999", "-o", "it.data", "--"]).arg(program);
    record.arg("run").arg(workload("spin.js")).arg("4").current_dir(folder.path());
    let report = report(&run(record.env("DENO_DIR", folder.path())));
    let [named, unnamed] = ["named", "unnamed"]
        .map(|count| report["samples"][count].as_u64().expect("a number") as usize);
    let chains = Perf::installed().chains(&folder.path().join("it.data"));
    let is_jitted = |chain: &&Chain| {
        chain.frames.first().is_some_and(|leaf| leaf.dso.contains("/it.data.jit/"))
    };
    let is_whole = |chain: &&Chain| {
        let bottoms = ["__libc_start_call_main", "start_thread", "clone3", "_start"];
        let last = chain.frames.last().and_then(|frame| frame.name());
        last.is_some_and(|name| bottoms.contains(&name))
    };
    let all = chains.iter().filter(is_jitted).count();
    let whole = chains.iter().filter(is_jitted).filter(is_whole).count();
    [all, whole, named, unnamed]
}
