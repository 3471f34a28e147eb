//! Profiles of recordings against perf's own reading of them, and against the demo's record of what it ran.

use std::collections::BTreeMap;
use std::path::Path;

use end_to_end::chains::{self, Chain, Frame};
use end_to_end::corpus::Corpus;
use end_to_end::jitscribe::{demo_jit, inject};
use end_to_end::live::{Recorder, Recording, workload};
use end_to_end::perf::Perf;
use end_to_end::tool::run;
use end_to_end::truth::Truth;
use profile::{FunctionKind, Profile, SampleRow};
use profile_recording::{Options, RecordedProfile};

fn read(data: &Path) -> RecordedProfile<'static> {
    profile_recording::read(data, &Options::default(), &|_| {}).expect("a recording")
}

/// What perf 6.1 and the profile say of the same frames.
#[derive(Debug, Default)]
struct Compared {
    samples: usize,
    frames: usize,
    /// Both have the same name, or none.
    same: usize,
    /// perf looks up the address that a call returns to, which is behind the function if the call was its last instruction.
    behind_call: usize,
    /// perf has no name.
    gained: usize,
    /// Other differences, with their number.
    other: BTreeMap<String, usize>,
}

impl Compared {
    /// Compares the stacks of all samples, by thread and time.
    fn of(data: &Path, profile: &Profile) -> Self {
        let fields = "comm,pid,tid,time,ip,sym,symoff,dso";
        let mut command = Perf::installed().command();
        command.args(["script", "--ns", "--no-inline", "--no-demangle", "--max-stack", "512"]);
        let printed = run(command.args(["-F", fields, "-i"]).arg(data)).stdout;
        let mut by_time: BTreeMap<(u32, u64), Vec<SampleRow>> = BTreeMap::new();
        for sample in profile.samples().iter() {
            let tid = profile.thread(sample.thread).tid;
            by_time.entry((tid, sample.time)).or_default().push(sample);
        }
        let mut compared = Self::default();
        for chain in chains::parse(&printed) {
            let samples = by_time.get_mut(&(chain.tid, chain.time)).expect("the sample");
            assert!(!samples.is_empty(), "one more sample at {}", chain.time);
            compared.add(&chain, &names(profile, &samples.remove(0)));
        }
        assert!(by_time.values().all(Vec::is_empty), "samples that perf does not have");
        compared
    }

    fn add(&mut self, chain: &Chain, ours: &[Option<String>]) {
        self.samples += 1;
        let lengths = (chain.frames.len(), ours.len());
        if lengths.0 != lengths.1 {
            self.differs(format!("{} and {} frames: {}", lengths.0, lengths.1, chain.line()));
            return;
        }
        for (depth, (frame, ours)) in chain.frames.iter().zip(ours).enumerate() {
            self.frames += 1;
            let offset = frame.symbol.as_ref().and_then(|symbol| symbol.offset);
            match (frame.name(), ours) {
                (None, None) => self.same += 1,
                (Some(name), Some(ours)) if name == ours => self.same += 1,
                (Some(_), _) if depth > 0 && offset == Some(0) => self.behind_call += 1,
                (None, Some(_)) => self.gained += 1,
                (name, ours) => {
                    let Frame { dso, .. } = frame;
                    self.differs(format!("{name:?} and {ours:?} in {dso}"));
                }
            }
        }
    }

    fn differs(&mut self, how: String) {
        *self.other.entry(how).or_default() += 1;
    }

    /// At least so many samples were compared, and nothing differs but what is explained.
    #[track_caller]
    fn expect_equal(&self, samples: usize) {
        assert!(self.samples >= samples && self.frames >= self.samples, "{self:#?}");
        assert!(self.other.is_empty(), "{self:#?}");
        assert!(
            self.behind_call * 20 <= self.frames && self.gained * 20 <= self.frames,
            "{self:#?}"
        );
    }
}

/// The names of the frames as perf prints them, innermost first: the symbols of codes, without inlined calls.
fn names(profile: &Profile, sample: &SampleRow) -> Vec<Option<String>> {
    let mut names = Vec::new();
    for frame in profile.frames_of(sample.stack).filter(|frame| frame.depth == 0) {
        let function = profile.function(frame.function);
        let name = match (frame.code, function.kind) {
            (_, FunctionKind::End) => continue,
            (_, FunctionKind::Unknown) => None,
            (Some(code), _) => Some(profile.code(code).symbol),
            (None, _) => Some(function.name),
        };
        names.push(name.map(|name| String::from_utf8_lossy(profile.text(name)).into_owned()));
    }
    names
}

