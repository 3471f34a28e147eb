//! What views show of made recordings.

use crate::inject::recording::Recording;
use crate::inject::scene::{ARENA, CODE, MS, PID, Scene};

/// The kernel's own JIT compiler. perf records names and addresses of its code.
#[test]
fn bpf_programs_have_their_names() {
    let scene = Scene::new();
    let mut recording = Recording::new();
    let program = 0xffff_ffff_c020_1000;
    recording.comm(PID, PID, "app", MS);
    recording.bpf_program(program, 0x100, "bpf_prog_ae97943d49e07497_first", 2 * MS);
    recording.bpf_program(program, 0x80, "bpf_prog_7be49e3934a125ba_hot", 3 * MS);
    recording.kernel_sample(PID, program + 0x10, 10 * MS);
    // Behind it, and so far behind all functions of the kernel that it is in none.
    recording.kernel_sample(PID, program + 0x80, 11 * MS);
    recording.kernel_sample(PID, u64::MAX - 0xffff, 12 * MS);
    scene.write("perf.data", recording.file());
    let report = "report --stdio --no-pager --percent-limit 0 -i perf.data";
    let shown = scene.ask(report).ok().stdout;
    assert!(shown.contains("bpf_prog_7be49e3934a125ba_hot"), "{shown}");
    assert!(!shown.contains("_first") && !shown.contains("einittext"), "{shown}");
}

/// What perf asked the kernel about a program, whose source is in no file: see `bpf_programs.rs` of perf-data.
#[test]
fn bpf_programs_have_assembly_and_lines() {
    const PROG_INFO: &[u8] =
        include_bytes!("../../../../../formats/perf-data/tests/it/bpf/prog_info");
    const BTF: &[u8] = include_bytes!("../../../../../formats/perf-data/tests/it/bpf/btf");
    let scene = Scene::new();
    let mut recording = Recording::new();
    let program = 0xffff_ffff_c002_2108;
    recording.comm(PID, PID, "app", MS);
    recording.bpf_program(program, 44, "bpf_prog_99252ce72de0cb67_spin", 2 * MS);
    // In the loop, from where it adds to where it jumps.
    for (time, offset) in (10..).zip(20..38) {
        recording.kernel_sample(PID, program + offset, time * MS);
    }
    recording.feature(25, PROG_INFO).feature(26, BTF);
    scene.write("perf.data", recording.file());
    let annotated = scene.ask("annotate -i perf.data --json spin").ok().json();
    let code = &annotated["codes"][0];
    assert_eq!((&code["size"], &code["missing"]), (&44.into(), &serde_json::Value::Null));
    let instructions = code["instructions"].as_array().unwrap();
    let multiplied = instructions
        .iter()
        .find(|each| each["text"].as_str().unwrap().starts_with("imul"))
        .unwrap_or_else(|| panic!("{code}"));
    assert_eq!(multiplied["frames"][0]["line"], 4);
    assert_eq!(multiplied["frames"][0]["file"], "/src/spin.bpf.c");
    let lines = annotated["lines"].as_array().unwrap();
    let texts: Vec<_> = lines.iter().filter_map(|line| line["text"].as_str()).collect();
    assert!(texts.contains(&"        sum += i * 31;"), "{texts:?}");
    let samples: u64 = lines.iter().map(|line| line["samples"].as_u64().unwrap()).sum();
    assert_eq!(samples, 18);
    scene.ask("report -i perf.data").ok().says("assembly of 1 pieces of code, sources of 1 files");
    // Of another program at the address, no more is known than its name.
    let mut other = Recording::new();
    other.comm(PID, PID, "app", MS);
    other.bpf_program(program, 44, "bpf_prog_0011223344556677_spin", 2 * MS);
    other.kernel_sample(PID, program + 20, 10 * MS).feature(25, PROG_INFO).feature(26, BTF);
    scene.write("perf.data", other.file());
    scene.ask("report -i perf.data").ok().says("assembly of 0 pieces of code, sources of 0 files");
}

/// Code of a perf map has no bytes, and an image has zeros in their place.
#[test]
fn code_without_bytes_has_no_assembly() {
    let scene = Scene::new();
    scene.write("perf-5000007.map", "7f0000000000 40 without\n");
    let mut recording = Recording::new();
    recording.comm(PID, PID, "app", MS).map(PID, ARENA, "//anon", 2 * MS);
    for time in 10..30 {
        recording.sample(PID, CODE + 0xe, time * MS);
    }
    scene.inject(&recording, &[]).clean();
    let done = scene.ask("annotate --no-pager -i out.data without").ok();
    assert!(done.stdout.contains("100.00"), "{}", done.stdout);
    assert!(!done.stdout.contains("add "), "{}", done.stdout);
}
