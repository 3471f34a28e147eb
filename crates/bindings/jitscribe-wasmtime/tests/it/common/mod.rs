//! Modules to compile, and reading a log as another process does.

#![allow(dead_code, reason = "each test program uses a part")]

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output};

use code_log::Snapshot;
use jitdump::{CodeEvent, CodeLoad, Dump};
use jitscribe::Scribe;

/// Functions with a plain name, with a name that needs escaping, and without; calls into and out of
/// the module.
pub const MODULE: &str = r#"(module $spin
  (import "host" "tell" (func $tell (param i32)))
  (memory 1)
  (func $fib (export "fib") (param i32) (result i32)
    (if (result i32) (i32.lt_s (local.get 0) (i32.const 2))
      (then (local.get 0))
      (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
                     (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
  (func (@name "größe <of> \"it\" all") (export "grow") (param i32)
    (call $tell (memory.grow (local.get 0))))
  (func (export "nameless") (param f64) (result f64) (f64.sqrt (local.get 0))))"#;

/// The log of `scribe`, read through a descriptor of its own.
pub fn snapshot(scribe: Scribe) -> Snapshot {
    let fd = scribe.log_fd().expect("a log in a file").try_clone_to_owned().unwrap();
    code_log::snapshot(&File::from(fd)).unwrap()
}

/// The codes of a dump, which must have no errors.
pub fn codes(dump: &[u8]) -> Vec<CodeLoad<'_>> {
    let events = Dump::parse(dump).unwrap().codes().map(|event| event.unwrap());
    events
        .filter_map(|event| match event {
            CodeEvent::Load(code) => Some(code),
            _ => None,
        })
        .collect()
}

/// `lines.ll` as a linked module with DWARF, made by LLVM.
pub fn module_with_lines(folder: &Path) -> Vec<u8> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/workloads/lines.ll");
    let (object, module) = (folder.join("lines.o"), folder.join("lines.wasm"));
    run(Command::new("llc-14")
        .args(["-mtriple=wasm32", "-O2", "-filetype=obj", source, "-o"])
        .arg(&object));
    run(Command::new("wasm-ld-14")
        .args(["--no-entry", "--export-all", "-o"])
        .args([&module, &object]));
    std::fs::read(module).unwrap()
}

/// Runs a tool, which must exist and succeed.
pub fn run(command: &mut Command) -> String {
    let done = command.output();
    let Output { status, stdout, stderr } =
        done.unwrap_or_else(|e| panic!("{command:?}: {e}: run scripts/setup.sh test"));
    assert!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}
