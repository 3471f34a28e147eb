//! Runs Valgrind, and reads callgrind's output.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The results of a role under Valgrind.
#[derive(Debug)]
pub struct Ran {
    folder: tempfile::TempDir,
    /// Valgrind's output.
    pub said: String,
}

/// Runs this program in a role, under the Valgrind tool that `options` name first.
pub fn run(role: &str, options: &[&str]) -> Ran {
    run_within("", role, options)
}

/// The same, after shell commands in a mount namespace of its own.
pub fn run_within(before: &str, role: &str, options: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    // JITSCRIBE_VALGRIND names another version than the one installed.
    let valgrind = std::env::var_os("JITSCRIBE_VALGRIND").unwrap_or_else(|| "valgrind".into());
    let mut command = if before.is_empty() {
        Command::new(valgrind)
    } else {
        // A user other than root becomes root in the namespace.
        let user_too = if rustix::process::geteuid().is_root() { "-m" } else { "-rm" };
        let mut unshare = Command::new("unshare");
        unshare.args([user_too, "sh", "-ec", &format!("{before}; exec \"$@\""), "sh"]);
        unshare.arg(valgrind);
        unshare
    };
    let output = command
        .args(options.iter().map(|option| option.replace("DIR", folder.path().to_str().unwrap())))
        .arg(std::env::current_exe().unwrap())
        .env("ROLE", role)
        .env("ROLE_DIR", folder.path())
        .current_dir(folder.path())
        .output()
        .unwrap_or_else(|error| panic!("valgrind: {error}; see scripts/setup.sh"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{role} {options:?}: {}\n{said}", output.status);
    Ran { folder, said }
}

impl Ran {
    /// The files whose names begin with a prefix.
    pub fn files(&self, prefix: &str) -> Vec<PathBuf> {
        let there = std::fs::read_dir(self.folder.path()).unwrap();
        let mut paths: Vec<PathBuf> = there.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix));
        paths.sort();
        paths
    }

    /// The content of the only file whose name begins with a prefix.
    pub fn text(&self, prefix: &str) -> String {
        let files = self.files(prefix);
        assert_eq!(files.len(), 1, "{files:?}");
        std::fs::read_to_string(&files[0]).unwrap()
    }
}

/// Callgrind's data about one function.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Instructions by file and line.
    pub lines: BTreeMap<(String, u32), u64>,
    /// Its objects.
    pub objects: BTreeSet<String>,
    /// Calls of it.
    pub calls: u64,
}

impl Function {
    pub fn cost(&self) -> u64 {
        self.lines.values().sum()
    }
}

/// Reads a profile of callgrind that was written with `--compress-strings=no --compress-pos=no`.
pub fn profile(path: &Path) -> BTreeMap<String, Function> {
    let text = std::fs::read(path).unwrap();
    let mut functions: BTreeMap<String, Function> = BTreeMap::new();
    let [mut object, mut file, mut name, mut callee] = [const { String::new() }; 4];
    let mut is_call = false;
    // Of a recursive function, the second and all further calls together have a name of their own.
    let plain = |name: &str| name.trim_end_matches("'2").to_owned();
    for line in String::from_utf8_lossy(&text).lines() {
        match line.split_once('=').unwrap_or(("", line)) {
            ("ob", value) => object = value.to_owned(),
            ("fl" | "fi" | "fe", value) => file = value.to_owned(),
            ("fn", value) => {
                name = plain(value);
                functions.entry(name.clone()).or_default().objects.insert(object.clone());
            }
            ("cfn", value) => callee = plain(value),
            ("calls", value) => {
                let count: u64 = value.split(' ').next().unwrap().parse().unwrap();
                functions.entry(callee.clone()).or_default().calls += count;
                is_call = true;
            }
            ("", numbers) if numbers.starts_with(|first: char| first.is_ascii_digit()) => {
                // The line after a call has the cost of the call.
                let is_own = !std::mem::take(&mut is_call);
                if let Some((line, cost)) = numbers.split_once(' ').filter(|_| is_own) {
                    let place = (file.clone(), line.parse().unwrap());
                    let lines = &mut functions.entry(name.clone()).or_default().lines;
                    *lines.entry(place).or_default() += cost.parse::<u64>().unwrap();
                }
            }
            _ => {}
        }
    }
    functions
}
