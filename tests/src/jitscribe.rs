//! The command under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::tool::{ToolOutput, path_behind, run, tool};

/// A command for `jitscribe`, without settings of the user: the one that `JITSCRIBE_BIN` names, else it is built from the
/// workspace.
pub fn jitscribe() -> Command {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let mut command = tool(BUILT.get_or_init(|| match std::env::var_os("JITSCRIBE_BIN") {
        Some(elsewhere) => elsewhere.into(),
        None => build("jitscribe-cli", "jitscribe"),
    }));
    command.env_remove("JITSCRIBE").env_remove("JITSCRIBE_DIR").env_remove("JITSCRIBE_LIMIT");
    command
}

/// What a command with `--json` prints.
pub fn json(command: &mut Command) -> Value {
    serde_json::from_str(&run(command).stdout).expect("JSON")
}

/// What a command prints that writes a line of JSON for each of several values.
pub fn json_lines(command: &mut Command) -> Vec<Value> {
    let printed = run(command).stdout;
    printed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The same, with interrupts as a terminal's foreground job has them: a shell's background job has them ignored, and what it
/// starts inherits that.
pub fn interruptible_jitscribe() -> Command {
    let mut command = tool("env");
    command.arg("--default-signal=INT").arg(jitscribe().get_program());
    command
}

/// A command for the demo JIT: the one that `DEMO_JIT_BIN` names, else it is built as well, which
/// may take minutes where its own JIT compiler was never built.
pub fn demo_jit() -> Command {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    tool(BUILT.get_or_init(|| match std::env::var_os("DEMO_JIT_BIN") {
        Some(elsewhere) => elsewhere.into(),
        None => build("demo-jit", "demo-jit"),
    }))
}

/// A command for `jitscribe fleet`, whose program is the one that `JITSCRIBE_FLEET_BIN` names, else it is built, which takes minutes the first time.
pub fn fleet() -> Command {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = BUILT.get_or_init(|| match std::env::var_os("JITSCRIBE_FLEET_BIN") {
        Some(elsewhere) => elsewhere.into(),
        None => build_fleet(),
    });
    // The command looks for it on the PATH.
    let path = path_behind(program.parent().expect("a folder"));
    let mut command = jitscribe();
    command.env("PATH", path).arg("fleet");
    command
}

/// Builds the program of `jitscribe fleet`, which is a workspace of its own.
#[expect(clippy::print_stderr, reason = "who waits for a test should know what for")]
fn build_fleet() -> PathBuf {
    eprintln!("building jitscribe-fleet");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let target = workspace.join("target/fleet");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--locked"]).current_dir(workspace.join("fleet"));
    run(cargo.arg("--target-dir").arg(&target));
    target.join("debug/jitscribe-fleet")
}

/// The agent for Java, which is built with the tests.
pub fn java_agent() -> PathBuf {
    built_with_tests("libjitscribe_jvmti.so")
}

/// The addon for node, too.
pub fn node_addon() -> PathBuf {
    built_with_tests("libjitscribe_node.so")
}

fn built_with_tests(name: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("a path");
    let library = tests.with_file_name(name);
    assert!(library.is_file(), "no {}", library.display());
    library
}

/// The library that C programs link: the one that `JITSCRIBE_SHARED` names, else it is built from the workspace.
pub fn shared_library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| match std::env::var_os("JITSCRIBE_SHARED") {
        Some(elsewhere) => elsewhere.into(),
        None => build("jitscribe-shared", "jitscribe_shared"),
    })
}

/// Builds a binary or a shared library of the workspace in the profile of the tests, and returns its path.
#[expect(clippy::print_stderr, reason = "who waits for a test should know what for")]
fn build(package: &str, target: &str) -> PathBuf {
    eprintln!("building {target}");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--message-format", "json-render-diagnostics"]);
    cargo.args(["--package", package]).current_dir(env!("CARGO_MANIFEST_DIR"));
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    run(&mut cargo)
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == target)
        // The library of the same name is built on the way.
        .filter(|message| {
            ["bin", "cdylib"].iter().any(|kind| message["target"]["kind"][0] == *kind)
        })
        .find_map(|message| message["filenames"][0].as_str().map(PathBuf::from))
        .unwrap_or_else(|| panic!("cargo built no {target}"))
}

/// `jitscribe inject -i INPUT -o OUTPUT OPTIONS…`, which has to succeed.
pub fn inject<I, S>(input: &Path, output: &Path, options: I) -> ToolOutput
where
    I: IntoIterator<Item = S>,
    S: AsRef<std::ffi::OsStr>,
{
    let mut command = jitscribe();
    // What a test expects to be named it says itself.
    command
        .args(["inject", "--allow-empty"])
        .arg("-i")
        .arg(input)
        .arg("-o")
        .arg(output)
        .args(options);
    run(&mut command)
}

/// Runs `jitscribe callgrind` on a profile, and gives what it reports with `--json`.
pub fn callgrind<S: AsRef<std::ffi::OsStr>>(profile: &Path, options: &[S]) -> Value {
    let mut command = jitscribe();
    command.args(["callgrind", "--json", "--force"]).args(options).arg(profile);
    json(&mut command)
}

/// The library for `LD_PRELOAD`: the one that `JITSCRIBE_PRELOAD` names, else it is built from the workspace.
pub fn preload() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| match std::env::var_os("JITSCRIBE_PRELOAD") {
        Some(elsewhere) => elsewhere.into(),
        None => build("jitscribe-preload", "jitscribe_preload"),
    })
}

/// The report of a command with `--json`, behind what the recorded program printed.
pub fn report(printed: &ToolOutput) -> Value {
    let json = printed.stdout.find("{\n").map(|at| &printed.stdout[at..]).expect("JSON");
    serde_json::from_str(json).expect("JSON")
}
