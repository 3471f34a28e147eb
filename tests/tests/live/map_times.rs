//! A perf map that is older than its process is not that of the process.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use end_to_end::jitscribe::{jitscribe, json};
use end_to_end::live::Recorder;
use end_to_end::tool::{run, tool};

/// A map in `/tmp` that is removed in the end.
struct Map(PathBuf);

impl Map {
    fn of(pid: u32) -> Self {
        Self(format!("/tmp/perf-{pid}.map").into())
    }

    /// Sets when it was last changed.
    fn change(&self, time: SystemTime) {
        let file = OpenOptions::new().write(true).open(&self.0).expect("the map");
        file.set_modified(time).expect("a new time");
    }

    /// Injects the recording in this folder, and expects the map to be used, or else to be reported as an earlier process's.
    fn expect_used(&self, is_used: bool, folder: &Path, options: &[&str]) {
        let mut inject = jitscribe();
        inject.args(["inject", "--json", "--allow-empty", "--force"]).args(options);
        inject.args(["-i", "perf.data", "-o", "out.data"]).current_dir(folder);
        let report = json(&mut inject);
        let path = self.0.to_str().expect("a UTF-8 path");
        let sources = report["sources"].as_array().expect("sources");
        let count = sources.iter().filter(|source| source["path"] == path).count();
        let warnings = report["warnings"].as_array().expect("warnings");
        let warnings = warnings.iter().filter_map(|text| text.as_str());
        let reason = "last changed before the recording began";
        let reported =
            warnings.filter(|text| text.starts_with(path) && text.contains(reason)).count();
        assert_eq!((count, reported), if is_used { (1, 0) } else { (0, 1) }, "{report:#}");
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

fn an_hour_ago() -> SystemTime {
    SystemTime::now() - Duration::from_secs(3600)
}

#[test]
fn a_map_that_is_older_than_its_process_is_left_out() {
    let script =
        "echo 10000 1000 old >/tmp/perf-$$.map; i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done";
    let recording = Recorder::new().record(&["sh", "-c", script]);
    let map = Map::of(recording.pid());
    map.expect_used(true, recording.dir(), &[]);
    map.change(an_hour_ago());
    map.expect_used(false, recording.dir(), &[]);
    let named = format!("--perf-map={}={}", recording.pid(), map.0.display());
    map.expect_used(true, recording.dir(), &[&named]);
    // The wall clock was set back while perf recorded: then the map's time proves nothing.
    let data = OpenOptions::new().write(true).open(recording.data()).expect("the recording");
    data.set_modified(an_hour_ago()).expect("a new time");
    map.expect_used(true, recording.dir(), &[]);
}

#[test]
fn an_old_map_of_a_process_that_is_as_old_is_used() {
    let mut child = tool("sh").args(["-c", "while :; do :; done"]).spawn().expect("started");
    let map = Map::of(child.id());
    std::fs::write(&map.0, "10000 1000 old\n").expect("a map");
    map.change(an_hour_ago());
    let recorder = Recorder::new();
    run(recorder.command().args(["-p", &child.id().to_string(), "--", "sleep", "0.2"]));
    child.kill().expect("killed");
    child.wait().expect("ended");
    map.expect_used(true, recorder.dir(), &[]);
}
