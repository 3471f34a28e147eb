//! The runtimes that tests record, at the usual work: `workloads/spin.*`.

use std::path::Path;

use crate::live::workload;
use crate::tool::{argument, installed, run, tool};

/// A command line.
pub type Words = Vec<String>;

fn words(parts: &[&[&str]]) -> Words {
    parts.concat().into_iter().map(str::to_owned).collect()
}

/// The path of a workload, as an argument.
pub fn script(name: &str) -> String {
    argument(workload(name))
}

/// The installed node.
pub fn node(options: &[&str]) -> Words {
    words(&[&["node"], options, &[&script("spin.js")]])
}

/// JavaScriptCore, as WebKitGTK ships it.
pub fn jsc() -> Words {
    words(&[&["jsc", &script("spin.js")]])
}

/// LLVM's interpreter with MCJIT.
pub fn lli() -> Words {
    words(&[&["lli-14", "--jit-kind=mcjit", &script("spin.ll")]])
}

/// CPython 3.13 of Debian 13: trampolines with unwinding information.
pub fn python(options: &[&str]) -> Words {
    let python = argument(installed("trixie/run/python3.13"));
    words(&[&[&python], options, &[&script("spin.py")]])
}

/// wasmtime, driven from Python: the same module is compiled over old addresses again and again.
pub fn wasmtime(profiler: &str) -> Words {
    let python = argument(installed("wasmtime/bin/python3"));
    words(&[&[&python, &script("spin_wasm.py"), profiler]])
}

/// PHP with its tracing JIT compiler.
pub fn php(options: &[&str]) -> Words {
    let settings = [
        "php",
        "-dopcache.enable_cli=1",
        "-dopcache.jit=tracing",
        "-dopcache.jit_buffer_size=64M",
        // A script that changed just now is not jitted otherwise.
        "-dopcache.file_update_protection=0",
    ];
    words(&[&settings, options, &[&script("spin.php")]])
}

/// Erlang, which runs the module `spin` of its working directory.
pub fn erl(options: &[&str]) -> Words {
    let main = ["-noshell", "-s", "spin", "main", "-s", "init", "stop"];
    words(&[&["erl", "+S", "2"], options, &main])
}

/// The same with the usual work, compiled into a folder.
pub fn erlang(folder: &Path, options: &[&str]) -> Words {
    run(tool("erlc").arg("-o").arg(folder).arg(workload("spin.erl")));
    erl(options)
}

/// The installed Java: so many milliseconds of the usual work, compiled into a folder.
pub fn java(folder: &Path, options: &[&str], milliseconds: &str) -> Words {
    run(tool("javac").arg("-d").arg(folder).arg(workload("Spin.java")));
    words(&[&["java"], options, &["Spin", milliseconds]])
}

/// Mono, whose program is compiled into a folder.
pub fn mono(folder: &Path) -> Words {
    let program = folder.join("Spin.exe");
    run(tool("mcs").arg(format!("-out:{}", program.display())).arg(workload("Spin.cs")));
    words(&[&["mono", "--jitmap", "Spin.exe"]])
}
