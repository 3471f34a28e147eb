//! Calls that V8 inlined: from its code log to what addr2line shows of the images.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use end_to_end::addr2line::{Place, inlined_chains, symbols};
use end_to_end::live::{Recorder, workload};
use end_to_end::record::Record;
use end_to_end::sample::Sample;
use end_to_end::tool::{argument, run, tool};
/// The workload's functions.
const LEAF: &str = "leaf";
const MID: &str = "mid";

/// A code of the workload, with positions and inlined calls as V8 logs them.
#[derive(Debug, Default)]
struct Logged {
    size: u64,
    /// Offset in the code, offset in the script, inlined call.
    positions: Vec<(u64, usize, Option<usize>)>,
    /// The function that was called, the offset of the call in the script, the call that contains it.
    calls: Vec<(String, usize, Option<usize>)>,
}

/// A number behind `letter` in an item of a list such as `C1O2I3`.
fn number(item: &str, letter: char) -> Option<usize> {
    let digits = item.split_once(letter)?.1;
    digits.split(|char: char| !char.is_ascii_digit()).next()?.parse().ok()
}

/// The items of a list; each begins with `letter`.
fn items(list: &str, letter: char) -> impl Iterator<Item = String> {
    list.split(letter).skip(1).map(move |item| format!("{letter}{item}"))
}

/// Reads the codes of the script `url` at addresses that were used once, line by line, apart from the crate that is
/// tested with it. Returns the script's text as well.
fn read_log(path: &Path, url: &str) -> (String, BTreeMap<u64, Logged>) {
    let log = fs::read_to_string(path).expect("a log");
    let mut text = String::new();
    let mut script = "";
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let mut codes: BTreeMap<u64, Vec<Logged>> = BTreeMap::new();
    let address = |field: &str| u64::from_str_radix(&field[2..], 16).expect("an address");
    for line in log.lines() {
        let fields: Vec<&str> = line.split(',').collect();
        match fields[0] {
            "script-source" if fields[2] == url => {
                script = fields[1];
                text = fields[3].replace(r"\n", "\n").replace(r"\x2C", ",");
            }
            "code-creation" => {
                let code = Logged { size: fields[5].parse().expect("a size"), ..Logged::default() };
                codes.entry(address(fields[4])).or_default().push(code);
                if let Some(function) = fields.get(7) {
                    names.insert(function, fields[6].split(' ').next().expect("a name"));
                }
            }
            "code-source-info" if fields[2] == script => {
                let code = codes.get_mut(&address(fields[1])).and_then(|codes| codes.last_mut());
                let code = code.expect("a code before its positions");
                let functions: Vec<&str> = fields[7].split('S').skip(1).collect();
                let position = |item: String| {
                    let at = number(&item, 'C').expect("an offset") as u64;
                    (at, number(&item, 'O').expect("an offset"), number(&item, 'I'))
                };
                code.positions = items(fields[5], 'C').map(position).collect();
                let call = |item: String| {
                    let function = functions[number(&item, 'F').expect("a function")];
                    let at = number(&item, 'O').expect("an offset");
                    (names[function].to_owned(), at, number(&item, 'I'))
                };
                code.calls = items(fields[6], 'F').map(call).collect();
            }
            _ => {}
        }
    }
    let once = codes.into_iter().filter(|(_, codes)| codes.len() == 1);
    let once = once.map(|(address, mut codes)| (address, codes.remove(0)));
    (text, once.filter(|(_, code)| !code.calls.is_empty()).collect())
}

impl Logged {
    /// The functions at an offset of the code with their lines, the innermost first. The code's own has no name.
    fn chain(&self, offset: u64, text: &str) -> Vec<Place> {
        let line = |at: usize| text[..at].matches('\n').count() as u64 + 1;
        let position = self.positions.iter().rfind(|(at, ..)| *at <= offset);
        let (_, mut at, mut call) = *position.expect("a position");
        let mut chain = Vec::new();
        while let Some(number) = call {
            let (name, called_at, parent) = &self.calls[number];
            chain.push((name.clone(), line(at)));
            (at, call) = (*called_at, *parent);
        }
        chain.push((String::new(), line(at)));
        chain
    }
}

