//! The library does not end a host whose `malloc` returns NULL and that handles this.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The shared library, freshly built: cargo does not build it for its own tests, because they cannot link it.
fn shared_library() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "jitscribe-shared"]);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    assert!(cargo.status().unwrap().success(), "{cargo:?}");
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(Path::parent).unwrap().join("libjitscribe_shared.so");
    assert!(built.is_file(), "no {}", built.display());
    built
}

/// Compiles the host into `dir`, next to the library.
fn compiled(dir: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::copy(shared_library(), dir.join("libjitscribe.so.0")).unwrap();
    symlink("libjitscribe.so.0", dir.join("libjitscribe.so")).unwrap();
    let program = dir.join("exhausted");
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-Wall", "-pthread", "-I"]).arg(root.join("../jitscribe-capi/include"));
    compile.arg("-o").arg(&program).arg(root.join("../../../tests/workloads/hostile/exhausted.c"));
    compile.arg("-L").arg(dir).args(["-ljitscribe", "-Wl,-rpath,$ORIGIN"]);
    let status = compile.status().expect("cc is not installed: run scripts/setup.sh test");
    assert!(status.success(), "{compile:?}: {status}");
    program
}

#[test]
fn a_host_without_memory_lives_and_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let program = compiled(dir.path());
    let mut died = Vec::new();
    for what in ["open", "load", "unwind", "moved", "unload", "fork", "thread"] {
        for settings in
            ["log", "bytes", "unwinders,bytes", "perf-map", "gdb", "gdb,gdb-synchronous", "jitdump"]
        {
            let mut command = Command::new(&program);
            command.arg(what).env("JITSCRIBE", settings).env("JITSCRIBE_DIR", dir.path());
            let output = command.output().unwrap();
            if !output.status.success() || output.stdout != b"lives\n" {
                let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
                died.push(format!("{what}, JITSCRIBE={settings}: {}: {stderr}", output.status));
            }
        }
    }
    assert!(died.is_empty(), "{}", died.join("\n"));

    // Running out of memory is reported in a notice, which itself needs no memory.
    let mut command = Command::new(&program);
    command.arg("open").env("JITSCRIBE", "log").env("JITSCRIBE_DIR", dir.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("notice: ") && said.to_lowercase().contains("memory"), "{said}");
}
