//! The queries of `fleet/sql` on the engines that they are for: all answer the same, and what `jitscribe report` and `export --folded` say of the recordings.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use end_to_end::demo::demo_with_phases;
use end_to_end::engines::{
    CLICKHOUSE, DATAFUSION, DUCKDB, Engine, SPARK, is_of_runtime, reported_functions,
};
use end_to_end::jitscribe::{fleet as fleet_command, jitscribe};
use end_to_end::tool::{run, tool};
use profile::{FunctionKind, Profile, clean_name};
use profile_recording::Options;
use serde_json::Value;
use tempfile::TempDir;

const ENGINES: [Engine; 4] = [DUCKDB, DATAFUSION, CLICKHOUSE, SPARK];

const QUERIES: [&str; 6] = ["top", "regressions", "churn", "coverage", "by_host", "flame"];

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
    let [top, regressions, churn, coverage, by_host, flame] = first.as_slice() else {
        unreachable!()
    };
    let reports = RECORDINGS.map(|(host, version)| (version, fleet.report(host)));
    expect_top(&top.1, &reports, &fleet);
    expect_regressions(&regressions.1, &reports);
    expect_coverage(&coverage.1, &reports);
    expect_churn(&churn.1, &fleet);
    expect_by_host(&by_host.1, &regressions.1);
    expect_flame(&flame.1, &fleet);
    expect_command(&fleet, [top, regressions, churn, coverage]);
    expect_bucket(&fleet);
    expect_page(&fleet, &coverage.1);
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

/// Lineage, host, whether it is the second version, samples: together they are those of the versions.
fn expect_by_host(rows: &[Row], regressions: &[Row]) {
    let of_versions = |hosts: &dyn Fn(&str) -> bool, side: u64| -> BTreeMap<i64, u64> {
        let mut sums = BTreeMap::new();
        for row in rows.iter().filter(|row| hosts(row[1].as_str().expect("a host"))) {
            assert_eq!(number(&row[2]), side, "{row:?}");
            *sums.entry(row[0].as_i64().expect("a key")).or_default() += number(&row[3]);
        }
        sums
    };
    let before = of_versions(&|host| ["host-a", "host-b"].contains(&host), 0);
    let after = of_versions(&|host| host == "host-c", 1);
    for row in regressions {
        let lineage = row[5].as_i64().expect("a key");
        let samples = [&before, &after].map(|side| side.get(&lineage).copied().unwrap_or_default());
        assert_eq!(samples, [number(&row[2]), number(&row[3])], "{row:?}");
    }
}

/// An answer: the names of its columns, and its rows.
type Answer = (Vec<String>, Vec<Row>);

/// `jitscribe fleet` answers what the engines do.
fn expect_command(fleet: &Fleet, answers: [&Answer; 4]) {
    let ask = |verb: &str, options: &[&str]| -> Value {
        let mut command = fleet_command();
        command.arg(verb).arg(fleet.folder.path().join("fleet")).arg("--json").args(options);
        serde_json::from_str(&run(&mut command).stdout).expect("JSON")
    };
    let [top, regressions, churn, coverage] = answers;
    let of = |(columns, rows): &Answer| -> Vec<BTreeMap<String, Value>> {
        let named = |row: &Row| columns.iter().cloned().zip(row.iter().cloned()).collect();
        rows.iter().map(named).collect()
    };
    let rows = |answer: &Value, name: &str| -> Vec<BTreeMap<String, Value>> {
        serde_json::from_value(answer[name].clone()).expect("rows")
    };
    for (verb, name, answer) in [
        ("top", "functions", top),
        ("churn", "functions", churn),
        ("coverage", "services", coverage),
    ] {
        let said = ask(verb, &[]);
        assert_eq!(rows(&said, name), of(answer), "{verb}");
        assert_eq!(said["samples"], coverage.1[0][1], "{verb}");
    }
    // What is selected, and how much.
    let few = ask("top", &["-n", "2"]);
    assert_eq!(rows(&few, "functions"), of(top)[..2]);
    let of_host = ask("coverage", &["--host", "host-c", "--service", "shop"]);
    let of_report: u64 = fleet.report("host-c").iter().map(|it| number(&it["samples"])).sum();
    assert_eq!(number(&of_host["services"][0]["all_samples"]), of_report);
    for nothing in
        [["--service", "it's"], ["--until", "1980-01-01"], ["--since", "2200-01-01T00:00:00Z"]]
    {
        assert_eq!(ask("top", &nothing)["samples"], 0, "{nothing:?}");
    }
    let difference = ask("diff", &[]);
    assert_eq!(difference["versions"], serde_json::json!(["1.0", "1.1"]));
    assert_eq!(difference["hosts"], serde_json::json!([2, 1]));
    let functions = difference["functions"].as_array().expect("functions");
    let of_lineage: BTreeMap<i64, &Value> =
        functions.iter().map(|row| (row["lineage_key"].as_i64().expect("a key"), row)).collect();
    assert_eq!(of_lineage.len(), functions.len());
    assert!(regressions.1.len() <= functions.len());
    for row in of(regressions) {
        let found = of_lineage[&row["lineage_key"].as_i64().expect("a key")];
        assert_eq!((&found["name"], &found["file"]), (&row["name"], &row["file"]));
        assert_eq!(found["samples"], serde_json::json!([row["own_before"], row["own_after"]]));
        let by_chance = found["by_chance"].as_f64().expect("a probability");
        assert!((0.0..=1.0).contains(&by_chance), "{found}");
    }
    // One program ran on all hosts: what differs is chance.
    let printed = run(fleet_command().arg("diff").arg(fleet.folder.path().join("fleet")));
    assert!(printed.stderr.contains("left out whose change may be chance"), "{}", printed.stderr);
    // What cannot be is refused with what can.
    let mut unknown = fleet_command();
    unknown
        .arg("diff")
        .arg(fleet.folder.path().join("fleet"))
        .args(["--before", "1.0", "--after", "7"]);
    let refused = unknown.output().expect("run");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("there are 1.0, 1.1"));
    let empty = TempDir::new().expect("a folder");
    let refused = fleet_command().arg("top").arg(empty.path()).output().expect("run");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("jitscribe export --parquet"));
}

