//! One counter: whether all views of a recording say the same of a function.
//!
//! Each view is read back as samples with stacks of functions, which are counted here once more.

mod decode;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use profile::{CodeId, FunctionId, FunctionKey, Profile, StackId, Totals};
use profile_export::Format;
use profile_recording::{Options, RecordedProfile};
use profile_text::{Annotated, Sort, Top, TopRow, Wanted};
use serde_json::Value;

use crate::jitscribe::{jitscribe, json};
use crate::perf::Perf;
use crate::tool::run;
use views::Counts;

/// Number of functions that are compared.
const COMPARED: usize = 50;

/// Number of samples by the tier of the code that is chosen of their stacks.
fn by_tier(profile: &Profile, code: impl Fn(StackId) -> Option<CodeId>) -> BTreeMap<String, u64> {
    let mut tiers = BTreeMap::new();
    for code in profile.samples().iter().filter_map(|sample| code(sample.stack)) {
        let tier = String::from_utf8_lossy(profile.text(profile.code(code).tier)).into_owned();
        if !tier.is_empty() {
            *tiers.entry(tier).or_default() += 1;
        }
    }
    tiers
}

/// The code at the innermost address of a stack, if it is of this function, or the function was inlined there.
fn part_of(profile: &Profile, stack: StackId, function: FunctionId) -> Option<CodeId> {
    let mut frames = profile.frames_of(stack).peekable();
    let code = frames.peek()?.code?;
    let mut is_part = profile.code(code).function == function;
    for frame in frames {
        is_part |= frame.function == function;
        if !frame.is_inlined() {
            break;
        }
    }
    is_part.then_some(code)
}

/// A recording, and what its profile has of the functions with the most samples.
#[derive(Debug)]
pub struct Counted<'p> {
    what: String,
    path: &'p Path,
    recorded: RecordedProfile<'static>,
    totals: Totals,
    top: Vec<(FunctionId, TopRow)>,
}

impl<'p> Counted<'p> {
    /// Reads a recording in which jitted code is named. Failures call it `what`.
    pub fn read(path: &'p Path, what: &str) -> Self {
        let recorded = profile_recording::read(path, &Options::default(), &|_| {});
        let recorded = recorded.expect("a recording");
        let profile = &recorded.profile;
        let totals = Totals::all(profile);
        let rows = Top::of(profile, &totals, Sort::Own, 0.0).functions;
        let functions = totals.functions(profile);
        assert_eq!(functions.len(), rows.len(), "{what}");
        let ids = functions.into_iter().map(|(id, _)| id);
        let top = ids.zip(rows).take(COMPARED).collect();
        Self { what: what.to_owned(), path, recorded, totals, top }
    }

    fn profile(&self) -> &Profile {
        &self.recorded.profile
    }

    /// Compares all views, and `summary`: what `inject` or `record` printed with `--json`.
    pub fn expect_equal(&mut self, summary: &Value, has_stacks: bool) {
        self.samples();
        self.symbols();
        self.report_as_text();
        self.summary(summary, has_stacks);
        self.page();
        self.tiers_of_samples();
        self.activities(summary);
        self.exports();
        self.annotations();
    }

    /// The profile, counted in another way.
    fn samples(&self) {
        let profile = self.profile();
        let stack = |stack| profile.frames_of(stack).map(|frame| frame.function.0.to_string());
        let samples = profile.samples().iter().map(|sample| (stack(sample.stack).collect(), 1));
        self.compare("profile", &Counts::of(samples), |id| Some(id.0.to_string()));
    }

    /// The symbols of jitted code, as perf finds them at the addresses of samples.
    fn symbols(&self) {
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        for sample in Perf::installed().samples(self.path) {
            let is_in_image =
                sample.dso_name().starts_with("jit-") && sample.dso_name().ends_with(".elf");
            // perf shows names of C++ and Rust in other words.
            if let Some(name) = sample.name().filter(|name| is_in_image && !name.contains('(')) {
                *expected.entry(name.to_owned()).or_default() += 1;
            }
        }
        let profile = self.profile();
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for sample in profile.samples().iter() {
            let code = profile.frames_of(sample.stack).next().and_then(|frame| frame.code);
            let Some(code) = code.map(|code| profile.code(code)) else { continue };
            let symbol = String::from_utf8_lossy(profile.text(code.symbol)).into_owned();
            if expected.contains_key(&symbol) {
                *found.entry(symbol).or_default() += 1;
            }
        }
        assert_eq!(found, expected, "{}: perf", self.what);
    }

    /// The tiers, counted by the innermost frame of each sample.
    fn tiers_of_samples(&self) {
        let profile = self.profile();
        for (id, row) in &self.top {
            let expected = by_tier(profile, |stack| {
                let frame = profile.frames_of(stack).next()?;
                frame.code.filter(|_| frame.function == *id)
            });
            let tiers = row.tiers.iter().map(|tier| (tier.tier.clone(), tier.samples));
            assert_eq!(expected, tiers.collect(), "{}: {row:?}", self.what);
        }
    }

