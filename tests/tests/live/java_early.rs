//! Code that runs before HotSpot reports it.

use std::fs;
use std::path::Path;

use end_to_end::java::{Jdk, address, name};
use end_to_end::jitscribe::{jitscribe, json_lines};
use end_to_end::on_each_jdk;
use end_to_end::record::Record;
use serde_json::Value;

on_each_jdk! { samples_before_a_method_is_told_have_its_name }

/// A code as the log has it.
struct Load {
    start: u64,
    end: u64,
    time: u64,
    name: String,
}

/// The codes of the only dump below a folder, by the time of their announcement.
fn loads(folder: &Path) -> Vec<Load> {
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    // Not the memory that was read.
    let is_dump = |path: &std::path::PathBuf| {
        path.extension().is_some_and(|end| end == "dump") && !path.ends_with("memory.dump")
    };
    let dumps: Vec<_> = entries.filter(is_dump).collect();
    assert_eq!(dumps.len(), 1, "{dumps:?}");
    let events = json_lines(jitscribe().args(["dump", "--json"]).args(&dumps)).into_iter();
    let loads = events.filter(|event: &Value| event["event"] == "load").map(|event| {
        let start = address(&event["address"]);
        Load {
            start,
            end: start + event["size"].as_u64().expect("a size"),
            time: event["time"].as_u64().expect("a time"),
            name: name(&event).to_owned(),
        }
    });
    let mut loads: Vec<_> = loads.collect();
    loads.sort_by_key(|load| load.time);
    loads
}

/// Early samples that are enough to believe that they are looked at.
const ENOUGH: usize = 20;
/// How often a recording is made until there are. On a busy machine one has few samples, and of these few are early.
const RECORDINGS: usize = 20;

#[expect(clippy::print_stdout, reason = "the figures of docs/runtimes/java.md")]
fn samples_before_a_method_is_told_have_its_name(jdk: &Jdk) {
    let mut early = 0;
    let mut recordings = 0;
    while early < ENOUGH && recordings < RECORDINGS {
        let (found, longest, all) = early_samples(jdk);
        println!("{found} of {all} samples, up to {} us before", longest / 1000);
        early += found;
        recordings += 1;
    }
    assert!(early >= ENOUGH, "only {early} samples were early in {recordings} recordings");
}

/// Checks the names of early samples in one recording: how many there are, how many nanoseconds before, and all samples.
fn early_samples(jdk: &Jdk) -> (usize, u64, usize) {
    let record =
        Record::new(&["-F", "4999", "--call-graph", "fp", "--keep-raw"]).env("PATH", jdk.path());
    jdk.compile("Tiers.java", record.folder());
    // Copies of a class, each compiled again.
    let recorded = record.program(&["java", "Tiers", "4000", "churn"]);
    let (loads, samples) = (loads(&recorded.raw()), recorded.samples());
    // Addresses at which nothing was known before, and code soon afterwards.
    let (mut early, mut longest) = (0, 0);
    for sample in &samples {
        let mut there = loads.iter().filter(|load| (load.start..load.end).contains(&sample.ip));
        let Some(first) = there.next() else { continue };
        let ahead = first.time.saturating_sub(sample.time);
        if ahead == 0 || ahead > 100_000_000 {
            continue;
        }
        assert_eq!(sample.name(), Some(&*first.name), "{ahead} ns before it was told: {sample}");
        early += 1;
        longest = longest.max(ahead);
    }
    (early, longest, samples.len())
}
