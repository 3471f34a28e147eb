//! Compiles collectors, and runs this program with them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// What a role did.
#[derive(Debug)]
pub struct Ran {
    /// What it printed.
    pub said: String,
    /// What the collector wrote down.
    pub told: Vec<String>,
}

/// The collector, with one of its functions under another name, or whole.
pub fn collector(without: Option<&str>) -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| TempDir::new().unwrap()).path();
    let library = folder.join(format!("collector{}.so", without.unwrap_or_default()));
    if !library.exists() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/collectors/collector.c");
        let mut cc =
            Command::new(std::env::var("JITSCRIBE_CC").unwrap_or_else(|_| "cc".to_owned()));
        cc.args(["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", "-o"]);
        cc.arg(&library).arg(source).args(without.map(|part| format!("-D{part}=Other")));
        let output = cc.output().unwrap_or_else(|error| panic!("cc: {error}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    library
}

/// Runs this program in a role, with a value of the variable that names the collector, and other variables.
pub fn run_with(role: &str, collector: Option<&Path>, variables: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(std::env::current_exe().unwrap());
    run_command(&mut command, role, collector, variables)
}

/// The same for a command that runs this program.
pub fn run_command(
    command: &mut Command,
    role: &str,
    collector: Option<&Path>,
    variables: &[(&str, &str)],
) -> Ran {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log");
    for variable in ["INTEL_JIT_PROFILER64", "INTEL_JIT_PROFILER32"] {
        command.env_remove(variable);
        if let Some(collector) = collector {
            command.env(variable, collector);
        }
    }
    command.env("ROLE", role).env("COLLECTOR_LOG", &log);
    command.env("COLLECTOR_GATE", folder.path().join("gate")).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{role}: {}\n{said}{errors}", output.status);
    let told = std::fs::read_to_string(log).unwrap_or_default();
    Ran { said, told: told.lines().map(str::to_owned).collect() }
}

/// With the whole collector.
pub fn run(role: &str) -> Ran {
    run_with(role, Some(&collector(None)), &[])
}

impl Ran {
    /// The events, without process and thread, and with ids by their order: `#1`, `#2`.
    pub fn events(&self) -> Vec<String> {
        let mut known = HashMap::new();
        let mut short = |id: &str| {
            let number: u32 = id.parse().unwrap();
            // The documentation demands it of ids that are not from `iJIT_GetNewMethodID`.
            assert!(number >= 999, "{number}");
            let next = known.len() + 1;
            format!("#{}", known.entry(number).or_insert(next))
        };
        let calls = self.told.iter().filter(|line| *line != "initialize");
        calls
            .map(|line| {
                let mut words: Vec<String> = line.split(' ').skip(2).map(str::to_owned).collect();
                words[1] = short(&words[1]);
                if words[0] == "inline" {
                    words[3] = short(&words[3]);
                }
                words.join(" ")
            })
            .collect()
    }
}