/// What addr2line shows at each of these samples, for those that are in an image.
fn shown<'s>(samples: &[&'s Sample]) -> Vec<(&'s Sample, Vec<Place>)> {
    let mut of_images: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.dso_name().ends_with(".elf")) {
        of_images.entry(&sample.dso).or_default().push(sample);
    }
    let mut all = Vec::new();
    for (image, samples) in of_images {
        let symbols = symbols(image);
        // Several codes have one name. What all addresses have in common is the distance from the process's, in whole pages.
        let mut distances: Option<BTreeSet<u64>> = None;
        for sample in &samples {
            let symbol = sample.symbol.as_ref().expect("a symbol");
            let starts = symbols[&symbol.name].iter();
            let of_sample = starts
                .map(|start| sample.ip - start - symbol.offset.expect("an offset"))
                .filter(|distance| distance.is_multiple_of(4096))
                .collect::<BTreeSet<u64>>();
            distances = Some(match distances {
                Some(before) => before.intersection(&of_sample).copied().collect(),
                None => of_sample,
            });
        }
        let distances = distances.expect("a sample");
        assert_eq!(distances.len(), 1, "{image}: {distances:x?}");
        let distance = distances.first().expect("one");
        let addresses: Vec<u64> = samples.iter().map(|sample| sample.ip - distance).collect();
        all.extend(samples.into_iter().zip(inlined_chains(image, &addresses)));
    }
    all
}

/// Whether a sample is in optimized code of the workload.
fn is_optimized(sample: &Sample) -> bool {
    let name = sample.name().unwrap_or_default();
    name.contains(":*") && name.contains("inlined.js")
}

/// The part of the samples in optimized code at which the calls of `mid` and `leaf` are shown.
fn expect_mostly_inlined(shown: &[(&Sample, Vec<Place>)]) {
    let optimized: Vec<_> = shown.iter().filter(|(sample, _)| is_optimized(sample)).collect();
    assert!(optimized.len() > 100, "only {} samples are in optimized code", optimized.len());
    let names = |chain: &[Place]| chain.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let is_whole = |(_, chain): &&&(&Sample, Vec<Place>)| {
        let names = names(chain);
        names.starts_with(&[LEAF.to_owned(), MID.to_owned()]) && names[2].contains(":*top ")
    };
    let inlined = optimized.iter().filter(|(_, chain)| chain.len() > 1).count();
    let whole = optimized.iter().filter(is_whole).count();
    assert!(inlined * 10 > optimized.len() * 9, "{inlined} of {}", optimized.len());
    assert!(whole * 10 > optimized.len() * 7, "{whole} of {}", optimized.len());
}

#[test]
fn images_show_the_calls_that_v8_logged() {
    let script = workload("inlined.js");
    let script = script.to_str().expect("a UTF-8 path");
    let options = ["--perf-prof", "--log-code", "--log-source-code"];
    let program = [&["node"], &options[..], &[script]].concat();
    let recording = Recorder::new().record(&program);
    let files =
        fs::read_dir(recording.dir()).expect("a folder").map(|file| file.expect("a file").path());
    let logs: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with("-v8.log")).collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    let (text, codes) = read_log(&logs[0], script);
    assert!(text.is_ascii() && text.contains("function leaf"), "{text}");

    let compare = |samples: &[Sample]| {
        let samples: Vec<&Sample> = samples.iter().collect();
        let shown = shown(&samples);
        expect_mostly_inlined(&shown);
        let mut compared = 0;
        for (sample, chain) in shown.iter().filter(|(sample, _)| is_optimized(sample)) {
            let Some((start, code)) = codes.range(..=sample.ip).next_back() else { continue };
            if sample.ip >= start + code.size {
                continue;
            }
            let mut expected = code.chain(sample.ip - start, &text);
            expected.last_mut().expect("the code itself").0 =
                sample.name().expect("a name").to_owned();
            assert_eq!(*chain, expected, "{sample}");
            compared += 1;
        }
        assert!(compared > 100, "only {compared} samples were compared");
        shown.len()
    };
    // Found next to the recording, and named.
    let found = compare(&recording.ours().samples);
    let elsewhere = recording.dir().join("elsewhere.txt");
    fs::rename(&logs[0], &elsewhere).expect("a file");
    let named = ["--force", "--v8-log", elsewhere.to_str().expect("a UTF-8 path")];
    assert_eq!(compare(&recording.ours_with(&named).samples), found);
    // Without it, the dump has the innermost line alone.
    let without = recording.ours_with(&["--force"]).samples;
    let without: Vec<&Sample> = without.iter().filter(|sample| is_optimized(sample)).collect();
    assert!(shown(&without).iter().all(|(_, chain)| chain.len() == 1));
}

