//! Runs the same tests again, in a process with another unwinder.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The expected unwinder of the process, so that no test passes by using another one.
pub const EXPECTED: &str = "JITSCRIBE_EXPECTED_UNWINDER";
/// Names of the tests that start such a process.
const OUTER: &str = "with_";

/// LLVM's libunwind, of versions 14 and 19. For another machine than the one the tests are built on, what `scripts/foreign.sh`
/// unpacks, which is where QEMU looks for libraries.
pub fn llvms() -> Vec<PathBuf> {
    let older = "usr/lib/llvm-14/lib/libunwind.so.1";
    match foreign() {
        Some(root) => vec![root.join(older)],
        None => {
            let newer = cache().join("libunwind-19/usr/lib/llvm-19/lib/libunwind.so.1");
            vec![Path::new("/").join(older), newer]
        }
    }
}

/// The folder with the libraries of the machine that QEMU stands for, if it does.
pub fn foreign() -> Option<PathBuf> {
    std::env::var_os("QEMU_LD_PREFIX").map(PathBuf::from)
}

/// With LLVM's libunwind in front of libgcc.
pub fn llvm(library: &Path) -> Command {
    assert!(library.exists(), "no {}: see scripts/setup.sh", library.display());
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.env("LD_PRELOAD", library);
    command
}

/// With all libraries of Debian 13, which `scripts/trixie.sh` unpacks.
pub fn trixie() -> Command {
    let libraries = cache().join("trixie/root/usr/lib/x86_64-linux-gnu");
    let linker = libraries.join("ld-linux-x86-64.so.2");
    assert!(linker.exists(), "no {}: see scripts/setup.sh", linker.display());
    let mut command = Command::new(linker);
    command.arg("--library-path").arg(libraries);
    command.arg(std::env::current_exe().expect("this program"));
    command
}

/// Where `scripts/setup.sh` puts what cannot be installed.
fn cache() -> PathBuf {
    let home = |name| std::env::var_os(name).map(PathBuf::from);
    home("JITSCRIBE_CACHE")
        .or_else(|| home("XDG_CACHE_HOME").map(|at| at.join("jitscribe")))
        .or_else(|| home("HOME").map(|at| at.join(".cache/jitscribe")))
        .expect("a cache")
}

/// Runs the tests of a module, except those named: at least so many.
pub fn all_pass(mut command: Command, module: &str, kind: &str, but: &[&str], least: usize) {
    command.args([module, "--skip", OUTER]).env(EXPECTED, kind);
    for test in but {
        command.args(["--skip", test]);
    }
    let done = command.output().expect("a program");
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{text}\n{}", String::from_utf8_lossy(&done.stderr));
    let passed = text.lines().filter(|line| line.ends_with(" ... ok")).count();
    assert!(passed >= least, "{text}");
}
