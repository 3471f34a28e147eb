//! Profiles of recordings of every form, sample by sample and frame by frame against perf.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use end_to_end::demo::{TRUTH, demo, record_demo_with};
use end_to_end::jitscribe::inject;
use end_to_end::live::Recorder;
use end_to_end::profiles::{Compared, expect_same_samples, read, stacks};
use end_to_end::recordings::{DEMO_COPIED, FRAME_POINTERS, recorded_node};
use end_to_end::runtimes::script;
use end_to_end::tool::run;
use profile::Profile;

/// Checks the samples and stacks of a recording with images, and that the recording as perf wrote it leads to the same profile. Returns the profile.
fn expect_equal(raw: &Path, injected: &Path) -> Profile {
    let recorded = read(injected);
    assert!(recorded.warnings.is_empty(), "{:?}", recorded.warnings);
    expect_same_samples(injected, &recorded.profile);
    Compared::of(injected, &recorded.profile).expect_equal(100);
    assert_eq!(stacks(&read(raw).profile), stacks(&recorded.profile));
    recorded.profile
}

/// The jitted functions with samples.
fn jitted(profile: &Profile) -> BTreeSet<String> {
    let codes = profile.codes().iter().filter(|code| code.process.is_some());
    codes.map(|code| String::from_utf8_lossy(profile.text(code.symbol)).into_owned()).collect()
}

#[test]
fn several_events() {
    let events = [FRAME_POINTERS, &["-e", "cpu-clock", "-e", "page-faults"]].concat();
    let (recording, _) = record_demo_with(&events);
    let profile = expect_equal(&recording.data(), &recording.ours().data);
    let mut counts: BTreeMap<&[u8], usize> = BTreeMap::new();
    for sample in profile.samples().iter() {
        *counts.entry(profile.text(profile.event(sample.event).name)).or_default() += 1;
    }
    assert!(counts.len() == 2 && counts.values().all(|count| *count > 2), "{counts:?}");
}

#[test]
fn several_processes_and_threads() {
    let recorder = Recorder::new();
    let mut words = demo(recorder.dir(), TRUTH, &[]);
    words.extend(["&".into(), "node".into(), "--perf-prof".into()]);
    words.push(script("spin.js"));
    let script = format!("{}; wait", words.join(" "));
    let recording = recorder.record(&["sh", "-c", &script]);
    let profile = expect_equal(&recording.data(), &recording.ours().data);
    let sampled: BTreeSet<(u32, u32)> = profile
        .samples()
        .iter()
        .map(|sample| {
            let thread = profile.thread(sample.thread);
            (profile.process(thread.process).pid, thread.tid)
        })
        .collect();
    let pids: BTreeSet<u32> = sampled.iter().map(|(pid, _)| *pid).collect();
    assert_eq!(pids, recording.pids());
    // node compiles in threads.
    assert!(pids.len() >= 2 && sampled.len() > pids.len(), "{sampled:?}");
    let names = jitted(&profile);
    for part in ["collatz", "spin.js"] {
        assert!(names.iter().any(|name| name.contains(part)), "no {part}: {names:?}");
    }
}

#[test]
fn the_whole_machine() {
    let recorder = Recorder::new().options(&["-k", "mono", "-F", "499", "-g", "-a"]);
    let words = demo(recorder.dir(), TRUTH, &[]);
    let recording = recorder.record(&words);
    let injected = recording.ours().data;
    let recorded = read(&injected);
    // What else runs on the machine may be gone, or have been replaced, when names are looked up.
    expect_same_samples(&injected, &recorded.profile);
    let profile = &recorded.profile;
    let mut demo = BTreeSet::new();
    for process in profile.processes() {
        let own = recording.dir().join(format!("jit-{}.dump", process.pid));
        demo.extend(own.exists().then_some(process.pid));
    }
    assert_eq!(demo.len(), 1, "the demo was recorded");
    assert!(profile.processes().len() > 1, "nothing but the demo was recorded");
    Compared::of_processes(&injected, profile, &demo).expect_equal(100);
    assert!(jitted(profile).iter().any(|name| name.contains("collatz")));
}

#[test]
fn compressed() {
    let (recording, _) = record_demo_with(&[FRAME_POINTERS, &["-z"]].concat());
    expect_equal(&recording.data(), &recording.ours().data);
}

/// Through a pipe, and as a directory of several threads.
#[test]
fn other_forms_of_recordings() {
    for (options, name) in
        [(&["-o", "-"][..], "piped.data"), (&["--threads", "-e", "cpu-clock"], "perf.data")]
    {
        let recorder = Recorder::new();
        let raw = recorder.dir().join(name);
        // A later -o wins over the recorder's own.
        let mut record = recorder.command();
        record.args(options).arg("--").args(demo(recorder.dir(), TRUTH, &[]));
        let is_piped = name == "piped.data";
        if is_piped {
            record.stdout(File::create(&raw).expect("a file"));
        }
        run(record.stderr(Stdio::null()));
        assert_eq!(raw.is_dir(), !is_piped, "perf record --threads writes a directory");
        let injected = recorder.dir().join("ours.data");
        inject::<_, &str>(&raw, &injected, []);
        let profile = expect_equal(&raw, &injected);
        assert!(jitted(&profile).iter().any(|name| name.contains("collatz")), "{name}");
    }
}

/// Native programs have no images, so the recording is read as perf wrote it.
#[test]
fn without_any_jit() {
    for options in [&["-z"][..], &["--threads"], &["-o", "-"]] {
        // By period: a sample counts for as much.
        let by_period = ["-k", "mono", "-c", "200000", "-g", "-e", "cpu-clock"];
        let recorder = Recorder::new().options(&by_period);
        let data: PathBuf = recorder.dir().join("piped.data");
        let mut command = recorder.command();
        let program = ["--", "sh", "-c", "head -c 60000000 /dev/zero | sha256sum >&2"];
        command.args(options).args(program);
        let is_piped = options.contains(&"-");
        if is_piped {
            command.stdout(File::create(&data).expect("a file"));
        }
        run(command.stderr(Stdio::null()));
        let data = if is_piped { data } else { recorder.dir().join("perf.data") };
        let profile = read(&data).profile;
        expect_same_samples(&data, &profile);
        Compared::of(&data, &profile).expect_equal(100);
    }
}

/// Which addresses of the process had different codes, as far as the profile lists them.
fn replaced(profile: &Profile) -> impl Fn(u64) -> bool + '_ {
    let codes = || profile.codes().iter().filter(|code| code.process.is_some());
    move |address| {
        let is_there = |code: &&profile::Code| {
            address.checked_sub(code.address).is_some_and(|into| into < code.size)
        };
        codes().filter(is_there).count() > 1
    }
}

#[test]
fn copied_stacks_of_the_demo() {
    let (recording, truth) = DEMO_COPIED.with_truth();
    let data = recording.ours().data;
    let recorded = read(&data);
    let is_replaced = |address| truth.is_reused(address);
    Compared::of_copied(&data, &recorded.profile, &is_replaced).expect_equal_copies(100);
}

#[test]
fn copied_stacks_of_node() {
    let data = recorded_node().data();
    let recorded = read(&data);
    expect_same_samples(&data, &recorded.profile);
    let compared = Compared::of_copied(&data, &recorded.profile, &replaced(&recorded.profile));
    compared.expect_equal_copies(100);
}