#[test]
fn record_shows_inlined_calls_of_all_threads_and_keeps_the_source() {
    let record = Record::new(&["-F", "999"]);
    let script = record.folder().join("inlined.js");
    fs::copy(workload("inlined.js"), &script).expect("a copy");
    let source = fs::read_to_string(&script).expect("a script");
    let recorded = record.program(&["node", &argument(&script), "worker"]);
    // The log is gone with the other intermediate files.
    let files = fs::read_dir(recorded.folder()).expect("a folder");
    let files: BTreeSet<String> = files
        .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(!files.iter().any(|name| name.contains("v8.log")), "{files:?}");
    let logged: u64 = recorded.report["sources"]
        .as_array()
        .expect("sources")
        .iter()
        .filter_map(|source| source["codes_in_v8_log"].as_u64())
        .sum();
    assert!(logged > 10, "{logged}");

    let samples = recorded.samples();
    let samples: Vec<&Sample> = samples.iter().collect();
    let shown = shown(&samples);
    let mut of_threads: BTreeMap<u32, Vec<(&Sample, Vec<Place>)>> = BTreeMap::new();
    for (sample, chain) in shown {
        of_threads.entry(sample.tid).or_default().push((sample, chain));
    }
    let of_threads: Vec<_> = of_threads
        .into_values()
        .filter(|samples| samples.iter().any(|(sample, _)| is_optimized(sample)))
        .collect();
    assert_eq!(of_threads.len(), 2, "the main thread and the worker");
    of_threads.iter().for_each(|samples| expect_mostly_inlined(samples));

    // The script's source outlives the script.
    let kept = recorded.images().join("sources");
    let script = fs::canonicalize(&script).expect("a path");
    let kept = kept.join(script.strip_prefix("/").expect("an absolute path"));
    assert_eq!(fs::read_to_string(kept).expect("the source"), source);
}

/// Most of the time of this script is spent in a function of `node:path`, or in one that it is inlined into.
const OF_NODE: &str = r"
const { normalize } = require('path').posix;
let n = 0;
for (let i = 0; i < 1e6; i++) n += normalize('/a/b/../c/./d' + (i & 7)).length;
console.log(n);
";

#[test]
fn objdump_finds_the_kept_sources_of_nodes_own_scripts() {
    let record = Record::new(&["-F", "999"]);
    fs::write(record.folder().join("normalize.js"), OF_NODE).expect("a script");
    let recorded = record.program(&["node", "normalize.js"]);
    let images = recorded.images();
    let sources = images.join("sources");
    let source = fs::read_to_string(sources.join("node/path")).expect("the source of node:path");
    let source: Vec<&str> = source.lines().collect();
    let mut lines = BTreeSet::new();
    for image in fs::read_dir(&images).expect("images") {
        let image = image.expect("an image").path();
        if image.extension().is_none_or(|extension| extension != "elf") {
            continue;
        }
        let mut objdump = tool("objdump");
        // Relative paths are those in the current folder.
        let printed =
            run(objdump.args(["-d", "-l", "-S"]).arg(&image).current_dir(&sources)).stdout;
        let places = printed.lines().filter_map(|line| line.strip_prefix("node/path:"));
        for place in places {
            let number = place.split(' ').next().and_then(|number| number.parse::<usize>().ok());
            let number = number.expect("the number of a line");
            let text = source.get(number - 1).expect("a line of the source");
            assert!(printed.contains(text), "{number}: {text}");
            lines.extend((!text.trim().is_empty()).then_some(number));
        }
    }
    assert!(lines.len() > 5, "{lines:?}");
}
