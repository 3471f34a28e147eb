//! Profiles of recordings against perf's own reading of them, and against the demo's record of what it ran.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use end_to_end::corpus::Corpus;
use end_to_end::profiles::{Compared, read, stacks};
use end_to_end::recordings::{DEMO, DEMO_COPIED, NODE};
use end_to_end::truth::Truth;
use profile::{FunctionKind, Profile};
use serde_json::Value;

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
    for shared in [DEMO, DEMO_COPIED] {
        let (recording, truth) = shared.with_truth();
        let ours = recording.ours();
        let recorded = read(&ours.data);
        assert!(recorded.warnings.is_empty(), "{:?}", recorded.warnings);
        let covered = ours.samples.iter().filter(|sample| truth.covers(sample.ip, sample.time));
        expect_truth(&recorded.profile, &truth, covered.count());
        // The recording as perf wrote it leads to the same profile.
        let raw = read(&recording.data());
        assert_eq!(stacks(&raw.profile), stacks(&recorded.profile));
    }
}

/// All compilations of the sampled functions are in the profile, in the order of time, and no sample is outside the time of its code.
#[test]
fn compilations_of_the_demo_have_times() {
    let (recording, truth) = DEMO.with_truth();
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
fn stacks_of_live_recordings_are_perfs() {
    for shared in [DEMO, NODE] {
        let data = shared.get().ours().data;
        Compared::of(&data, &read(&data).profile).expect_equal(200);
    }
}

/// The programs and libraries of these recordings are not on this machine: the jitted code is named all the same.
#[test]
fn stacks_of_the_corpus_are_perfs() {
    for name in [
        "node18-b12",
        "php82-jitdebug32",
        "erl25-map",
        "java17-perfmap",
        "rakudo2022",
        "jsc-b12",
        "lli14-b12",
    ] {
        let corpus = Corpus::unpack(name);
        let data = corpus.inject("g");
        let recorded = read(&data);
        assert!(recorded.warnings.is_empty(), "{name}: {:?}", recorded.warnings);
        Compared::of(&data, &recorded.profile).expect_equal(50);
        expect_in_lists(&corpus.scratch().join("g.out.data.jit"), &recorded.profile, name);
    }
}

/// Each code is joined with its line in the list of codes that belongs to the image.
fn expect_in_lists(images: &Path, profile: &Profile, name: &str) {
    let mut listed = BTreeSet::new();
    for file in fs::read_dir(images).expect("a folder").flatten() {
        if file.file_name().to_string_lossy().ends_with(".codes.jsonl") {
            let text = fs::read_to_string(file.path()).expect("a list");
            let codes = text.lines().skip(1).map(|line| {
                let code: Value = serde_json::from_str(line).expect("JSON");
                let number = |field: &str| code[field].as_u64();
                let symbol = code["symbol"].as_str().expect("a symbol").to_owned();
                (symbol, number("address"), number("size"), number("loaded"), number("gone"))
            });
            listed.extend(codes);
        }
    }
    let mut codes = 0;
    for code in profile.codes().iter().filter(|code| code.process.is_some()) {
        let symbol = String::from_utf8_lossy(profile.text(code.symbol)).into_owned();
        let row = (symbol, Some(code.address), Some(code.size), code.loaded, code.gone);
        assert!(listed.contains(&row), "{name}: not listed: {row:?}");
        codes += 1;
    }
    assert!(codes > 2, "{name}: {codes} codes");
}
