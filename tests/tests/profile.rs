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
    /// Both have a name of the same function, which has several.
    alias: usize,
    /// perf has no frame, not even the sample's own address.
    without_stack: usize,
    /// perf leaves out the whole stack, because a frame pointer that is used for something else gave it a return address among the kernel's markers (-4095 to -1).
    discarded: usize,
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
        let kernel = kernel_symbols();
        for chain in chains::parse(&printed) {
            let samples = by_time.get_mut(&(chain.tid, chain.time)).expect("the sample");
            assert!(!samples.is_empty(), "one more sample at {}", chain.time);
            compared.add(&chain, &frames(profile, &samples.remove(0)), &kernel);
        }
        assert!(by_time.values().all(Vec::is_empty), "samples that perf does not have");
        // The others have no more than one frame.
        assert!(compared.discarded <= Perf::installed().discarded_chains(data), "{compared:#?}");
        compared
    }

    fn add(&mut self, chain: &Chain, ours: &[Named], kernel: &BTreeMap<String, u64>) {
        self.samples += 1;
        // Where a sample has no stack, perf leaves out its own address as well.
        if chain.frames.is_empty() && ours.len() == 1 {
            self.without_stack += 1;
            return;
        }
        if chain.frames.is_empty() {
            self.discarded += 1;
            return;
        }
        let lengths = (chain.frames.len(), ours.len());
        if lengths.0 != lengths.1 {
            let names: Vec<_> = ours.iter().map(|frame| &frame.name).collect();
            self.differs(format!(
                "{} and {} frames: {}, {names:?}",
                lengths.0,
                lengths.1,
                chain.line()
            ));
            return;
        }
        for (depth, (frame, ours)) in chain.frames.iter().zip(ours).enumerate() {
            self.frames += 1;
            let offset = frame.symbol.as_ref().and_then(|symbol| symbol.offset);
            // Of a caller, we have an address within the call.
            let same_offset = offset.is_some()
                && [ours.offset, ours.offset.map(|offset| offset + 1)].contains(&offset);
            let address = |name: &str| kernel.get(name);
            match (frame.name(), &ours.name) {
                (None, None) => self.same += 1,
                (Some(name), Some(ours)) if name == ours => self.same += 1,
                (Some(_), _) if depth > 0 && offset == Some(0) => self.behind_call += 1,
                (Some(_), Some(_)) if same_offset => self.alias += 1,
                (Some(name), Some(ours))
                    if address(name).is_some() && address(name) == address(ours) =>
                {
                    self.alias += 1;
                }
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

/// A frame as perf prints it.
struct Named {
    name: Option<String>,
    /// The distance from the beginning of its code.
    offset: Option<u64>,
}

/// The frames as perf prints them, innermost first: with the symbols of codes, without inlined calls.
fn frames(profile: &Profile, sample: &SampleRow) -> Vec<Named> {
    let mut frames = Vec::new();
    for frame in profile.frames_of(sample.stack).filter(|frame| frame.depth == 0) {
        let function = profile.function(frame.function);
        let code = frame.code.map(|code| profile.code(code));
        let name = match (code, function.kind) {
            (_, FunctionKind::End) => continue,
            (_, FunctionKind::Unknown) => None,
            (Some(code), _) => Some(code.symbol),
            (None, _) => Some(function.name),
        };
        let name = name.map(|name| String::from_utf8_lossy(profile.text(name)).into_owned());
        let offset = code.map(|code| frame.address - code.module_address);
        frames.push(Named { name, offset });
    }
    frames
}

/// Their names alone.
fn names(profile: &Profile, sample: &SampleRow) -> Vec<Option<String>> {
    frames(profile, sample).into_iter().map(|frame| frame.name).collect()
}

/// The addresses of the kernel's functions.
fn kernel_symbols() -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string("/proc/kallsyms").expect("the kernel's symbols");
    let symbols = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        Some((words.nth(1)?.to_owned(), address))
    });
    symbols.collect()
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

/// All compilations of the sampled functions are in the profile, in the order of time, and no sample is outside the time of its code.
#[test]
fn compilations_of_the_demo_have_times() {
    let (recording, truth) = demo(&["-k", "mono", "-F", "999", "-g"]);
    let recorded = read(&recording.data());
    let profile = &recorded.profile;
    let mut sampled = 0;
    for sample in profile.samples().iter() {
        let leaf = profile.frames_of(sample.stack).next().expect("a frame");
        let Some(code) = leaf.code.map(|code| profile.code(code)) else { continue };
        if code.process.is_some() {
            assert!(code.loaded.expect("a time") <= sample.time, "{code:?}, {sample:?}");
            assert!(code.gone.is_none_or(|gone| sample.time < gone), "{code:?}, {sample:?}");
            sampled += 1;
        }
    }
    assert!(sampled > 50, "{sampled} samples");
    let mut found: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    let mut generations: BTreeMap<String, Vec<(u32, Option<u64>)>> = BTreeMap::new();
    for code in profile.codes().iter().filter(|code| code.process.is_some()) {
        let symbol = String::from_utf8_lossy(profile.text(code.symbol)).into_owned();
        found.entry(symbol.clone()).or_default().push((code.address, code.size));
        generations.entry(symbol).or_default().push((code.generation, code.loaded));
    }
    let mut several = 0;
    for (symbol, mut places) in found {
        let mut expected = truth.places_of(&symbol);
        places.sort_unstable();
        expected.sort_unstable();
        assert_eq!(places, expected, "{symbol}");
        several += usize::from(places.len() > 1);
    }
    assert!(several > 0, "no function was compiled twice");
    for (symbol, mut generations) in generations {
        generations.sort_unstable();
        assert!(generations.is_sorted_by_key(|(_, loaded)| *loaded), "{symbol}: {generations:?}");
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
        ("rakudo2022", "g.data"),
        ("jsc-b12", "g.data"),
        ("lli14-b12", "g.data"),
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