    /// `jitscribe report --stdio`: as JSON, and as text.
    fn report_as_text(&self) {
        let mut command = jitscribe();
        command.args(["report", "--stdio", "--percent-limit", "0", "-i"]).arg(self.path);
        let printed = run(&mut command).stdout;
        let report = json(command.arg("--json"));
        let rows = report["top"]["functions"].as_array().expect("a list");
        let table = printed.lines().skip_while(|line| !line.contains("self %")).skip(1);
        for (((id, row), printed), line) in self.top.iter().zip(rows).zip(table) {
            let expected = serde_json::to_value(row).expect("JSON");
            assert_eq!(*printed, expected, "{}: {id:?}", self.what);
            let words: Vec<String> =
                line.split_whitespace().map(|word| word.replace(',', "")).collect();
            let numbers = (words[1].parse(), words[3].parse());
            assert_eq!(numbers, (Ok(row.samples), Ok(row.inclusive)), "{}: {line}", self.what);
        }
    }

    /// What `jitscribe inject --json` says of the ten jitted functions with the most samples.
    fn summary(&self, summary: &Value, has_stacks: bool) {
        let what = &self.what;
        assert_eq!(summary["samples"]["samples"], self.totals.samples(), "{what}");
        let listed = summary["top"].as_array().expect("a list");
        let is_jitted = |row: &TopRow| ["jitted", "interpreted"].contains(&row.function.kind);
        let mut rows = Top::of(self.profile(), &self.totals, Sort::Own, 0.0).functions;
        rows.retain(is_jitted);
        assert_eq!(listed.len(), rows.len().min(10), "{what}");
        for (listed, row) in listed.iter().zip(rows) {
            let row = serde_json::to_value(row).expect("JSON");
            for field in ["name", "file", "line", "column", "samples", "inclusive", "tiers"] {
                let is_unknown = field == "inclusive" && !has_stacks;
                let expected = if is_unknown { &Value::Null } else { &row[field] };
                assert_eq!(listed[field], *expected, "{what}: {field} of {row} and {listed}");
            }
        }
    }

    /// The data in the page.
    fn page(&mut self) {
        let mut html = Vec::new();
        let RecordedProfile { profile, code, .. } = &mut self.recorded;
        profile_report::write(profile, code, &Default::default(), &mut html).expect("written");
        self.compare("page", &views::page(&html), |id| Some(id.0.to_string()));
    }

    /// What was done: in the report as JSON and as text, in the summary, in the page, and in pprof's labels.
    fn activities(&mut self, summary: &Value) {
        let mut command = jitscribe();
        command.args(["report", "--stdio", "-i"]).arg(self.path);
        let text = run(&mut command).stdout;
        let counted = json(command.arg("--json"))["activities"].clone();
        let what = &self.what;
        assert_eq!(summary["activities"], counted, "{what}");
        let samples = |field: &str| counted[field].as_u64().expect("a number");
        let all = self.totals.samples();
        let mut parts: BTreeMap<String, u64> = [
            ("jitted code", samples("jitted")),
            ("interpreter", samples("interpreter")),
            ("garbage collector", samples("garbage_collector")),
            ("compiler", samples("compiler")),
            ("kernel", samples("kernel")),
            ("other native code", samples("native")),
            ("processes without jitted code", all - samples("samples")),
        ]
        .map(|(name, samples)| (name.to_owned(), samples))
        .into();
        parts.retain(|_, samples| *samples > 0);
        assert!(samples("samples") > 0 && parts.values().sum::<u64>() == all, "{what}: {parts:?}");

        let (_, line) = text.split_once("time by activity: ").expect("a line");
        let line = line.lines().next().expect("a line").split(", ");
        let shown: BTreeMap<String, String> = line
            .map(|part| part.trim_end_matches(" %").rsplit_once(' ').expect("a number"))
            .map(|(name, percent)| (name.to_owned(), percent.to_owned()))
            .collect();
        let tenths = |samples: u64| {
            let tenths = (samples * 1000 + all / 2) / all;
            format!("{}.{}", tenths / 10, tenths % 10)
        };
        let expected = parts.iter().map(|(name, samples)| (name.clone(), tenths(*samples)));
        assert_eq!(shown, expected.collect(), "{what}");

        let mut html = Vec::new();
        let RecordedProfile { profile, code, .. } = &mut self.recorded;
        profile_report::write(profile, code, &Default::default(), &mut html).expect("written");
        assert_eq!(views::page_activities(&html), parts, "{what}");

        let mut pprof = Vec::new();
        Format::Pprof.write(profile, &Default::default(), &mut pprof).expect("written");
        assert_eq!(views::pprof_activities(&pprof), parts, "{what}");
    }

