//! Inlined calls, from the demo JIT's compiler to what perf and addr2line show of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use end_to_end::addr2line::{Place, inlined_chains, symbols};
use end_to_end::jitscribe::inject;
use end_to_end::perf::{Perf, image_names};
use end_to_end::recordings::DEMO_COPIED;
use end_to_end::sample::Sample;
use end_to_end::tool::run;
use end_to_end::truth::Truth;

/// The folder with the images of a recording. perf is asked about no other file: on a busy machine it gives up waiting for the lines of a large
/// program.
fn images(data: &Path) -> PathBuf {
    data.with_extension("data.jit")
}

/// What `perf script --inline` shows at each sample's own address in the images, from the innermost function outward, by time.
fn shown_by_perf(perf: &Perf, data: &Path) -> BTreeMap<u64, Vec<Place>> {
    let mut command = perf.command();
    command.args(["script", "--ns", "--inline", "--max-stack", "4"]);
    command.args(["--dsos", &image_names(&images(data)), "-F", "time,ip,sym,srcline", "-i"]);
    let printed = run(command.arg(data)).stdout;
    let mut samples: BTreeMap<u64, Vec<Place>> = BTreeMap::new();
    let (mut time, mut first, mut is_first) = (0, "", true);
    for line in printed.lines().filter(|line| !line.trim().is_empty()) {
        let number = |text: &str| text.trim().parse::<u64>().expect("a number");
        if let Some((address, name)) =
            line.strip_prefix('\t').and_then(|frame| frame.trim_start().split_once(' '))
        {
            // An inlined call has the address of the code that it is in.
            if first.is_empty() {
                first = address;
            }
            is_first &= first == address;
            if is_first {
                let name = name.trim_end_matches(" (inlined)").to_owned();
                samples.entry(time).or_default().push((name, 0));
            }
        } else if let Some((seconds, rest)) =
            line.trim_end().strip_suffix(':').and_then(|time| time.split_once('.'))
        {
            time = number(seconds) * 1_000_000_000 + number(rest);
            (first, is_first) = ("", true);
        } else if let Some((_, at)) = line.split_once(".scribe:").filter(|_| is_first) {
            let at = at.split(' ').next().expect("a line");
            let places = samples.get_mut(&time).expect("a frame stands first");
            places.last_mut().expect("a frame stands first").1 = number(at);
        }
    }
    samples
}

/// The samples in the images, with source positions.
fn lines(data: &Path) -> Vec<Sample> {
    let images = images(data);
    // No addr2line lies in that folder.
    Perf::installed().samples_in_images(data, &images, &images)
}

/// The samples in code of the demo, with the demo's record of each.
fn expected<'s>(truth: &Truth, samples: &'s [Sample]) -> Vec<(&'s Sample, Vec<Place>)> {
    let chain = |sample: &'s Sample| Some((sample, truth.inline_chain(sample.ip, sample.time)?));
    samples.iter().filter_map(chain).collect()
}

fn expect_deep(expected: &[(&Sample, Vec<Place>)]) {
    for depth in 1..=3 {
        let count = expected.iter().filter(|(_, chain)| chain.len() == depth).count();
        assert!(count > 5, "only {count} samples are in {depth} functions at once");
    }
}

/// perf shows inlined calls in stacks that it unwinds itself, and not in those that were taken by frame pointers.
#[test]
fn perf_and_addr2line_show_the_inlined_calls_around_each_sample() {
    let (recording, truth) = DEMO_COPIED.with_truth();
    let ours = recording.ours();
    truth.expect(&lines(&ours.data), true);
    let expected = expected(&truth, &ours.samples);
    expect_deep(&expected);
    for (name, perf) in [("6.1", &Perf::installed()), ("6.12", &Perf::newer())] {
        let shown = shown_by_perf(perf, &ours.data);
        for (sample, chain) in &expected {
            assert_eq!(shown.get(&sample.time), Some(chain), "perf {name}: {sample}");
        }
    }

    let mut by_image: BTreeMap<&str, Vec<&(&Sample, Vec<Place>)>> = BTreeMap::new();
    for one in &expected {
        by_image.entry(&one.0.dso).or_default().push(one);
    }
    for (image, samples) in by_image {
        let symbols = symbols(image);
        let address = |sample: &Sample| {
            let symbol = sample.symbol.as_ref().expect("a symbol");
            symbols[&symbol.name].last().expect("one") + symbol.offset.expect("an offset")
        };
        let addresses: Vec<u64> = samples.iter().map(|(sample, _)| address(sample)).collect();
        let shown = inlined_chains(image, &addresses);
        assert_eq!(shown.len(), samples.len());
        for ((sample, chain), shown) in samples.iter().zip(&shown) {
            assert_eq!(shown, chain, "addr2line: {sample}");
        }
    }
}

/// With the second line table, each sample is shown on a line of its own code's listing; and one source location
/// there, which the listing has in its first column, is always the same line of the source.
#[test]
fn the_lines_of_the_intermediate_representation() {
    let (recording, truth) = DEMO_COPIED.with_truth();
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("ir.data");
    inject(&recording.data(), &data, ["--lines", "ir"]);
    let mut sources: BTreeMap<(String, String), Vec<Place>> = BTreeMap::new();
    let mut checked = 0;
    for sample in lines(&data) {
        let Some(chain) = truth.inline_chain(sample.ip, sample.time) else { continue };
        let symbol = &chain.last().expect("the code itself").0;
        let shown = sample.srcline.as_deref().unwrap_or("");
        let Some((file, line)) = shown.split_once(':') else { continue };
        assert_eq!(file, format!("{}.clif", symbol.replace("::", "-")), "{sample}");
        let text = std::fs::read_to_string(recording.dir().join(file)).expect("a listing");
        let line: usize =
            line.split(' ').next().and_then(|line| line.parse().ok()).expect("a line");
        let text = text.lines().nth(line - 1).expect("a line of the listing");
        let Some((location, _)) = text.strip_prefix('@').and_then(|text| text.split_once(' '))
        else {
            panic!("{sample}: {shown} is no instruction: {text}")
        };
        let source = sources.entry((symbol.clone(), location.to_owned())).or_insert(chain.clone());
        assert_eq!(*source, chain, "{sample}: {text}");
        checked += 1;
    }
    assert!(checked > 50, "only {checked} samples were shown on a line of a listing");
}
