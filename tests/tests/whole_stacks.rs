//! Call stacks that were copied reach the bottom, in perf and as `record` counts them. Prints the table of `docs/viewers.md`:
//!
//! `cargo test --workspace --locked --test whole_stacks -- --nocapture --test-threads 1`

use std::path::Path;

use end_to_end::live::workload;
use end_to_end::stacks::{Stacks, WholeStacks};
use end_to_end::tool::{cache, run, tool};

fn script(name: &str) -> String {
    workload(name).to_str().expect("a UTF-8 path").to_owned()
}

fn record(program: &[&str]) -> Stacks {
    Stacks::record(program, |_| {})
}

/// At least 95 of 100 are whole.
fn expect_whole(counts: WholeStacks) {
    let WholeStacks { stacks, injected, counted, .. } = counts;
    assert!(injected * 100 >= stacks * 95 && counted * 100 >= stacks * 95, "{counts:?}");
}

#[test]
fn node() {
    let counts = record(&["node", &script("spin.js")]).expect_agreement("node 18");
    expect_whole(counts);
    assert!(counts.raw < counts.injected, "{counts:?}");
}

fn java(option: &str) {
    let program = ["java", option, "Spin", "1500"];
    let mut stacks = Stacks::record(&program, |folder| {
        run(tool("javac").arg("-d").arg(folder).arg(workload("Spin.java")));
    });
    let counts = stacks.expect_agreement(&format!("Java 17, `{option}`"));
    expect_whole(counts);
}

#[test]
fn java_with_frame_pointers() {
    java("-XX:+PreserveFramePointer");
}

#[test]
fn java_without_frame_pointers() {
    java("-XX:-PreserveFramePointer");
}

#[test]
fn cpython() {
    let python = cache().join("trixie/run/python3.13");
    assert!(python.exists(), "Python 3.13 is not there: run scripts/setup.sh test");
    let python = python.to_str().expect("a UTF-8 path");
    expect_whole(record(&[python, &script("spin.py")]).expect_agreement("CPython 3.13"));
}

#[test]
fn php() {
    let mut program = vec!["php"];
    for setting in [
        "opcache.enable_cli=1",
        "opcache.jit=tracing",
        "opcache.jit_buffer_size=64M",
        "opcache.file_update_protection=0",
    ] {
        program.extend(["-d", setting]);
    }
    let script = script("spin.php");
    program.push(&script);
    let counts = record(&program).expect_agreement("PHP 8.2");
    expect_whole(counts);
    assert!(counts.raw * 2 < counts.injected, "{counts:?}");
}

/// Erlang's processes have stacks of their own, which are not copied while C runs. A stack of Erlang's own code is whole.
#[test]
fn erlang() {
    let compile = |folder: &Path| {
        run(tool("erlc").arg("-o").arg(folder).arg(workload("spin.erl")));
    };
    let program = ["erl", "+S", "2", "-noshell", "-s", "spin", "main", "-s", "init", "stop"];
    let mut stacks = Stacks::record(&program, compile);
    let counts = stacks.count("Erlang 25");
    let (all, whole) = stacks.from_jitted_code();
    assert!(all > 30 && whole * 100 >= all * 90, "{whole} of {all}, {counts:?}");
}

/// JavaScriptCore enters jitted code, and its interpreter, by code that keeps a frame pointer and has no tables. perf's libunwind
/// computes the wrong stack pointer there (see [`jitscribe_inject::Guess`]), which no image can change. Guessed rightly, stacks are whole.
#[test]
fn javascriptcore() {
    let counts = record(&["jsc", &script("spin.js")]).expect_agreement("JavaScriptCore 2.50");
    assert!(counts.guessed * 100 >= counts.stacks * 95, "{counts:?}");
}
