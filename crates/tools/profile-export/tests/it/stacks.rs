//! Each format is read again, by readers that share nothing with the writers: all stacks are in it as often as in the profile.

use std::collections::{BTreeMap, BTreeSet};

use crate::readers::{Line, Stacks};
use printable::Escaped;
use profile::{
    Activities, Builder, Code, Frame, Function, FunctionId, FunctionKey, FunctionKind, Module,
    ModuleKind, Profile, SampleRow, Selection, StackId, ThreadId,
};
use profile_export::{Format, Options};
use proptest::prelude::*;
use serde_json::Value;

fn written(format: Format, profile: &Profile, options: &Options) -> Vec<u8> {
    let mut bytes = Vec::new();
    format.write(profile, options, &mut bytes).expect("memory");
    bytes
}

/// The stacks that are read again from a profile in a format.
fn read(format: Format, profile: &Profile, options: &Options) -> Stacks {
    crate::readers::stacks(format, &written(format, profile, options))
}

/// How often each stack is in a profile.
fn stacks(
    profile: &Profile,
    selection: &Selection,
    line: impl Fn(&Frame) -> Line,
    bottom: impl Fn(&SampleRow) -> Option<Line>,
) -> Stacks {
    let mut counts = Stacks::new();
    for sample in selection.of(profile) {
        let lines = profile.frames_of(sample.stack).map(&line).chain(bottom(&sample));
        *counts.entry(lines.collect()).or_default() += 1;
    }
    counts
}

fn name(profile: &Profile, frame: &Frame) -> String {
    String::from_utf8_lossy(profile.function_name(frame.function)).into_owned()
}

fn spelled(name: &str) -> String {
    Escaped(name.replace(';', ":").as_bytes()).to_string()
}

/// Lines of folded stacks, the innermost frame first: with suffixes, and with a run of a function without a name as one frame that has the length of the
/// longest run there.
fn folded_stacks(profile: &Profile) -> Stacks {
    /// A function, and whether it was inlined, from the bottom of the stack up.
    type Path = Vec<(FunctionId, bool)>;
    let mut longest: BTreeMap<Path, u32> = BTreeMap::new();
    let mut counts: BTreeMap<(Path, String), u64> = BTreeMap::new();
    for sample in profile.samples().iter() {
        let frames: Vec<&Frame> = profile.frames_of(sample.stack).collect();
        let mut path = Path::new();
        let mut run = 0;
        for frame in frames.into_iter().rev() {
            let is_unnamed = profile.function(frame.function).kind == FunctionKind::Unknown;
            let is_same = path.last().is_some_and(|(function, _)| *function == frame.function);
            if is_unnamed && is_same {
                run += 1;
            } else {
                path.push((frame.function, frame.depth > 0));
                run = 1;
            }
            let longest = longest.entry(path.clone()).or_default();
            *longest = run.max(*longest);
        }
        let process = profile.process(profile.thread(sample.thread).process);
        let process = spelled(&String::from_utf8_lossy(profile.text(process.name)));
        *counts.entry((path, process)).or_default() += 1;
    }
    let label = |path: &[(FunctionId, bool)]| {
        let (function, is_inlined) = path.last().expect("a function");
        let suffix = match profile.function(*function).kind {
            FunctionKind::Kernel => "_[k]",
            _ if *is_inlined => "_[i]",
            FunctionKind::Jitted => "_[j]",
            FunctionKind::Interpreted => "_[0]",
            _ => "",
        };
        let name = spelled(&String::from_utf8_lossy(profile.function_name(*function)));
        match longest[path] {
            1 => format!("{name}{suffix}"),
            length => format!("{name} ×{length}{suffix}"),
        }
    };
    let mut stacks = Stacks::new();
    for ((path, process), samples) in counts {
        let mut lines: Vec<Line> =
            (1..=path.len()).rev().map(|length| (label(&path[..length]), 0)).collect();
        lines.push((process, 0));
        *stacks.entry(lines).or_default() += samples;
    }
    stacks
}

/// The thread with the most samples, the first of several.
fn busiest(profile: &Profile) -> ThreadId {
    let count = |thread: &ThreadId| {
        profile.samples().iter().filter(|sample| sample.thread == *thread).count()
    };
    let threads = (0..profile.threads().len() as u32).map(ThreadId);
    threads.rev().max_by_key(count).expect("a thread")
}