/// A recording of the demo, and its own record of what it ran.
fn demo(options: &[&str]) -> (Recording, Truth) {
    let recorder = Recorder::new().options(options);
    let dir = recorder.dir().to_str().expect("a UTF-8 path").to_owned();
    let program = demo_jit().get_program().to_string_lossy().into_owned();
    let truth = format!("{dir}/truth.json");
    let words = [
        program.as_str(),
        "--dump-dir",
        &dir,
        "--source-dir",
        &dir,
        "--truth",
        &truth,
        "--phase",
        "200",
    ];
    let recording = recorder.record(&words);
    let truth = Truth::read(&recording.dir().join("truth.json"));
    (recording, truth)
}

/// The functions and lines at the innermost address of each sample are those that the demo recorded.
fn expect_truth(profile: &Profile, truth: &Truth, samples: usize) {
    let mut checked = 0;
    let mut inlined = 0;
    for sample in profile.samples().iter() {
        let Some(leaf) = profile.frames_of(sample.stack).next() else { continue };
        let Some(code) = leaf.code.map(|code| profile.code(code)) else { continue };
        if profile.function(code.function).kind != FunctionKind::Jitted {
            continue;
        }
        let ip = leaf.address - code.module_address + code.address;
        let expected = truth.inline_chain(ip, sample.time).expect("code of the demo");
        let mut found = Vec::new();
        for frame in profile.frames_of(sample.stack) {
            let name = profile.function_name(frame.function);
            found.push((String::from_utf8_lossy(name).into_owned(), u64::from(frame.line)));
            if frame.depth == 0 {
                break;
            }
        }
        assert_eq!(found, expected, "at {ip:#x}, {}", sample.time);
        checked += 1;
        inlined += usize::from(found.len() > 1);
    }
    assert_eq!(checked, samples, "samples in code of the demo");
    assert!(checked > 50 && inlined > 10, "{checked} samples, {inlined} in inlined calls");
}

#[test]
fn the_demos_functions_lines_and_inlined_calls_are_those_it_recorded() {
    for options in [
        &["-k", "mono", "-F", "999", "-g"][..],
        &["-k", "mono", "-F", "999", "--call-graph", "dwarf,4096"],
    ] {
        let (recording, truth) = demo(options);
        let ours = recording.ours();
        let recorded = read(&ours.data);
        assert!(recorded.warnings.is_empty(), "{:?}", recorded.warnings);
        let covered = ours.samples.iter().filter(|sample| truth.covers(sample.ip, sample.time));
        expect_truth(&recorded.profile, &truth, covered.count());
        // The recording as perf wrote it leads to the same profile.
        let raw = read(&recording.data());
        let count = |profile: &Profile| {
            let mut all: BTreeMap<Vec<Option<String>>, usize> = BTreeMap::new();
            for sample in profile.samples().iter() {
                *all.entry(names(profile, &sample)).or_default() += 1;
            }
            all
        };
        assert_eq!(count(&raw.profile), count(&recorded.profile));
    }
}

#[test]
fn stacks_of_the_demo_are_perfs() {
    let (recording, _) = demo(&["-k", "mono", "-F", "999", "-g"]);
    let data = recording.ours().data;
    Compared::of(&data, &read(&data).profile).expect_equal(200);
}

#[test]
fn stacks_of_node_are_perfs() {
    let script = workload("spin.js");
    let script = script.to_str().expect("a UTF-8 path");
    let recording = Recorder::new().record(&["node", "--perf-prof", script]);
    let data = recording.ours().data;
    Compared::of(&data, &read(&data).profile).expect_equal(200);
}

/// The programs and libraries of these recordings are not on this machine: the jitted code is named all the same.
#[test]
fn stacks_of_the_corpus_are_perfs() {
    for (name, recording) in [
        ("node18-b12", "g.data"),
        ("php82-jitdebug32", "g.data"),
        ("erl25-map", "g.data"),
        ("java17-perfmap", "g.data"),
        ("py313-perf_jit-dwarf", "g.data"),
    ] {
        let corpus = Corpus::unpack(name);
        let data = corpus.scratch().join("ours.data");
        let folder = corpus.dir();
        let folder = folder.to_str().expect("a UTF-8 path");
        inject(&corpus.file(recording), &data, ["--aux-dir", folder]);
        let compared = Compared::of(&data, &read(&data).profile);
        compared.expect_equal(50);
    }
}
