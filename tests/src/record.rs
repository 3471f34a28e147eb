//! `jitscribe record`, and what it makes: for one test, or for all that read the same recording.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::chains::Chain;
use crate::folder::{ENOUGH, Folder, shared_folder};
use crate::jitscribe::{java_agent, jitscribe, node_addon, report};
use crate::perf::Perf;
use crate::running::Running;
use crate::sample::Sample;
use crate::tool::run;

/// `jitscribe record` in a folder where the recorded program runs, too. The agent for Java and the addon for node are at hand.
#[derive(Debug)]
pub struct Record {
    folder: Folder,
    command: Command,
}

impl Record {
    /// With these options, in a folder of its own.
    pub fn new(options: &[&str]) -> Self {
        Self::at(Folder::own(), options)
    }

    fn at(folder: Folder, options: &[&str]) -> Self {
        let mut command = jitscribe();
        command.args(["record", "--json", "-o", "it.data"]).args(options);
        command.current_dir(folder.path()).env("JITSCRIBE_JAVA_AGENT", java_agent());
        command.env("JITSCRIBE_NODE_ADDON", node_addon());
        Self { folder, command }
    }

    /// Sets a variable of the command and of the program.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// The folder, for what the program needs there.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Records a program until it ends.
    pub fn program<S: AsRef<OsStr>>(mut self, words: &[S]) -> Recorded {
        self.command.arg("--").args(words);
        self.processes()
    }

    /// Records the processes that the options name, and does something while they are recorded.
    pub fn processes_while(mut self, act: impl FnOnce()) -> Recorded {
        let command = self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let running = Running::start(command);
        act();
        let printed = running.finish();
        Recorded { folder: self.folder, report: report(&printed), said: printed.stderr }
    }

    /// Records the processes that the options name.
    pub fn processes(mut self) -> Recorded {
        let printed = run(&mut self.command);
        Recorded { folder: self.folder, report: report(&printed), said: printed.stderr }
    }
}

/// A recording that `jitscribe record` made.
#[derive(Debug)]
pub struct Recorded {
    folder: Folder,
    /// What it reports with `--json`.
    pub report: Value,
    /// What it and the program printed on standard error.
    pub said: String,
}

impl Recorded {
    /// The recording `name` of a run of the tests, made by the first test that takes it. A test changes none of the files.
    pub fn shared(name: &str, options: &[&str], record: impl FnOnce(Record) -> Self) -> Self {
        let folder = shared_folder(name, |folder| {
            let made = record(Record::at(Folder::Shared(folder.to_owned()), options));
            let samples = made.report["samples"]["samples"].as_u64().expect("a number");
            assert!(samples >= ENOUGH as u64, "only {samples} samples were recorded");
            fs::write(folder.join("report.json"), made.report.to_string()).expect("a file");
            fs::write(folder.join("said"), made.said).expect("a file");
        });
        let read = |name| fs::read_to_string(folder.join(name)).expect("a file");
        let report = serde_json::from_str(&read("report.json")).expect("JSON");
        Self { report, said: read("said"), folder: Folder::Shared(folder) }
    }

    /// The folder in which the program ran.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The recording.
    pub fn data(&self) -> PathBuf {
        self.folder().join("it.data")
    }

    /// The folder with the images.
    pub fn images(&self) -> PathBuf {
        self.folder().join("it.data.jit")
    }

    /// What `--keep-raw` keeps.
    pub fn raw(&self) -> PathBuf {
        self.folder().join("it.data.raw")
    }

    /// The samples, as perf reads them.
    pub fn samples(&self) -> Vec<Sample> {
        Perf::installed().samples(&self.data())
    }

    /// The call chains, as perf reads them.
    pub fn chains(&self) -> Vec<Chain> {
        Perf::installed().chains(&self.data())
    }
}
