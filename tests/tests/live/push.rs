//! `jitscribe push` on a recording of node: receivers of the official stubs get what perf recorded, and nothing is lost while there is none.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use end_to_end::folder::shared_folder;
use end_to_end::jitscribe::jitscribe;
use end_to_end::perf::Perf;
use end_to_end::pprof::{pprof, pprof_top};
use end_to_end::receiver::{self, Receiver};
use end_to_end::tool::{Ended, ended, run, tool};
use serde_json::{Value, json};
use tempfile::TempDir;

const SCRIPT: &str = "\
function leaf(x) {
  let r = x;
  for (let i = 0; i < 8; i++) r = (r * 31 + i) | 0;
  return r;
}
function top(n) {
  let s = 0;
  for (let i = 0; i < n; i++) s = (s + leaf(i)) | 0;
  return s;
}
const end = Date.now() + 600;
while (Date.now() < end) top(10000);
";

/// A folder with a recording, `run.data`.
fn recorded() -> PathBuf {
    shared_folder("push", |folder| {
        fs::write(folder.join("spin.js"), SCRIPT).expect("a script");
        tool("node");
        let mut record = jitscribe();
        record.current_dir(folder);
        run(record.args(["record", "-F", "999", "-o", "run.data", "--", "node", "spin.js"]));
    })
}

fn folder() -> TempDir {
    TempDir::with_prefix("jitscribe-push-").expect("a folder")
}

fn push(recorded: &Path, words: &[&str]) -> Command {
    let mut command = jitscribe();
    command.current_dir(recorded).args(["push", "-i", "run.data"]).args(words);
    for name in ["ENDPOINT", "PROTOCOL", "HEADERS", "TIMEOUT", "COMPRESSION", "CERTIFICATE"] {
        command.env_remove(format!("OTEL_EXPORTER_OTLP_{name}"));
    }
    command.env_remove("OTEL_SERVICE_NAME").env_remove("OTEL_RESOURCE_ATTRIBUTES");
    command
}

/// The exit code, and what was said.
fn done(command: &mut Command) -> (Option<i32>, String) {
    let Ended { code, stderr, .. } = ended(command);
    (code, stderr)
}

/// How many samples perf counts.
fn samples(recorded: &Path) -> u64 {
    let mut perf = Perf::installed().command();
    let perf = perf.current_dir(recorded).args(["script", "-G", "-F", "ip", "-i", "run.data"]);
    run(perf).stdout.lines().filter(|line| !line.trim().is_empty()).count() as u64
}

fn stacks(file: &Value) -> BTreeMap<String, u64> {
    serde_json::from_value(file["stacks"].clone()).expect("counts")
}

