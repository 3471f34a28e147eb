//! Runs the same tests again, in a process with another unwinder.

use std::path::PathBuf;
use std::process::Command;

/// The expected unwinder of the process, so that no test passes by using another one.
pub const EXPECTED: &str = "JITSCRIBE_EXPECTED_UNWINDER";
/// Names of the tests that start such a process.
const OUTER: &str = "with_";

/// With LLVM's libunwind in front of libgcc.
pub fn llvm() -> Command {
    let library = "/usr/lib/llvm-14/lib/libunwind.so.1";
    assert!(std::path::Path::new(library).exists(), "no {library}: see scripts/setup.sh");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.env("LD_PRELOAD", library);
    command
}

/// With all libraries of Debian 13, which `scripts/trixie.sh` unpacks.
pub fn trixie() -> Command {
    let home = |name| std::env::var_os(name).map(PathBuf::from);
    let cache = home("JITSCRIBE_CACHE")
        .or_else(|| home("XDG_CACHE_HOME").map(|at| at.join("jitscribe")))
        .or_else(|| home("HOME").map(|at| at.join(".cache/jitscribe")))
        .expect("a cache");
    let libraries = cache.join("trixie/root/usr/lib/x86_64-linux-gnu");
    let linker = libraries.join("ld-linux-x86-64.so.2");
    assert!(linker.exists(), "no {}: see scripts/setup.sh", linker.display());
    let mut command = Command::new(linker);
    command.arg("--library-path").arg(libraries);
    command.arg(std::env::current_exe().expect("this program"));
    command
}

/// Runs the tests, except those named.
pub fn all_pass(mut command: Command, kind: &str, but: &[&str]) {
    command.args(["--skip", OUTER]).env(EXPECTED, kind);
    for test in but {
        command.args(["--skip", test]);
    }
    let done = command.output().expect("a program");
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{text}\n{}", String::from_utf8_lossy(&done.stderr));
    let passed = text.lines().filter(|line| line.ends_with(" ... ok")).count();
    assert!(passed >= 4, "{text}");
}
