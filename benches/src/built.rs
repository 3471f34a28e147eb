//! Builds programs and libraries to be measured.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The release build of the library for `LD_PRELOAD`, and the C program `NAME.c` of this folder. `made` is the folder for what benchmarks write, in the target
/// folder (`CARGO_TARGET_TMPDIR`).
///
/// # Panics
/// If they cannot be built.
pub fn bridge_and_program(name: &str, made: &Path) -> (PathBuf, PathBuf) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = made.parent().expect("the target folder");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--release", "-p", "jitscribe-preload"]);
    run(build.arg("--target-dir").arg(target).current_dir(here.join("..")));
    let program = made.join(name);
    let source = here.join(format!("{name}.c"));
    run(Command::new("cc").arg("-O2").arg("-o").arg(&program).arg(source));
    (target.join("release/libjitscribe_preload.so"), program)
}

/// Runs a command, which prints what it likes.
///
/// # Panics
/// If it fails.
pub fn run(command: &mut Command) {
    let done = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.success(), "{command:?}: {done}");
}

/// The figures that a command prints.
///
/// # Panics
/// If it fails, or prints something else.
pub fn figures(command: &mut Command) -> Vec<f64> {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let Output { status, stdout, .. } = done;
    assert!(status.success(), "{command:?}: {status}");
    let printed = String::from_utf8(stdout).expect("figures");
    printed.split_whitespace().map(|figure| figure.parse().expect("a figure")).collect()
}