#[test]
fn receivers_get_what_perf_recorded() {
    let recorded = recorded();
    let folder = folder();
    let receiver = Receiver::start(folder.path(), &json!({}));
    let http = done(&mut push(&recorded, &["--otlp", &receiver.http(), "--service", "shop"]));
    assert_eq!(http.0, Some(0), "{}", http.1);
    assert!(http.1.contains(&format!("sent 1 profile to {}", receiver.http())), "{}", http.1);
    let mut by_variables = push(&recorded, &["--otlp"]);
    by_variables.env("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.grpc());
    by_variables.env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc").env("OTEL_SERVICE_NAME", "shop");
    by_variables.env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=seven");
    by_variables.env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=a%20test");
    let grpc = done(&mut by_variables);
    assert_eq!(grpc.0, Some(0), "{}", grpc.1);

    let files = receiver::read(&receiver.files());
    let [http, grpc] = &files[..] else { panic!("two files") };
    assert_eq!(stacks(http).values().sum::<u64>(), samples(&recorded));
    assert_eq!(stacks(http), stacks(grpc));
    let in_jitted = stacks(http).into_iter().filter(|(stack, _)| stack.contains("top;leaf"));
    let in_jitted: u64 = in_jitted.map(|(_, count)| count).sum();
    assert!(in_jitted > 50, "{in_jitted} samples");
    assert_eq!(http["resources"][0]["service.name"], "shop");
    assert_eq!(grpc["resources"][0]["deployment.environment.name"], "a test");
    assert_eq!(receiver.headers()[1]["x-tenant"], "seven");

    // The file that `export` writes has the same IDs.
    let exported = folder.path().join("run.data.otlp~");
    let mut export = jitscribe();
    export.current_dir(&recorded).args(["export", "--otlp", "-i", "run.data", "-o"]);
    run(export.arg(&exported));
    let [again] = &receiver::read(&[exported])[..] else { panic!("one file") };
    assert_eq!(stacks(again), stacks(http));
}

#[test]
fn what_cannot_be_sent_is_kept_and_sent_by_the_next_push() {
    let recorded = recorded();
    let folder = folder();
    let spool = folder.path().join("spool");
    let spool = spool.to_str().expect("a path");
    let down = "http://127.0.0.1:1";
    let (code, said) = done(&mut push(&recorded, &["--otlp", down, "--retry-for", "0"]));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("127.0.0.1:1") && said.contains("pass --spool DIR"), "{said}");

    let keep = |more: &[&str]| {
        let words = [&["--otlp", down, "--retry-for", "0", "--spool", spool], more].concat();
        done(&mut push(&recorded, &words))
    };
    let (code, said) = keep(&[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("kept in {spool}: 1 profile")), "{said}");
    let (code, said) = keep(&[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("the spool has this profile already"), "{said}");
    let (code, said) = keep(&["--service", "shop"]);
    assert_eq!((code, said.contains("2 profiles")), (Some(0), true), "{said}");

    let receiver = Receiver::with_faults(
        &folder.path().join("received"),
        &[
            json!({ "http": 401, "body": "no token" }),
            json!({ "http": 503, "headers": { "Retry-After": "1" } }),
        ],
    );
    let send = |more: &[&str]| {
        let mut command = jitscribe();
        command.args(["push", "--spool-only", "--spool", spool, "--otlp", &receiver.http()]);
        done(command.args(more))
    };
    let (code, said) = send(&[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("HTTP 401: no token") && said.contains("2 profiles"), "{said}");
    let token = folder.path().join("token");
    fs::write(&token, "Bearer secret\n").expect("a file");
    let (code, said) = send(&["--header", &format!("Authorization=@{}", token.display())]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("HTTP 503; trying again in") && said.contains("sent 2 profiles"),
        "{said}"
    );
    assert_eq!(receiver.headers().last().expect("a request")["authorization"], "Bearer secret");
    let files = receiver::read(&receiver.files());
    assert_eq!(files.len(), 2);
    assert_ne!(files[0]["resources"][0]["service.name"], "shop");
    assert_eq!(files[1]["resources"][0]["service.name"], "shop");
    assert_eq!(stacks(&files[0]).values().sum::<u64>(), samples(&recorded));
    let (code, said) = send(&[]);
    assert_eq!((code, said.contains("sent 0 profiles")), (Some(0), true), "{said}");

    // Another server down: the limit has space for one profile of the two.
    keep(&[]);
    let size = fs::read_dir(spool).expect("a folder").map(|entry| entry.expect("an entry"));
    let size = size.map(|entry| entry.metadata().expect("a file").len()).max().expect("a profile");
    let limit = (size * 3 / 2).to_string();
    let (code, said) = keep(&["--service", "shop", "--spool-limit", &limit]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("dropped from the spool, which was full: the oldest profile"), "{said}");
    let (code, said) = keep(&["--spool-limit", "4K"]);
    assert_eq!((code, said.contains("raise --spool-limit")), (Some(1), true), "{said}");
}

#[test]
fn a_rejected_profile_is_an_error_and_so_is_a_wrong_command_line() {
    let recorded = recorded();
    let folder = folder();
    let faults =
        [json!({ "http": 400, "body": "not this one" }), json!({ "partial": [1, "too old"] })];
    let receiver = Receiver::with_faults(folder.path(), &faults);
    let (code, said) = done(&mut push(&recorded, &["--otlp", &receiver.http()]));
    assert_eq!((code, said.contains("HTTP 400: not this one")), (Some(1), true), "{said}");
    let (code, said) = done(&mut push(&recorded, &["--otlp", &receiver.http()]));
    assert_eq!(
        (code, said.contains("rejected 1 of the request's profiles: too old")),
        (Some(1), true),
        "{said}"
    );

    for words in [
        &[][..],
        &["--otlp", "localhost:4318"],
        &["--otlp", "http://x", "--pyroscope", "http://x"],
        &["--pyroscope", "ftp://x"],
        &["--otlp", "http://x", "--header", "nothing"],
        &["--otlp", "http://x", "--header", "Content-Type=x"],
        &["--otlp", "http://x", "--spool-limit", "many"],
        &["--otlp", "http://x", "--spool-only"],
        &["--otlp", "http://x", "--client-cert", "x"],
    ] {
        let (code, said) = done(&mut push(&recorded, words));
        assert_eq!(code, Some(2), "{words:?}: {said}");
    }
    let mut wrong = push(&recorded, &["--otlp"]);
    let (code, said) = done(wrong.env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"));
    assert_eq!((code, said.contains("OTEL_EXPORTER_OTLP_PROTOCOL")), (Some(2), true), "{said}");
}

/// The report of `push --json`, and the exit code.
fn report(command: &mut Command) -> (Option<i32>, Value) {
    let Ended { code, stdout, stderr } = ended(command.arg("--json"));
    let report = serde_json::from_str(&stdout);
    (code, report.unwrap_or_else(|error| panic!("{error}: {stderr}")))
}

#[test]
fn long_profiles_are_sent_in_parts_and_reports_count_them() {
    let recorded = recorded();
    let folder = folder();
    let all = samples(&recorded);
    let limited = Receiver::start(&folder.path().join("limited"), &json!({ "limit": 20_000 }));
    let sum = |receiver: &Receiver| {
        let files = receiver::read(&receiver.files());
        let of_all = files.iter().flat_map(|file| stacks(file).into_values());
        (files.len() as u64, of_all.sum::<u64>())
    };
    let words = ["--otlp", &limited.http(), "--request-limit", "20000"];
    let (code, before) = report(&mut push(&recorded, &words));
    assert_eq!(code, Some(0), "{before}");
    let requests = before["requests"].as_u64().expect("a number");
    assert!(requests > 1, "{before}");
    assert_eq!(sum(&limited), (requests, all));
    let fields = ["schema_version", "verb", "input", "samples", "sent", "divided", "rejected"];
    let values = fields.map(|field| before[field].clone());
    let expected = [json!(1), json!("push"), json!("run.data"), json!(all), json!(requests)];
    assert_eq!(values[..5], expected);
    assert_eq!(values[5..], [json!(0), json!(0)]);
    assert!(before["sent_bytes"] == before["bytes"] && before["bytes"].as_u64() > Some(0));

    // By the answer of the server, whose limit is not known.
    let grpc = Receiver::start(&folder.path().join("grpc"), &json!({ "limit": 20_000 }));
    let words = ["--otlp", &grpc.grpc(), "--protocol", "grpc"];
    let (code, after) = report(&mut push(&recorded, &words));
    assert_eq!((code, &after["requests"]), (Some(0), &json!(1)), "{after}");
    let sent = after["sent"].as_u64().expect("a number");
    assert_eq!(after["divided"], sent - 1, "{after}");
    assert_eq!(sum(&grpc), (sent, all));

    // What is kept, refused and rejected is in the report, too.
    let spool = folder.path().join("spool");
    let spool = spool.to_str().expect("a path");
    let down = ["--otlp", "http://127.0.0.1:1", "--retry-for", "0", "--spool", spool];
    let (code, kept) = report(&mut push(&recorded, &down));
    assert_eq!((code, &kept["spooled"], &kept["sent"]), (Some(0), &json!(1), &json!(0)), "{kept}");
    assert!(kept["last_failure"].as_str().is_some_and(|it| it.contains("127.0.0.1:1")), "{kept}");
    let faults = [json!({ "http": 401 }), json!({ "http": 503 }), json!({ "http": 400 })];
    let receiver = Receiver::with_faults(&folder.path().join("faults"), &faults);
    let spool_only = || {
        let mut command = jitscribe();
        command.args(["push", "--spool-only", "--spool", spool, "--otlp", &receiver.http()]);
        report(&mut command)
    };
    let (code, refused) = spool_only();
    assert_eq!((code, &refused["refused"]), (Some(1), &json!("HTTP 401")), "{refused}");
    assert_eq!((&refused["input"], &refused["spooled"]), (&Value::Null, &json!(1)), "{refused}");
    let (code, rejected) = spool_only();
    let counts = ["retried", "rejected", "sent", "spooled"].map(|field| rejected[field].clone());
    assert_eq!((code, counts), (Some(1), [1, 1, 0, 0].map(|count| json!(count))), "{rejected}");
    let (code, said) =
        done(&mut push(&recorded, &["--otlp", &receiver.http(), "--request-limit", "1K"]));
    assert_eq!((code, said.contains("less than 16K")), (Some(2), true), "{said}");
}

/// The build-ids that `readelf` finds in object files, by the files' names.
fn build_ids(folder: &Path) -> BTreeMap<String, String> {
    let mut ids = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "elf") {
            let notes = run(tool("readelf").arg("-n").arg(&path)).stdout;
            let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            ids.insert(name, id.expect("a build-id").to_owned());
        }
    }
    ids
}

#[test]
fn images_have_their_build_ids() {
    let recorded = recorded();
    let folder = folder();
    let expected = build_ids(&recorded.join("run.data.jit"));
    assert!(!expected.is_empty());
    let exported = |format: &str| {
        let path = folder.path().join(format);
        let mut export = jitscribe();
        export.current_dir(&recorded).args([
            "export",
            &format!("--{format}"),
            "-i",
            "run.data",
            "-o",
        ]);
        run(export.arg(&path));
        path
    };
    let raw = pprof(&exported("pprof"), folder.path(), &["-raw"]);
    let mappings = raw.lines().skip_while(|line| *line != "Mappings").skip(1);
    let words = mappings.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let of_file = |words: &[&str]| {
        let name = words.get(2)?.rsplit('/').next()?;
        expected
            .contains_key(name)
            .then(|| (name.to_owned(), words.get(3).unwrap_or(&"").to_string()))
    };
    let in_pprof: BTreeMap<_, _> = words.filter_map(|words| of_file(&words)).collect();
    assert!(!in_pprof.is_empty(), "no image in\n{raw}");
    let [otlp] = &receiver::read(&[exported("otlp")])[..] else { panic!("one file") };
    let mappings: BTreeMap<String, String> =
        serde_json::from_value(otlp["build_ids"].clone()).expect("texts");
    for (name, id) in &in_pprof {
        assert_eq!(id, &expected[name], "pprof: {name}");
        let of_otlp = mappings.iter().find(|(path, _)| path.ends_with(name.as_str()));
        assert_eq!(of_otlp.map(|(_, id)| id), Some(id), "OTLP: {name}");
    }
    // The key of each function is on each location: as many keys as lines, with 16 digits.
    let keys: BTreeMap<String, Vec<String>> =
        serde_json::from_value(otlp["keys"].clone()).expect("keys");
    let [leaf] = &keys["leaf"][..] else { panic!("one key of leaf: {:?}", keys["leaf"]) };
    assert!(leaf.len() == 16 && keys["top"][..] != [leaf.clone()], "{keys:?}");
    let focus = format!("-tagfocus=function_key={leaf}");
    let focused = pprof_top(&folder.path().join("pprof"), folder.path(), &[&focus]);
    let of_leaf = stacks(otlp).into_iter().filter(|(stack, _)| stack.ends_with(";leaf"));
    let in_leaf: u64 = of_leaf.map(|(_, count)| count).sum();
    assert_eq!(focused.get("leaf").map(|(own, _)| *own), Some(in_leaf), "{focused:?}");
}
