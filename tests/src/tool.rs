//! Runs a tool; failures report what was run and what to install.

use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a tool printed, after it succeeded.
#[derive(Debug, Default)]
pub struct ToolOutput {
    /// Its standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Its standard error; bytes that are not UTF-8 are replaced.
    pub stderr: String,
}

/// A command for `program`.
pub fn tool(program: impl AsRef<OsStr>) -> Command {
    let program = program.as_ref();
    let found = if Path::new(program).components().count() > 1 {
        Path::new(program).exists()
    } else {
        std::env::var_os("PATH").is_some_and(|path| {
            std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
        })
    };
    assert!(found, "{} is not installed: run scripts/setup.sh live", program.to_string_lossy());
    Command::new(program)
}

/// Runs `command` to its end and gives its output, whatever its exit code.
pub fn output(command: &mut Command) -> Output {
    match command.output() {
        Ok(output) => output,
        Err(error) => panic!("cannot start {command:?}: {error}"),
    }
}

/// How a tool ended, and what it printed; bytes that are not UTF-8 are replaced.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Runs `command` to its end, and does not expect success.
pub fn ended(command: &mut Command) -> Ended {
    let output = output(command);
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs `command` to its end; a failure is shown with all that it printed.
pub fn run(command: &mut Command) -> ToolOutput {
    let output = output(command);
    succeeded(command, &output)
}

/// What `command` printed; a failure is shown with all of it.
pub fn succeeded(command: &dyn Debug, output: &Output) -> ToolOutput {
    let printed = ToolOutput {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    assert!(
        output.status.success(),
        "{command:?}\nended with {}\n--- stdout, its last lines\n{}\n--- stderr, its last lines\n{}",
        output.status,
        tail(&printed.stdout),
        tail(&printed.stderr),
    );
    printed
}

/// The last lines of a text, enough to see why a tool failed.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// Where `scripts/setup.sh` puts what comes from outside Debian's packages.
pub fn cache() -> PathBuf {
    if let Some(cache) = std::env::var_os("JITSCRIBE_CACHE") {
        return PathBuf::from(cache);
    }
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).unwrap_or_else(|| {
        Path::new(&std::env::var_os("HOME").expect("HOME is set")).join(".cache")
    });
    base.join("jitscribe")
}

/// The value of `PATH` by which the programs of a folder come first.
pub fn path_behind(folder: &Path) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(all).expect("folders without colons")
}

/// A path as an argument among others.
pub fn argument(path: impl AsRef<Path>) -> String {
    path.as_ref().to_str().expect("a UTF-8 path").to_owned()
}

/// The folder of this crate, with its recordings and workloads.
pub fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A program in the cache.
pub fn installed(path: &str) -> PathBuf {
    let path = cache().join(path);
    assert!(path.exists(), "{} is not there: run scripts/setup.sh live", path.display());
    path
}

/// deno, which setup.sh installs.
pub fn deno() -> PathBuf {
    installed("deno-2.9.6/deno")
}

/// bun, which setup.sh installs.
pub fn bun() -> PathBuf {
    installed("bun-1.4.5/bin/bun")
}

/// esbuild, which setup.sh installs.
pub fn esbuild() -> PathBuf {
    installed("linux-x64-0.28.2/bin/esbuild")
}