fn check(profile: &Profile) {
    let everything = Selection::default();
    let mut of_thread = Selection::default();
    of_thread.threads = Some(vec![busiest(profile)]);
    let named = |frame: &Frame| (name(profile, frame), 0);
    let with_line = |frame: &Frame| (name(profile, frame), u64::from(frame.line));
    for format in Format::ALL {
        let expected = match format {
            Format::Firefox | Format::Pprof | Format::Otlp => {
                stacks(profile, &everything, with_line, |_| None)
            }
            Format::Speedscope | Format::Chrome => stacks(profile, &everything, named, |_| None),
            Format::Cpuprofile => stacks(profile, &of_thread, named, |_| None),
            Format::Folded => folded_stacks(profile),
        };
        assert_eq!(read(format, profile, &Options::default()), expected, "{format:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn all_stacks_are_in_each_format(profile in crate::made::profile()) {
        check(&profile);
    }

    #[test]
    fn a_part_of_the_samples_is_exported_alone(profile in crate::made::profile(), thread in 0u32..4) {
        let mut options = Options::default();
        options.selection.threads = Some(vec![ThreadId(thread)]);
        options.selection.times = Some(0..500_000);
        let named = |frame: &Frame| (name(&profile, frame), 0);
        let names = stacks(&profile, &options.selection, named, |_| None);
        let total: u64 = names.values().sum();
        for format in Format::ALL {
            let found = read(format, &profile, &options);
            prop_assert_eq!(found.values().sum::<u64>(), total, "{:?}", format);
            if [Format::Speedscope, Format::Chrome, Format::Cpuprofile].contains(&format) {
                prop_assert_eq!(&found, &names, "{:?}", format);
            }
        }
    }

    /// Each function of a node or frame has its key, as `profile` computes it.
    #[test]
    fn functions_have_keys(profile in crate::made::profile()) {
        let expected: BTreeSet<(String, String)> = profile
            .functions()
            .iter()
            .map(|function| {
                let name = String::from_utf8_lossy(profile.text(function.name)).into_owned();
                (name, format!("{:016x}", FunctionKey::of(&profile, function).id()))
            })
            .collect();
        for (format, name) in [
            (Format::Cpuprofile, "functionName"),
            (Format::Chrome, "functionName"),
            (Format::Speedscope, "name"),
        ] {
            let file = written(format, &profile, &Options::default());
            let file = serde_json::from_slice(&file).expect("JSON");
            let mut found = BTreeSet::new();
            crate::readers::each_object(&file, &mut |object| {
                if let (Some(name), Some(key)) = (object.get(name), object.get("functionKey")) {
                    let text = |value: &Value| value.as_str().expect("a text").to_owned();
                    found.insert((text(name), text(key)));
                }
            });
            prop_assert!(!found.is_empty());
            prop_assert!(found.is_subset(&expected), "{:?} {:?} {:?}", format, found, expected);
        }
    }

    /// What a sample stands for is added up for each event, and labels say in which compilation it was.
    #[test]
    fn pprof_has_values_of_events_and_labels_of_compilations(profile in crate::made::profile()) {
        let file = crate::readers::pprof::profile(&written(Format::Pprof, &profile, &Options::default()));
        let mut weights = BTreeMap::new();
        let mut labelled: BTreeMap<[String; 4], i64> = BTreeMap::new();
        let per_sample = profile.about.frequency.map(|frequency| 1_000_000_000 / frequency);
        for sample in profile.samples().iter() {
            let event = profile.text(profile.event(sample.event).name);
            let event = String::from_utf8_lossy(event).into_owned();
            *weights.entry(event).or_insert(0) += per_sample.unwrap_or(sample.weight);
            let thread = profile.thread(sample.thread);
            let frame = profile.frame(profile.stack(sample.stack).frame);
            let code = profile.code(frame.code.expect("a code"));
            let of_jitted = code.process.is_some();
            let tier = if of_jitted { profile.text(code.tier) } else { b"" };
            let generation = if of_jitted { code.generation.to_string() } else { String::new() };
            let process = profile.text(profile.process(thread.process).name);
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            *labelled.entry([text(tier), generation, thread.tid.to_string(), text(process)]).or_default() += 1;
        }
        let mut sums = vec![0; file.sample_type.len()];
        let mut seen: BTreeMap<[String; 4], i64> = BTreeMap::new();
        for sample in &file.sample {
            sums.iter_mut().zip(&sample.value).for_each(|(sum, value)| *sum += value);
            let mut labels = file.labels(sample);
            let key = ["tier", "generation", "tid", "process"].map(|key| labels.remove(key).unwrap_or_default());
            *seen.entry(key).or_default() += sample.value.iter().step_by(2).sum::<i64>();
        }
        prop_assert_eq!(seen, labelled);
        let mut values: Vec<i64> = sums.into_iter().skip(1).step_by(2).collect();
        let mut expected: Vec<i64> = weights.values().map(|&it| i64::try_from(it).unwrap()).collect();
        values.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(values, expected);
    }
}

/// A profile with a sample of each of these stacks, the innermost frame first: a file, and the symbol of a function in it. Without a file, the code is jitted
/// or, in brackets, has no name.
fn of_stacks(samples: &[&[(&str, &str)]]) -> Profile {
    let mut builder = Builder::new();
    let event = builder.event(b"cycles");
    let process = builder.process(1, b"app");
    let thread = builder.thread(process, 1, b"app");
    for (time, frames) in (1..).zip(samples) {
        let mut stack = None;
        for (file, symbol) in frames.iter().rev() {
            let kind = match (*file, symbol.starts_with('[')) {
                ("", true) => FunctionKind::Unknown,
                ("", false) => FunctionKind::Jitted,
                _ => FunctionKind::Native,
            };
            let name = builder.string(symbol.as_bytes());
            let function = builder.function(Function::new(name, kind));
            let mut frame = Frame::new(function);
            if kind == FunctionKind::Native {
                let path = builder.string(file.as_bytes());
                let mut code = Code::new(function, 64);
                code.symbol = name;
                let module = Module { kind: ModuleKind::File, path, build_id: Vec::new() };
                code.module = Some(builder.module(module));
                frame.code = Some(builder.code(code));
            }
            let frame = builder.frame(frame);
            stack = Some(builder.stack(stack, frame));
        }
        let stack = stack.expect("a frame");
        builder.sample(SampleRow { time, thread, event, weight: 1, stack });
    }
    builder.finish()
}

/// Frames of one function without a name, one behind the other, are one frame of folded stacks, with the number of the longest run there.
#[test]
fn runs_without_a_name_are_one_folded_frame() {
    let (a, b, f) = (("", "[a]"), ("", "[b]"), ("", "f"));
    let profile = of_stacks(&[&[f, a, a, a], &[a, a], &[b, a], &[f, f], &[b, b, f]]);
    let expected = "app;[a] ×3 1\napp;[a] ×3;[b] 1\napp;[a] ×3;f_[j] 1\napp;f_[j];[b] ×2 1\napp;f_[j];f_[j] 1\n";
    let folded = String::from_utf8(written(Format::Folded, &profile, &Options::default()));
    let mut lines: Vec<String> = folded.expect("UTF-8").lines().map(str::to_owned).collect();
    lines.sort();
    let mut expected: Vec<&str> = expected.lines().collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
    // Formats with addresses keep each frame.
    let with_line = |frame: &Frame| (name(&profile, frame), u64::from(frame.line));
    let all = stacks(&profile, &Selection::default(), with_line, |_| None);
    for format in [Format::Firefox, Format::Pprof] {
        assert_eq!(read(format, &profile, &Options::default()), all, "{format:?}");
    }
}

/// pprof's labels and the Firefox Profiler's categories are the activities that reports count.
#[test]
fn samples_have_their_activity() {
    const NODE: &str = "/usr/bin/node";
    let gc = (NODE, "_ZN2v88internal9Scavenger7ProcessEPNS_11JobDelegateE");
    let parser = (NODE, "_ZN2v88internal6Parser5ParseEv");
    let handler = (NODE, "Builtins_LdaZeroHandler");
    let memmove = ("/lib/libc.so.6", "memmove");
    let jitted = ("", "f");
    let profile = of_stacks(&[
        &[jitted],
        &[gc, jitted],
        &[memmove, gc, jitted],
        &[memmove, parser],
        &[handler, jitted],
        &[memmove, jitted],
        &[memmove, handler],
        &[jitted, handler],
    ]);
    let counted = Activities::of(&profile, profile.samples().iter());
    assert_eq!(counted.garbage_collector, 2);
    let counted: BTreeMap<String, u64> = counted
        .parts(profile.samples().len() as u64)
        .into_iter()
        .map(|(name, samples)| (name.to_owned(), samples))
        .collect();
    assert_eq!(counted.len(), 5, "{counted:?}");

    let pprof = written(Format::Pprof, &profile, &Options::default());
    let pprof = crate::readers::pprof::profile(&pprof);
    let mut labelled: BTreeMap<String, u64> = BTreeMap::new();
    for sample in &pprof.sample {
        let name = pprof.labels(sample).remove("activity").expect("an activity");
        *labelled.entry(name).or_default() += u64::try_from(sample.value[0]).expect("a count");
    }
    assert_eq!(labelled, counted);

    let file = written(Format::Firefox, &profile, &Options::default());
    let file: Value = serde_json::from_slice(&file).expect("JSON");
    let shared = &file["shared"];
    let place = |value: &Value| value.as_u64().expect("a place") as usize;
    let mut categories: BTreeMap<String, u64> = BTreeMap::new();
    for stack in file["threads"][0]["samples"]["stack"].as_array().expect("stacks") {
        let frame = place(&shared["stackTable"]["frame"][place(stack)]);
        let category = place(&shared["frameTable"]["category"][frame]);
        let name = file["meta"]["categories"][category]["name"].as_str().expect("a name");
        let name = match name {
            "JIT" => "jitted code".to_owned(),
            "Native" => "other native code".to_owned(),
            other => other.to_lowercase(),
        };
        *categories.entry(name).or_default() += 1;
    }
    assert_eq!(categories, counted);
}

/// A function with a name of a megabyte, called by itself 100 times: a file does not repeat the name.
#[test]
fn long_names_do_not_multiply() {
    let mut builder = Builder::new();
    let event = builder.event(b"cycles");
    let process = builder.process(1, b"app");
    let thread = builder.thread(process, 1, b"app");
    let name = builder.string(&vec![b'x'; 1 << 20]);
    let function = builder.function(Function::new(name, FunctionKind::Jitted));
    let code = builder.code(Code::new(function, 64));
    let mut stack: Option<StackId> = None;
    for address in 0..100 {
        let mut frame = Frame::new(function);
        (frame.code, frame.address) = (Some(code), address % 64);
        let frame = builder.frame(frame);
        stack = Some(builder.stack(stack, frame));
        let stack = stack.expect("a stack");
        builder.sample(SampleRow { time: address * 1000, thread, event, weight: 1, stack });
    }
    let profile = builder.finish();
    for format in Format::ALL {
        let bytes = written(format, &profile, &Options::default());
        // Folded stacks spell out each: 100 × 50 × 4 KiB.
        let most = if format == Format::Folded { 24 << 20 } else { 4 << 20 };
        assert!(bytes.len() < most, "{format:?}: {}", bytes.len());
    }
}

#[test]
fn an_empty_profile_is_a_file_too() {
    let profile = Builder::new().finish();
    for format in Format::ALL {
        assert_eq!(read(format, &profile, &Options::default()), Stacks::new(), "{format:?}");
    }
}

/// Tiers and lines in names, where a format has no other place for them.
#[test]
fn names_have_tiers_and_lines_on_request() {
    let mut builder = Builder::new();
    let event = builder.event(b"cycles");
    let process = builder.process(1, b"app");
    let thread = builder.thread(process, 1, b"app");
    let name = builder.string(b"f");
    let function = builder.function(Function::new(name, FunctionKind::Jitted));
    let mut code = Code::new(function, 64);
    (code.process, code.tier) = (Some(process), builder.string(b"turbofan"));
    let code = builder.code(code);
    let mut frame = Frame::new(function);
    (frame.code, frame.line) = (Some(code), 12);
    let frame = builder.frame(frame);
    let stack = builder.stack(None, frame);
    builder.sample(SampleRow { time: 1000, thread, event, weight: 1, stack });
    let profile = builder.finish();
    let mut options = Options::default();
    let folded = |options: &Options| written(Format::Folded, &profile, options);
    assert_eq!(folded(&options), b"app;f_[j] 1\n");
    options.tiers = true;
    assert_eq!(folded(&options), b"app;f [turbofan]_[j] 1\n");
    options.lines = true;
    assert_eq!(folded(&options), b"app;f [turbofan]:12_[j] 1\n");
    // Lines have a place of their own in some formats.
    for (format, name) in [
        (Format::Speedscope, "f [turbofan]:12"),
        (Format::Cpuprofile, "f [turbofan]"),
        (Format::Chrome, "f [turbofan]"),
    ] {
        let stacks = read(format, &profile, &options);
        assert_eq!(stacks.into_keys().next(), Some(vec![(name.to_owned(), 0)]), "{format:?}");
    }
}

/// Functions of one name on one line are not one box of a flame graph. Formats with fields for the place keep the name.
#[test]
fn functions_that_share_a_line_have_their_place_in_folded_names() {
    let mut builder = Builder::new();
    let event = builder.event(b"cycles");
    let process = builder.process(1, b"app");
    let thread = builder.thread(process, 1, b"app");
    for (time, (name, column)) in (0..).zip([("f", 10), ("f", 2045), ("g", 7)]) {
        let mut function = Function::new(builder.string(name.as_bytes()), FunctionKind::Jitted);
        function.file = builder.string(b"/x/a.js");
        (function.line, function.column) = (1, column);
        let function = builder.function(function);
        let frame = builder.frame(Frame::new(function));
        let stack = builder.stack(None, frame);
        builder.sample(SampleRow { time, thread, event, weight: 1, stack });
    }
    let profile = builder.finish();
    let text =
        |format| String::from_utf8(written(format, &profile, &Options::default())).expect("UTF-8");
    let folded = text(Format::Folded);
    let mut lines: Vec<&str> = folded.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["app;f a.js:1:10_[j] 1", "app;f a.js:1:2045_[j] 1", "app;g_[j] 1"]);
    for format in [Format::Speedscope, Format::Cpuprofile] {
        assert!(!text(format).contains("f a.js"), "{format:?}");
    }
}
