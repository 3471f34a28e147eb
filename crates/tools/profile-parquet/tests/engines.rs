//! The queries of `fleet/sql` on the engines that they are for: all answer the same, and what `jitscribe report` and `export --folded` say of the recordings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use end_to_end::demo::demo_with_phases;
use end_to_end::engines::{
    CLICKHOUSE, DATAFUSION, DUCKDB, Engine, SPARK, is_of_runtime, reported_functions,
};
use end_to_end::jitscribe::jitscribe;
use end_to_end::tool::{run, tool};
use parquet::file::reader::{FileReader, SerializedFileReader};
use profile::{FunctionKind, Profile, clean_name};
use profile_recording::Options;
use serde_json::Value;
use tempfile::TempDir;

const ENGINES: [Engine; 4] = [DUCKDB, DATAFUSION, CLICKHOUSE, SPARK];

const QUERIES: [&str; 5] = ["top", "regressions", "churn", "coverage", "flame"];

/// The recordings: the host, and the version of the service.
const RECORDINGS: [(&str, &str); 3] = [("host-a", "1.0"), ("host-b", "1.0"), ("host-c", "1.1")];

type Row = Vec<Value>;

struct Fleet {
    folder: TempDir,
}

impl Fleet {
    /// Records the demo once for each host.
    fn record() -> Self {
        let folder = TempDir::with_prefix("jitscribe-fleet-").expect("a folder");
        for (host, version) in RECORDINGS {
            let dir = folder.path().join(host);
            std::fs::create_dir(&dir).expect("a folder");
            let data = dir.join("run.data");
            let mut record = jitscribe();
            record.args(["record", "-F", "999", "-o"]).arg(&data).arg("--");
            run(record.args(demo_with_phases("100", &dir, "truth.json", &[])));
            let mut export = jitscribe();
            export.args([
                "export",
                "--host",
                host,
                "--service",
                "shop",
                "--service-version",
                version,
            ]);
            export.arg("--parquet").arg(folder.path().join("fleet")).arg("-i").arg(&data);
            run(&mut export);
            // The same recording has the same files, which are there.
            let again = tool(export.get_program()).args(export.get_args()).output().expect("run");
            assert_eq!(again.status.code(), Some(1), "{}", String::from_utf8_lossy(&again.stderr));
        }
        Self { folder }
    }

    fn data(&self, host: &str) -> PathBuf {
        self.folder.path().join(host).join("run.data")
    }

    fn profile(&self, host: &str) -> Profile {
        let recorded = profile_recording::read(&self.data(host), &Options::default(), &|_| {});
        recorded.expect("a recording").profile
    }

    /// The answers of an engine.
    fn ask(&self, engine: Engine) -> Vec<(Vec<String>, Vec<Row>)> {
        engine.ask(&self.folder.path().join("fleet"), QUERIES)
    }