    fn exports(&self) {
        let export = |format: Format, tiers| {
            let mut options = profile_export::Options::default();
            options.tiers = tiers;
            let mut written = Vec::new();
            format.write(self.profile(), &options, &mut written).expect("written");
            written
        };
        let key = |id: FunctionId| {
            let function = self.profile().function(id);
            Some(format!("{:016x}", FunctionKey::of(self.profile(), function).id()))
        };
        let name = |id: FunctionId| {
            let name = String::from_utf8_lossy(self.profile().function_name(id)).into_owned();
            // Others are spelled differently.
            let is_plain =
                !name.contains(|it: char| it.is_control() || it == ';') && name.len() < 1000;
            is_plain.then_some(name)
        };
        let views = |format| export(format, false);
        self.compare("folded", &views::folded(&views(Format::Folded)), name);
        self.compare("speedscope", &views::speedscope(&views(Format::Speedscope)), key);
        self.compare("firefox", &views::firefox(&views(Format::Firefox)), |id| {
            Some(id.0.to_string())
        });
        self.compare("chrome", &views::chrome(&views(Format::Chrome)), key);
        self.compare("pprof", &views::pprof(&views(Format::Pprof)), name);
        self.compare("otlp", &views::otlp(&views(Format::Otlp)), name);
        self.tiers(&views::folded(&export(Format::Folded, true)));
        self.busiest_thread(&views::cpuprofile(&views(Format::Cpuprofile)), key);
    }

    /// The samples in each tier, where formats have tiers in names.
    fn tiers(&self, counts: &Counts) {
        let mut by_tier: BTreeMap<String, u64> = BTreeMap::new();
        let rows = Top::of(self.profile(), &self.totals, Sort::Own, 0.0).functions;
        for row in &rows {
            for tier in &row.tiers {
                let label = format!("{} [{}]", row.function.name, tier.tier);
                *by_tier.entry(label).or_default() += tier.samples;
            }
        }
        for (_, row) in &self.top {
            for tier in &row.tiers {
                let label = format!("{} [{}]", row.function.name, tier.tier);
                if label.contains(|it: char| it.is_control() || it == ';') {
                    continue;
                }
                assert_eq!(counts.of_function(&label).0, by_tier[&label], "{}: {label}", self.what);
            }
        }
    }

    /// A `.cpuprofile` has one thread only.
    fn busiest_thread(&self, counts: &Counts, key: impl Fn(FunctionId) -> Option<String>) {
        let profile = self.profile();
        let mut threads: BTreeMap<_, usize> = BTreeMap::new();
        for sample in profile.samples().iter() {
            *threads.entry(sample.thread).or_default() += 1;
        }
        let most = threads.values().max().expect("a thread");
        let (thread, _) = threads.iter().find(|(_, count)| *count == most).expect("a thread");
        let of_thread = profile.samples().iter().filter(|sample| sample.thread == *thread);
        let totals = Totals::of(profile, of_thread);
        self.compare_with("cpuprofile", counts, &totals, key);
    }

    fn annotations(&mut self) {
        let RecordedProfile { profile, code, .. } = &mut self.recorded;
        for (id, row) in &self.top {
            let selection = Default::default();
            let wanted = Wanted::default();
            let annotated = Annotated::of(profile, &selection, *id, code, &wanted);
            let numbers = (annotated.samples, annotated.inclusive);
            assert_eq!(numbers, (row.samples, row.inclusive), "{}: {row:?}", self.what);
            assert_eq!(annotated.function, row.function, "{}", self.what);
            let mut tiers: BTreeMap<String, u64> = BTreeMap::new();
            for code in annotated.codes.iter().chain(&annotated.inlined_into) {
                if !code.tier.is_empty() && code.samples > 0 {
                    *tiers.entry(code.tier.clone()).or_default() += code.samples;
                }
            }
            let expected = by_tier(profile, |stack| part_of(profile, stack, *id));
            assert_eq!(tiers, expected, "{}: {row:?}", self.what);
        }
    }

    fn compare(&self, view: &str, counts: &Counts, label: impl Fn(FunctionId) -> Option<String>) {
        assert_eq!(counts.samples, self.totals.samples(), "{}, {view}", self.what);
        self.compare_with(view, counts, &self.totals, label);
    }

    /// Compares the functions with the most samples. Several functions may have one label: then their own samples are added, and nothing is known of
    /// others.
    fn compare_with(
        &self,
        view: &str,
        counts: &Counts,
        totals: &Totals,
        label: impl Fn(FunctionId) -> Option<String>,
    ) {
        let mut own: BTreeMap<String, u64> = BTreeMap::new();
        let (mut once, mut often) = (BTreeSet::new(), BTreeSet::new());
        for (id, count) in totals.functions(self.profile()) {
            let Some(label) = label(id) else { continue };
            *own.entry(label.clone()).or_default() += count.own;
            if !once.insert(label.clone()) {
                often.insert(label);
            }
        }
        for (id, count) in totals.functions(self.profile()).into_iter().take(COMPARED) {
            let Some(label) = label(id) else { continue };
            let (seen_own, seen_total) = counts.of_function(&label);
            assert_eq!(seen_own, own[&label], "{}, {view}: own of {label}", self.what);
            if !often.contains(&label) {
                assert_eq!(seen_total, count.total, "{}, {view}: total of {label}", self.what);
            }
        }
    }
}
