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