    /// The functions of a recording, as `report` has them.
    fn report(&self, host: &str) -> Vec<Value> {
        reported_functions(&self.data(host))
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

#[test]
fn engines_agree_with_each_other_and_with_reports() {
    let fleet = Fleet::record();
    let answers = ENGINES.map(|engine| (engine.name, fleet.ask(engine)));
    let (_, first) = &answers[0];
    assert_eq!(first.len(), QUERIES.len());
    for (engine, answers) in &answers {
        for ((answer, expected), query) in answers.iter().zip(first).zip(QUERIES) {
            assert_eq!(answer, expected, "{query} on {engine}");
        }
    }
    let [top, regressions, churn, coverage, flame] = first.as_slice() else { unreachable!() };
    let reports = RECORDINGS.map(|(host, version)| (version, fleet.report(host)));
    expect_top(&top.1, &reports, &fleet);
    expect_regressions(&regressions.1, &reports);
    expect_coverage(&coverage.1, &reports);
    expect_churn(&churn.1, &fleet);
    expect_flame(&flame.1, &fleet);
}

fn cleaned(name: &str) -> String {
    String::from_utf8(clean_name(name.as_bytes())).expect("UTF-8")
}

type Reports = [(&'static str, Vec<Value>)];

/// Name, file, tier and generation; the hosts, and the samples in it.
fn expect_top(rows: &[Row], reports: &Reports, fleet: &Fleet) {
    let mut expected: BTreeMap<_, (BTreeSet<&str>, u64)> = BTreeMap::new();
    for (host, _) in RECORDINGS {
        let profile = fleet.profile(host);
        for sample in profile.samples().iter() {
            let leaf = profile.frames_of(sample.stack).next().expect("a frame");
            let function = profile.function(leaf.function);
            if ![FunctionKind::Jitted, FunctionKind::Interpreted].contains(&function.kind) {
                continue;
            }
            let text = |id| String::from_utf8_lossy(profile.text(id)).into_owned();
            let code = profile.code(leaf.code.expect("a code"));
            let key = (text(function.name), text(function.file), text(code.tier), code.generation);
            let (hosts, samples) = expected.entry(key).or_default();
            hosts.insert(host);
            *samples += 1;
        }
    }
    let rows = rows.iter().map(|row| {
        let generation = u32::try_from(number(&row[3])).expect("few generations");
        let key = (text(&row[0]), text(&row[1]), text(&row[2]), generation);
        (key, (number(&row[4]), number(&row[5])))
    });
    let found: BTreeMap<_, _> = rows.collect();
    assert!(found.len() < 50, "the query has a limit");
    let expected: BTreeMap<_, _> = expected
        .into_iter()
        .map(|(key, (hosts, samples))| (key, (hosts.len() as u64, samples)))
        .collect();
    assert_eq!(found, expected);
    assert!(found.keys().any(|(.., generation)| *generation > 1), "nothing was compiled twice");
    // The samples of each function are those that reports have.
    let mut of_reports: BTreeMap<String, u64> = BTreeMap::new();
    for function in reports.iter().flat_map(|(_, functions)| functions) {
        if is_of_runtime(function) && number(&function["samples"]) > 0 {
            *of_reports.entry(text(&function["name"])).or_default() += number(&function["samples"]);
        }
    }
    let mut of_engines: BTreeMap<String, u64> = BTreeMap::new();
    for ((name, ..), (_, samples)) in found {
        *of_engines.entry(name).or_default() += samples;
    }
    assert_eq!(of_engines, of_reports);
}

/// Name and file; samples before and after, and the change of the share.
fn expect_regressions(rows: &[Row], reports: &Reports) {
    let mut all = [0_u64; 2];
    let mut expected: BTreeMap<(String, String, bool, bool), [u64; 2]> = BTreeMap::new();
    for (version, functions) in reports {
        let side = usize::from(*version == "1.1");
        for function in functions {
            let samples = number(&function["samples"]);
            // Functions that differ by what their runtime or compiler made up are the same.
            let (name, file) = (cleaned(&text(&function["name"])), text(&function["file"]));
            let (is_native, is_kernel) =
                (function["kind"] == "native", function["kind"] == "kernel");
            expected.entry((name, file, is_native, is_kernel)).or_default()[side] += samples;
            all[side] += samples;
        }
    }
    expected.retain(|_, samples| *samples != [0; 2]);
    let mut last = f64::INFINITY;
    for row in rows {
        let samples = [number(&row[2]), number(&row[3])];
        let is_it = |((name, ..), of_reports): (&(String, String, bool, bool), &[u64; 2])| {
            row[0] == **name && *of_reports == samples
        };
        assert!(expected.iter().any(is_it), "{row:?}");
        let [before, after] = samples.map(|count| count as f64);
        let change = row[4].as_f64().expect("a number");
        // The reader of JSON rounds the last digit otherwise.
        let expected = after / all[1] as f64 - before / all[0] as f64;
        assert!((change - expected).abs() <= f64::EPSILON, "{change} {expected}");
        assert!(change <= last);
        last = change;
    }
    assert_eq!(rows.len(), expected.len().min(50));
}

/// The service; all samples, those with a name, those in code of runtimes, those of them with a file; hosts.
fn expect_coverage(rows: &[Row], reports: &Reports) {
    let functions = || reports.iter().flat_map(|(_, functions)| functions);
    let sum = |of: &dyn Fn(&&Value) -> bool| -> u64 {
        functions().filter(of).map(|function| number(&function["samples"])).sum()
    };
    let has_name =
        |it: &&Value| !["unknown", "end of stack"].contains(&it["kind"].as_str().unwrap());
    let expected = [
        sum(&|_| true),
        sum(&has_name),
        sum(&|it| is_of_runtime(it)),
        sum(&|it| is_of_runtime(it) && it["file"] != ""),
        reports.len() as u64,
    ];
    let [row] = rows else { panic!("{rows:?}") };
    assert_eq!(row[0], "shop");
    let found: Vec<u64> = row[1..].iter().map(number).collect();
    assert_eq!(found, expected);
    assert!(expected[2] > 100, "{expected:?}");
}

/// Name, file and tier; hosts, compilations. Against the profile's own list of compilations.
fn expect_churn(rows: &[Row], fleet: &Fleet) {
    let mut expected: BTreeMap<(String, String), (BTreeSet<&str>, u64)> = BTreeMap::new();
    for (host, _) in RECORDINGS {
        let profile = fleet.profile(host);
        for code in profile.codes().iter().filter(|code| code.process.is_some()) {
            let text = |id| String::from_utf8_lossy(profile.text(id)).into_owned();
            let key = (text(profile.function(code.function).name), text(code.tier));
            let (hosts, compiled) = expected.entry(key).or_default();
            hosts.insert(host);
            *compiled += 1;
        }
    }
    expected.retain(|_, (hosts, compiled)| *compiled >= 2 * hosts.len() as u64);
    let found =
        rows.iter().map(|row| ((text(&row[0]), text(&row[2])), (number(&row[3]), number(&row[4]))));
    let found: BTreeMap<_, _> = found.collect();
    let expected: BTreeMap<_, _> = expected
        .into_iter()
        .map(|(key, (hosts, compiled))| (key, (hosts.len() as u64, compiled)))
        .collect();
    assert_eq!(found, expected);
    assert!(!found.is_empty(), "the demo compiles a function again and again");
}

/// A stack, and its samples. Against the folded stacks of each recording.
fn expect_flame(rows: &[Row], fleet: &Fleet) {
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for (host, _) in RECORDINGS {
        let mut export = jitscribe();
        export.args(["export", "--folded", "-o", "-", "-i"]).arg(fleet.data(host));
        for line in run(&mut export).stdout.lines() {
            let (stack, samples) = line.rsplit_once(' ').expect("a number");
            // The program comes first, and frames have suffixes.
            let frames = stack.split(';').skip(1).map(|frame| {
                let suffix = ["_[j]", "_[i]", "_[k]", "_[0]"]
                    .into_iter()
                    .find_map(|it| frame.strip_suffix(it));
                cleaned(suffix.unwrap_or(frame))
            });
            let frames: Vec<String> = frames.collect();
            *expected.entry(frames.join(";")).or_default() +=
                samples.parse::<u64>().expect("a number");
        }
    }
    let found: BTreeMap<String, u64> =
        rows.iter().map(|row| (text(&row[0]), number(&row[1]))).collect();
    assert_eq!(rows.len(), found.len());
    assert_eq!(found, expected);
}

/// What is written of a fleet has the names that the documentation has.
#[test]
fn columns_are_documented() {
    let docs = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/fleet.md"),
    )
    .expect("docs/fleet.md");
    let mut builder = profile::Builder::new();
    let event = builder.event(b"cycles");
    let process = builder.process(1, b"made");
    let thread = builder.thread(process, 1, b"made");
    let name = builder.string(b"f");
    let function = builder.function(profile::Function::new(name, profile::FunctionKind::Native));
    let frame = builder.frame(profile::Frame::new(function));
    let stack = builder.stack(None, frame);
    builder.sample(profile::SampleRow { time: 0, thread, event, weight: 1, stack });
    let mut about = profile::About::default();
    about.to_utc = Some(0);
    builder.about(about);
    let profile = builder.finish();
    let options = profile_parquet::Options::new("h");
    let exported = profile_parquet::files(&profile, &mut NoCode, &options).expect("tables");
    let mut columns = 0;
    for file in exported.files {
        let reader = SerializedFileReader::new(bytes::Bytes::from(file.content)).expect("Parquet");
        for field in reader.metadata().file_metadata().schema().get_fields() {
            let name = field.name();
            assert!(
                docs.contains(&format!("| `{name}` |")),
                "docs/fleet.md: {name} of {:?}",
                file.path
            );
            columns += 1;
        }
    }
    assert!(columns > 30, "{columns} columns");
}

struct NoCode;

impl profile::CodeSource for NoCode {
    fn listing(&mut self, _: profile::CodeId) -> Option<profile::Listing> {
        None
    }

    fn name_at(&mut self, _: profile::CodeId, _: u64) -> Option<(Vec<u8>, u64)> {
        None
    }

    fn source(&mut self, _: &[u8]) -> Option<profile::Source> {
        None
    }
}