/// Copies a folder into a bucket, then waits for the end of its input.
const SERVE_BUCKET: &str = r#"
import pathlib, sys
import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1",
                      aws_access_key_id="test", aws_secret_access_key="test")
client.create_bucket(Bucket="tables")
folder = pathlib.Path(sys.argv[1])
for path in folder.rglob("*.parquet"):
    client.upload_file(str(path), "tables", f"of/fleet/{path.relative_to(folder)}")
print(f"http://{host}:{port}", flush=True)
sys.stdin.read()
server.stop()
"#;

/// Tables in a bucket are those in the folder.
fn expect_bucket(fleet: &Fleet) {
    let tables = fleet.folder.path().join("fleet");
    let mut server = tool(end_to_end::tool::installed("moto-5.2.5/bin/python3"));
    server.args(["-c", SERVE_BUCKET]).arg(&tables);
    server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = server.spawn().expect("start");
    let mut lines = BufReader::new(server.stdout.take().expect("a pipe")).lines();
    let endpoint = lines.next().expect("a line").expect("text");
    let of = |place: &Path| {
        let mut command = fleet_command();
        command.arg("top").arg(place).arg("--json").env("AWS_ENDPOINT", &endpoint);
        command.env("AWS_ALLOW_HTTP", "true").env("AWS_REGION", "us-east-1");
        command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
        let mut answer: Value = serde_json::from_str(&run(&mut command).stdout).expect("JSON");
        answer["tables"].take();
        answer
    };
    assert_eq!(of(Path::new("s3://tables/of/fleet")), of(&tables));
    // It ends when its input does.
    drop(server.stdin.take());
    assert!(server.wait().expect("wait").success());
}

/// The page of all hosts has all samples, and names the function that cost most.
fn expect_page(fleet: &Fleet, coverage: &[Row]) {
    let page = fleet.folder.path().join("fleet.html");
    let tables = fleet.folder.path().join("fleet");
    run(fleet_command().arg("report").arg(&tables).arg("-o").arg(&page));
    let mut browser = test_browser::Browser::start();
    let mut open = browser.open(&page, "#view=functions", (1200, 800));
    let said = open.eval("document.querySelector('#selection').textContent");
    let samples: String = text(&said).chars().filter(|c| c.is_ascii_digit() || *c == ' ').collect();
    let all = number(&coverage[0][1]).to_string();
    assert!(samples.replace(' ', "").starts_with(&all.repeat(2)), "{said} {all}");
    let lanes = text(&open.eval("document.querySelector('#lanes').textContent"));
    for lane in ["shop 1.0", "shop 1.1", "host-a", "host-b", "host-c"] {
        assert!(lanes.contains(lane), "{lane}: {lanes}");
    }
    open.finish();
    // The same tables make the same page.
    let first = std::fs::read(&page).expect("a page");
    run(fleet_command().arg("report").arg(&tables).arg("-o").arg(&page));
    assert!(first == std::fs::read(&page).expect("a page"));
    // A file that is no report is not replaced.
    std::fs::write(&page, "mine").expect("a file");
    let refused =
        fleet_command().arg("report").arg(&tables).arg("-o").arg(&page).output().expect("run");
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(std::fs::read(&page).expect("a file"), b"mine");
}

/// A stack, and its samples. Against the folded stacks of each recording, in which a run of frames without a name is one frame.
fn expect_flame(rows: &[Row], fleet: &Fleet) {
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    let mut unnamed: BTreeSet<String> = BTreeSet::new();
    for (host, _) in RECORDINGS {
        let profile = fleet.profile(host);
        let functions = profile.functions().iter().filter(|it| it.kind == FunctionKind::Unknown);
        unnamed
            .extend(functions.map(|it| cleaned(&String::from_utf8_lossy(profile.text(it.name)))));
        let mut export = jitscribe();
        export.args(["export", "--folded", "-o", "-", "-i"]).arg(fleet.data(host));
        for line in run(&mut export).stdout.lines() {
            let (stack, samples) = line.rsplit_once(' ').expect("a number");
            // The program comes first, and frames have suffixes.
            let frames = stack.split(';').skip(1).map(|frame| {
                let suffix = ["_[j]", "_[i]", "_[k]", "_[0]"]
                    .into_iter()
                    .find_map(|it| frame.strip_suffix(it));
                let name = suffix.unwrap_or(frame);
                let of_run = name.rsplit_once(" ×").filter(|(name, _)| unnamed.contains(*name));
                cleaned(of_run.map_or(name, |(name, _)| name))
            });
            let frames: Vec<String> = frames.collect();
            *expected.entry(frames.join(";")).or_default() +=
                samples.parse::<u64>().expect("a number");
        }
    }
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows {
        let stack = text(&row[0]);
        let mut frames: Vec<&str> = stack.split(';').collect();
        frames.dedup_by(|frame, caller| frame == caller && unnamed.contains(*frame));
        *found.entry(frames.join(";")).or_default() += number(&row[1]);
    }
    let stacks: BTreeSet<Option<&str>> = rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(rows.len(), stacks.len());
    assert_eq!(found, expected);
}
