//! Call stacks reach the bottom, in perf and as `record` counts them. Prints the table of `docs/viewers.md`:
//!
//! `cargo test -p end-to-end --locked --test live whole_stacks:: -- --nocapture --test-threads 1`

use std::path::Path;
use std::time::{Duration, Instant};

use end_to_end::chains::Chain;
use end_to_end::record::{Record, Recorded};
use end_to_end::recordings::{COPIED_BY_RECORD, recorded_node, recorded_python};
use end_to_end::runtimes::{Words, erlang, java, jsc, php, script};
use end_to_end::stacks::{Stacks, WholeStacks};
use end_to_end::tool::{argument, bun, deno};

/// Records a program, which may need something in the folder where it runs.
fn record(program: impl FnOnce(&Path) -> Words) -> Recorded {
    let record = Record::new(COPIED_BY_RECORD);
    let program = program(record.folder());
    record.program(&program)
}

/// A program that runs the usual script.
fn runs(program: &Path) -> Words {
    vec![argument(program), "run".into(), script("spin.js")]
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
    let [kept, dropped] = ["-XX:+PreserveFramePointer", "-XX:-PreserveFramePointer"];
    let java = |option: &str| record(|folder| java(folder, &[option], "1500"));
    // Whether so many are whole in perf without images.
    type Expected = fn(raw: usize, injected: usize) -> bool;
    let is_any: Expected = |_, _| true;
    let rows: [(&str, &dyn Fn() -> Recorded, Expected); 5] = [
        ("node 18", &recorded_node, |raw, injected| raw < injected),
        ("Java 17, `-XX:+PreserveFramePointer`", &|| java(kept), is_any),
        ("Java 17, `-XX:-PreserveFramePointer`", &|| java(dropped), is_any),
        ("CPython 3.13", &recorded_python, is_any),
        ("PHP 8.2", &|| record(|_| php(&[])), |raw, injected| raw * 2 < injected),
    ];
    for (what, record, is_expected) in rows {
        let counts = Stacks::of(record()).expect_agreement(what);
        let WholeStacks { stacks, raw, injected, counted, .. } = counts;
        // At least 95 of 100.
        let is_whole = injected * 100 >= stacks * 95 && counted * 100 >= stacks * 95;
        assert!(is_whole && is_expected(raw, injected), "{what}: {counts:?}");
    }
}

/// MoarVM's code has a frame pointer and no tables: the images say so.
#[test]
fn stacks_of_rakudo_reach_the_bottom() {
    let program = || vec!["rakudo-m".into(), script("spin.raku")];
    let counts = Stacks::of(record(|_| program())).expect_agreement("Rakudo 2022.12");
    let WholeStacks { stacks, raw, injected, counted, .. } = counts;
    assert!(injected * 100 >= stacks * 98 && counted * 100 >= stacks * 98, "{counts:?}");
    assert!(raw < injected, "{counts:?}");
}

/// Erlang's processes have stacks of their own, which are not copied while C runs. A stack of Erlang's own code is whole.
#[test]
fn stacks_of_erlang_s_own_code_reach_the_bottom() {
    let [all, whole] = add_up(|| {
        let mut stacks = Stacks::of(record(|folder| erlang(folder, &[])));
        stacks.count("Erlang 25");
        let (all, whole) = stacks.from_jitted_code();
        [all, whole]
    });
    assert!(whole * 100 >= all * 90, "{whole} of {all}");
}

/// JavaScriptCore enters jitted code, and its interpreter, by code that keeps a frame pointer and has no tables. perf's libunwind
/// computes the wrong stack pointer there (see [`jitscribe_inject::Guess`]), which no image can change. The programs of deno and
/// bun have no unwind tables, at which perf ends a stack. They keep frame pointers, which `jitscribe report` follows.
#[test]
fn stacks_without_tables_reach_the_bottom_by_guess() {
    for (what, program) in
        [("JavaScriptCore 2.50", jsc()), ("deno 2.9", runs(&deno())), ("bun 1.4", runs(&bun()))]
    {
        let counts = Stacks::of(record(|_| program)).expect_agreement(what);
        assert!(counts.guessed * 100 >= counts.stacks * 95, "{what}: {counts:?}");
    }
}

/// With frame pointers, which `record` chooses, perf shows whole stacks of both, except where the C library runs, which keeps none.
#[test]
fn stacks_of_deno_and_bun_reach_the_bottom_by_frame_pointers() {
    for program in [deno(), bun()] {
        let [all, whole, named, unnamed] = add_up(|| by_frame_pointers(&program));
        assert!(named > 100 && unnamed * 100 <= named, "{program:?}: {named}, {unnamed} unnamed");
        assert!(whole * 100 >= all * 95, "{program:?}: {whole} of {all}");
    }
}

/// Records a program by frame pointers. Returns how many stacks from jitted code there are, and how many of them are whole; and how many samples are
/// named, and how many are not.
fn by_frame_pointers(program: &Path) -> [usize; 4] {
    let record = Record::new(&["-F", "999"]);
    let cache = record.folder().to_owned();
    let words = [runs(program), vec!["4".into()]].concat();
    let recorded = record.env("DENO_DIR", cache).program(&words);
    let [named, unnamed] = ["named", "unnamed"]
        .map(|count| recorded.report["samples"][count].as_u64().expect("a number") as usize);
    let is_whole = |chain: &&Chain| {
        let bottoms = ["__libc_start_call_main", "start_thread", "clone3", "_start"];
        let last = chain.frames.last().and_then(|frame| frame.name());
        last.is_some_and(|name| bottoms.contains(&name))
    };
    let mut chains = recorded.chains();
    chains.retain(|chain| {
        chain.frames.first().is_some_and(|leaf| leaf.dso.contains("/it.data.jit/"))
    });
    [chains.len(), chains.iter().filter(is_whole).count(), named, unnamed]
}
