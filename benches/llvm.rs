//! What LLVM's listener for perf takes for each function, and ours, by turns in one process, told of the same objects.
//! `cargo bench -p benches --bench llvm`
//!
//! The program is in C++ (`llvm.cpp`), made with Debian's LLVM 14 and the release build of the library.

use std::path::Path;
use std::process::Command;

use benches::built::run;

const FUNCTIONS: &str = "1000";
const ROUNDS: &str = "30";

fn main() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("llvm");
    let target = made.ancestors().nth(2).expect("the target folder");
    let mut make = Command::new("make");
    make.arg("-C")
        .arg(here.join("../crates/bindings/jitscribe-capi"))
        .args(["--silent", "install"]);
    make.arg(format!("PREFIX={}", made.display()));
    run(make.env("CARGO_TARGET_DIR", target).env("CARGO", env!("CARGO")));

    let config = |arguments: &[&str]| {
        let done = Command::new("llvm-config-14").args(arguments).output();
        let done = done.expect("llvm-config-14: run scripts/setup.sh test");
        let printed = String::from_utf8(done.stdout).expect("UTF-8");
        printed.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let program = made.join("listeners");
    let mut compile = Command::new("c++");
    compile.args(["-std=c++17", "-O2", "-Wall", "-Wextra", "-isystem"]);
    compile.args(config(&["--includedir"])).arg("-I").arg(made.join("include"));
    compile.arg(here.join("llvm.cpp")).arg("-o").arg(&program).arg(made.join("lib/libjitscribe.a"));
    run(compile.args(config(&["--ldflags", "--libs"])).args(["-lpthread", "-ldl"]));

    let dumps = tempfile::tempdir().expect("a folder");
    let mut bench = Command::new(&program);
    run(bench.args([FUNCTIONS, ROUNDS]).env("JITDUMPDIR", dumps.path()).env_remove("JITSCRIBE"));
}
