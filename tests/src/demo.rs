//! Recordings of the demo JIT.

use std::path::Path;

use crate::jitscribe::demo_jit;
use crate::live::{Recorder, Recording};
use crate::truth::Truth;

/// The file into which the recorded demo writes what it ran.
pub const TRUTH: &str = "truth.json";

/// The demo's command line, with `more` options: its dump, its source and the file `truth` go into `dir`.
pub fn demo(dir: &Path, truth: &str, more: &[&str]) -> Vec<String> {
    demo_with_phases("200", dir, truth, more)
}

/// [`demo`] with phases of so many milliseconds.
pub fn demo_with_phases(phase: &str, dir: &Path, truth: &str, more: &[&str]) -> Vec<String> {
    let dir = dir.to_str().expect("a UTF-8 path").to_owned();
    let program = demo_jit().get_program().to_string_lossy().into_owned();
    let truth = format!("{dir}/{truth}");
    let mut words = vec![program, "--dump-dir".into(), dir.clone(), "--source-dir".into(), dir];
    words.extend(["--truth".into(), truth, "--phase".into(), phase.into()]);
    words.extend(more.iter().map(|&word| word.to_owned()));
    words
}

/// Records the demo, and reads its own record of what it ran.
pub fn record_demo(recorder: Recorder, more: &[&str]) -> (Recording, Truth) {
    let words = demo(recorder.dir(), TRUTH, more);
    let recording = recorder.record(&words);
    let truth = Truth::read(&recording.dir().join(TRUTH));
    (recording, truth)
}

/// The same with these options of perf.
pub fn record_demo_with(options: &[&str]) -> (Recording, Truth) {
    record_demo(Recorder::new().options(options), &[])
}
