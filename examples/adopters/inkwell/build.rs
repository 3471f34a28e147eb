//! Compiles the listener, with the flags of the LLVM that inkwell links.

use std::process::Command;

fn main() {
    let printed =
        Command::new("llvm-config-14").arg("--includedir").output().expect("llvm-config-14");
    let includes = String::from_utf8(printed.stdout).expect("a path");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .include("../../../crates/bindings/jitscribe-capi/include")
        .flag("-isystem")
        .flag(includes.trim())
        .file("src/listener.cpp")
        .compile("listener");
    println!("cargo::rerun-if-changed=src/listener.cpp");
}
