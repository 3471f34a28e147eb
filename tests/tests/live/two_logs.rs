//! Two code logs in one process, as where a program and a plugin of it each link a copy of the library: both are used.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use end_to_end::jitscribe::{jitscribe, shared_library};
use end_to_end::live::workload;
use end_to_end::running::Running;
use end_to_end::tool::{run, tool};
use tempfile::TempDir;

/// The functions, each announced through one of the copies.
const FUNCTIONS: [&str; 2] = ["of_first_copy", "of_second_copy"];

/// A folder with the program and two copies of the library.
struct Scene(TempDir);

impl Scene {
    fn new() -> Self {
        let scene = Self(TempDir::with_prefix("jitscribe-two-").expect("a folder"));
        for copy in ["first.so", "second.so"] {
            std::fs::copy(shared_library(), scene.path(copy)).expect("a copy");
        }
        let include =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/bindings/jitscribe-capi/include");
        let mut cc = tool("cc");
        cc.args(["-O1", "-Wall", "-Werror", "-o"]).arg(scene.path("two_logs"));
        run(cc.arg("-I").arg(include).arg(workload("two_logs.c")));
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The words of the program's command line. The copies keep their logs in these places.
    fn words(&self, places: [&str; 2], seconds: &str) -> Vec<String> {
        let paths = ["two_logs", "first.so", "second.so"].map(|name| self.path(name));
        let mut words = paths.map(|path| path.to_str().expect("UTF-8").to_owned()).to_vec();
        words.extend([places[0], places[1], seconds].map(str::to_owned));
        words
    }

    /// Starts the program, which runs until it is killed.
    fn start(&self, places: [&str; 2]) -> Running {
        let words = self.words(places, "0");
        let mut program = Command::new(&words[0]);
        program.args(&words[1..]).env("JITSCRIBE_DIR", self.0.path()).stdout(Stdio::piped());
        let mut running = Running::start(&mut program);
        running.wait_for_line("running");
        running
    }

    /// `jitscribe record` with these words, upon which perf shows both functions.
    fn expect_both(&self, words: &[String], what: &str) {
        let data = self.path("perf.data");
        let mut record = jitscribe();
        record.current_dir(self.0.path()).args(["record", "--force", "-F", "999", "-o"]).arg(&data);
        let said = run(record.args(words)).stderr;
        let mut script = tool("perf");
        let shown = run(script.args(["script", "-G", "-F", "ip,sym", "-i"]).arg(&data)).stdout;
        for function in FUNCTIONS {
            let count = shown.lines().filter(|line| line.ends_with(function)).count();
            assert!(count > 0, "{what}: {function}: {count}\n{said}");
        }
        assert!(said.contains("named: 0.0 % before, 100.0 % now"), "{what}: {said}");
    }
}

#[test]
fn both_files_of_a_command_are_used() {
    let scene = Scene::new();
    let mut words = vec!["--".to_owned()];
    words.extend(scene.words(["file", "file"], "0.4"));
    scene.expect_both(&words, "files");
}

#[test]
fn both_logs_of_a_running_process_are_used() {
    let scene = Scene::new();
    for places in [["memory", "memory"], ["memory", "file"], ["file", "memory"]] {
        let process = scene.start(places);
        let pid = process.pid().to_string();
        let words = ["-p", &pid, "--duration", "1.5"].map(str::to_owned);
        scene.expect_both(&words, &places.join(" and "));
        let dump = run(jitscribe().args(["dump", "-p", &pid])).stdout;
        for function in FUNCTIONS {
            assert!(dump.contains(function), "{places:?}: {dump}");
        }
    }
}
