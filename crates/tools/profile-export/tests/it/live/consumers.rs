//! Exports in the programs that they are made for: the numbers that these show are those of the profile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use end_to_end::pprof;
use end_to_end::tool::{cache, run, tool};
use profile_export::firefox::Symbols;
use profile_export::{Format, Options};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::known::{COUNTS, IDLE, KnownCode, PERIOD, SOURCE};

fn installed(path: &str) -> PathBuf {
    let path = cache().join(path);
    assert!(path.exists(), "{} is not there: run scripts/setup.sh test", path.display());
    path
}

/// The profile in all formats, and the source that it refers to.
struct Exported {
    folder: TempDir,
}

impl Exported {
    fn new() -> Self {
        let folder = TempDir::with_prefix("jitscribe-export-").expect("a folder");
        let source = folder.path().join("app.js");
        fs::write(&source, SOURCE).expect("a file");
        let profile = crate::known::profile(&source);
        for format in Format::ALL {
            let mut file =
                fs::File::create(folder.path().join(format!("known.{}", format.extension())))
                    .expect("a file");
            format.write(&profile, &Options::default(), &mut file).expect("written");
        }
        Self { folder }
    }

    fn file(&self, format: Format) -> PathBuf {
        self.folder.path().join(format!("known.{}", format.extension()))
    }
}

/// The samples of each function: in itself, and in itself or what it called. Of the main thread alone, or of both.
fn truth(is_main_thread: bool) -> BTreeMap<String, (u64, u64)> {
    let [first, second, leaf, kernel, other] = COUNTS;
    let other = if is_main_thread { 0 } else { other };
    let rows = [
        ("main", other, first + second + leaf + kernel + other),
        ("outer", first + second, first + second + leaf),
        ("mid", 0, leaf),
        ("leaf", leaf, leaf),
        ("memcpy", 0, kernel),
        ("page_fault", kernel, kernel),
    ];
    rows.into_iter().map(|(name, own, total)| (name.to_owned(), (own, total))).collect()
}

fn pprof(exported: &Exported, options: &[&str]) -> String {
    pprof::pprof(&exported.file(Format::Pprof), exported.folder.path(), options)
}

fn pprof_top(exported: &Exported, options: &[&str]) -> BTreeMap<String, (u64, u64)> {
    pprof::pprof_top(&exported.file(Format::Pprof), exported.folder.path(), options)
}

#[test]
fn pprof_adds_up_functions_lines_and_tiers() {
    let exported = Exported::new();
    assert_eq!(pprof_top(&exported, &[]), truth(false));
    let [first, second, leaf, kernel, other] = COUNTS;
    let row = |name: &str, own, total| (name.to_owned(), (own, total));
    let optimized = [
        row("main", 0, second + leaf),
        row("outer", second, second + leaf),
        row("mid", 0, leaf),
        row("leaf", leaf, leaf),
    ];
    for focus in ["-tagfocus=tier=turbofan", "-tagfocus=generation=2"] {
        assert_eq!(pprof_top(&exported, &[focus]), optimized.clone().into(), "{focus}");
    }
    let helper = pprof_top(&exported, &["-tagfocus=thread=helper"]);
    assert_eq!(helper, [row("main", other, other)].into());

    let head = pprof(&exported, &["-top"]);
    let all = first + second + leaf + kernel + other;
    for line in ["File: app", "Type: cpu", "leaf (inline)", &format!("Total samples = {all}ms")] {
        assert!(head.contains(line), "no {line:?} in\n{head}");
    }
    // Each line of the source: samples in it, and in what it called; `.` for none.
    let listed = pprof(&exported, &["-sample_index=samples", "-list=outer|leaf"]);
    let line = |number: &str| {
        let mut lines = listed.lines().filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words.get(2)? == &format!("{number}:"))
                .then(|| [words[0].to_owned(), words[1].to_owned()])
        });
        lines.next().expect("the line")
    };
    let is = |own: u64, total: u64| {
        [own, total].map(|count| if count > 0 { count.to_string() } else { ".".into() })
    };
    assert_eq!(line("2"), is(first, first), "{listed}");
    assert_eq!(line("3"), is(0, leaf), "{listed}");
    assert_eq!(line("4"), is(second, second), "{listed}");
    assert_eq!(line("11"), is(leaf, leaf), "{listed}");
    // Callers: a number, its share, and the name.
    let peek = pprof(&exported, &["-sample_index=samples", "-peek=^leaf$"]);
    let words: Vec<Vec<&str>> =
        peek.lines().map(|line| line.split_whitespace().collect()).collect();
    let caller = words.iter().find(|words| words.get(3) == Some(&"mid")).expect("the caller");
    assert_eq!(caller[0], leaf.to_string(), "{peek}");
}

/// The command line of the Firefox Profiler, and the process that it asks.
struct Profiler {
    folder: TempDir,
    daemon: Child,
}

impl Profiler {
    /// Starts the process that keeps the profile. `profiler-cli load` would do so too, but gives up after half a second.
    fn load(file: &Path) -> Self {
        // The path of a socket must be short.
        let folder = TempDir::with_prefix_in("p", "/tmp").expect("a folder");
        let mut daemon = program(&folder);
        let daemon = daemon.arg("--daemon").arg(file).args(["--session", "t"]);
        let daemon = daemon.stdout(Stdio::null()).spawn().expect("node");
        let mut profiler = Self { folder, daemon };
        // A question that comes too early makes the client delete the session.
        let log = profiler.folder.path().join("t.log");
        let is_loaded = || fs::read_to_string(&log).is_ok_and(|log| log.contains("Profile loaded"));
        while !is_loaded() {
            let ended = profiler.daemon.try_wait().expect("a child");
            assert_eq!(ended, None, "it ended instead of loading the profile");
            thread::sleep(Duration::from_millis(100));
        }
        profiler
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = program(&self.folder);
        command.args(words).args(["--session", "t"]);
        command
    }

    fn json(&self, words: &[&str]) -> Value {
        let printed = run(self.command(words).arg("--json")).stdout;
        serde_json::from_str(&printed).expect("JSON")
    }

    /// The samples of each function of a thread.
    fn functions(&self, thread: &str) -> BTreeMap<String, (u64, u64)> {
        run(&mut self.command(&["thread", "select", thread]));
        let answer = self.json(&["thread", "functions"]);
        let functions = answer["functions"].as_array().expect("functions").iter();
        let row = |function: &Value| {
            let count = |name: &str| function[name].as_u64().expect("a count");
            let name = function["name"].as_str().expect("a name").to_owned();
            (name, (count("selfSamples"), count("totalSamples")))
        };
        functions.map(row).collect()
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// `profiler-cli`, with sessions in this folder.
fn program(sessions: &TempDir) -> Command {
    let mut command = tool(installed("node-24.19.0/bin/node"));
    command.env("PROFILER_CLI_SESSION_DIR", sessions.path());
    command.arg(installed("profiler-cli-0.10.0/dist/profiler-cli.js"));
    command
}

/// A server that answers questions at this address until the test ends.
fn symbol_server(source: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/token", listener.local_addr().expect("an address"));
    let source = source.to_owned();
    thread::spawn(move || {
        let symbols = Symbols::of(&crate::known::profile(&source));
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
            let (mut line, mut path, mut length) = (String::new(), String::new(), 0);
            while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                if let Some(number) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = number.trim().parse().expect("a length");
                }
                if path.is_empty() {
                    path = line.split(' ').nth(1).unwrap_or_default().replace("/token", "");
                }
                line.clear();
            }
            let mut question = vec![0; length];
            reader.read_exact(&mut question).expect("a question");
            let answer = symbols.answer(&path, &question, &mut KnownCode).unwrap_or(json!({}));
            let answer = answer.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                answer.len()
            );
            stream.write_all((head + &answer).as_bytes()).expect("the answer");
        }
    });
    address
}

#[test]
fn the_firefox_profiler_shows_functions_inlined_calls_source_and_assembly() {
    let exported = Exported::new();
    let profiler = Profiler::load(&exported.file(Format::Firefox));
    assert_eq!(profiler.functions("t-1"), [("main".to_owned(), (7, 7))].into());
    assert_eq!(profiler.functions("t-0"), truth(true));
    let tree = run(&mut profiler.command(&["thread", "samples-top-down"])).stdout;
    assert!(tree.contains("leaf (inl)") && tree.contains("mid (inl)"), "{tree}");
    assert!(tree.contains("JIT (app 4711)!outer") && !tree.contains("outer (inl)"), "{tree}");

    let markers = profiler.json(&["thread", "markers"]);
    let compiled = &markers["byType"][0];
    assert_eq!((&compiled["markerName"], &compiled["count"]), (&json!("JitCode"), &json!(2)));
    let labels = compiled["topMarkers"].as_array().expect("markers").iter();
    let labels: BTreeSet<_> = labels.filter_map(|marker| marker["label"].as_str()).collect();
    assert_eq!(labels, ["outer baseline #1", "outer turbofan #2"].into());

    let server = symbol_server(&exported.folder.path().join("app.js"));
    let functions = profiler.json(&["thread", "functions"]);
    let functions = functions["functions"].as_array().expect("functions");
    let handle = |name: &str| {
        let function = functions.iter().find(|function| function["name"] == name);
        function.expect("the function")["functionHandle"].as_str().expect("a handle").to_owned()
    };
    let annotate = |name: &str, mode: &str| {
        let handle = handle(name);
        let words = ["function", "annotate", &handle, "--mode", mode, "--symbol-server", &server];
        run(&mut profiler.command(&words)).stdout
    };
    let source = annotate("leaf", "src");
    assert!(source.contains("return n * n;"), "{source}");
    let assembly = annotate("outer", "asm");
    // Both compilations, which were at one address; samples of an instruction: with it innermost, and on the stack.
    assert!(assembly.contains("Name: outer [baseline]\n"), "{assembly}");
    assert!(assembly.contains("Name: outer [turbofan] #2\n"), "{assembly}");
    let [first, second, leaf, ..] = COUNTS;
    for (address, count, instruction) in
        [("0x3", first, "imul"), ("0x13", leaf, "imul"), ("0x17", second, "add")]
    {
        let words =
            [address.to_owned(), count.to_string(), count.to_string(), instruction.to_owned()];
        let is_row = |line: &str| line.split_whitespace().take(4).eq(&words);
        assert!(assembly.lines().any(is_row), "no {words:?} in {assembly}");
    }
}

/// What speedscope shows of a file in its table of functions: values as it spells them.
fn speedscope(exported: &Exported, format: Format) -> BTreeMap<String, (String, String)> {
    let page = installed("speedscope-1.25.0/dist/release/index.html");
    let file = exported.file(format);
    let script = exported.folder.path().join(format!("{}.js", format.extension()));
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    let content = base64(&fs::read(&file).expect("the file"));
    fs::write(&script, format!("speedscope.loadFileFromBase64({name:?}, {content:?})"))
        .expect("a file");
    let url =
        format!("file://{}#localProfilePath={}&view=sandwich", page.display(), script.display());
    let mut chromium = tool("chromium");
    chromium.args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader"]);
    chromium.args(["--allow-file-access-from-files", "--virtual-time-budget=20000", "--dump-dom"]);
    let own = exported.folder.path().join(format!("chromium-{}", format.extension()));
    chromium.arg(format!("--user-data-dir={}", own.display()));
    let dom = run(chromium.arg(url)).stdout;
    let cells = texts(&dom);
    let head = cells
        .iter()
        .position(|cell| cell == "Symbol Name")
        .unwrap_or_else(|| panic!("no table in {cells:?}"));
    let row = |cells: &[String]| {
        let value = |cell: &str| cell.split(" (").next().unwrap_or_default().to_owned();
        (cells[2].clone(), (value(&cells[1]), value(&cells[0])))
    };
    cells[head + 1..].chunks_exact(3).map(row).collect()
}

/// The texts between the tags of a page's body.
fn texts(dom: &str) -> Vec<String> {
    let body = &dom[dom.find("<body").unwrap_or(0)..];
    let mut texts = Vec::new();
    let mut rest = body;
    while let Some((text, behind)) = rest.split_once('<') {
        let text = text.trim().replace("&lt;", "<").replace("&amp;", "&");
        if !text.is_empty() {
            texts.push(text);
        }
        let is_script = behind.starts_with("script") || behind.starts_with("style");
        let end = if is_script { "</" } else { ">" };
        rest = behind.split_once(end).map_or("", |(_, behind)| behind);
        if is_script {
            rest = rest.split_once('>').map_or("", |(_, behind)| behind);
        }
    }
    // What is before the first tag's end is no text.
    texts.into_iter().filter(|text| !text.contains('>')).collect()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 4];
        group[1..=chunk.len()].copy_from_slice(chunk);
        let group = u32::from_be_bytes(group);
        for digit in 0..4 {
            let value = group >> (18 - 6 * digit) & 63;
            text.push(if digit <= chunk.len() { char::from(DIGITS[value as usize]) } else { '=' });
        }
    }
    text
}

#[test]
fn speedscope_reads_four_formats_alike() {
    let exported = Exported::new();
    assert_eq!((PERIOD, IDLE), (1_000_000, 1_000_000_000), "a sample is a millisecond");
    let milliseconds = |count: u64| match count {
        0 => "0.00ns".to_owned(),
        count => format!("{count}.00ms"),
    };
    let main_thread = truth(true);
    let expected: BTreeMap<_, _> = main_thread
        .into_iter()
        .map(|(name, (own, total))| (name, (milliseconds(own), milliseconds(total))))
        .collect();
    for format in [Format::Speedscope, Format::Cpuprofile, Format::Chrome] {
        assert_eq!(speedscope(&exported, format), expected, "{format:?}");
    }
    let suffix = |name: &str| match name {
        "outer" => "_[j]",
        "mid" | "leaf" => "_[i]",
        "page_fault" => "_[k]",
        _ => "",
    };
    let mut expected: BTreeMap<_, _> = truth(false)
        .into_iter()
        .map(|(name, (own, total))| {
            (format!("{name}{}", suffix(&name)), (own.to_string(), total.to_string()))
        })
        .collect();
    let all: u64 = COUNTS.iter().sum();
    expected.insert("app".to_owned(), ("0".to_owned(), all.to_string()));
    assert_eq!(speedscope(&exported, Format::Folded), expected);
}

/// The boxes of inferno's flame graph: their samples, summed by name, and their colours in its palette for Java.
fn inferno(exported: &Exported) -> BTreeMap<String, (u64, BTreeSet<&'static str>)> {
    let mut command = tool(installed("inferno-0.12.8/bin/inferno-flamegraph"));
    command.args(["--colors", "java", "--minwidth", "0"]);
    let svg = run(command.arg(exported.file(Format::Folded))).stdout;
    let mut boxes: BTreeMap<String, (u64, BTreeSet<&'static str>)> = BTreeMap::new();
    for title in svg.split("<title>").skip(1) {
        let (name, behind) = title.split_once(" (").expect("samples");
        let (samples, behind) = behind.split_once(" sample").expect("samples");
        let (_, behind) = behind.split_once("fill=\"rgb(").expect("a colour");
        let (color, _) = behind.split_once(')').expect("a colour");
        let parts: Vec<u8> = color.split(',').map(|part| part.parse().expect("a part")).collect();
        let [red, green, blue] = parts[..] else { panic!("{color}") };
        let color = match () {
            () if green > red && blue > red => "aqua",
            () if green > red && green > blue => "green",
            () if green == blue => "red",
            () => "orange",
        };
        let row = boxes.entry(name.to_owned()).or_default();
        row.0 += samples.replace(',', "").parse::<u64>().expect("a number");
        row.1.insert(color);
    }
    boxes
}

#[test]
fn inferno_draws_folded_stacks_with_their_samples_and_kinds() {
    let exported = Exported::new();
    let color = |name: &str| match name {
        "outer" => "green",
        "mid" | "leaf" => "aqua",
        "page_fault" => "orange",
        _ => "red",
    };
    // No function of the profile calls itself, so that the widths of its boxes add up.
    let all = COUNTS.iter().sum();
    let names = ["all", "app"].map(|name| (name.to_owned(), (0, all)));
    let expected: BTreeMap<_, _> = truth(false)
        .into_iter()
        .chain(names)
        .map(|(name, (_, total))| (name.clone(), (total, BTreeSet::from([color(&name)]))))
        .collect();
    assert_eq!(inferno(&exported), expected);
}

/// Reads a profile with the model of Chrome's DevTools, whose sources are in TypeScript.
const DEVTOOLS: &str = r#"
import {registerHooks} from 'node:module';
import {existsSync, readFileSync} from 'node:fs';
import {fileURLToPath, pathToFileURL} from 'node:url';
const [root, file] = process.argv.slice(2);
registerHooks({resolve: (name, context, next) => {
  if (name.startsWith('.')) {
    const url = new URL(name, context.parentURL);
    const source = new URL(url.href.replace(/\.js$/, '.ts'));
    if (!existsSync(fileURLToPath(url)) && existsSync(fileURLToPath(source))) return next(source.href, context);
  }
  return next(name, context);
}});
const model = pathToFileURL(`${root}/front_end/models/cpu_profile/CPUProfileDataModel.ts`);
const {CPUProfileDataModel} = await import(model);
const profile = new CPUProfileDataModel(JSON.parse(readFileSync(file, 'utf8')));
const rows = {};
const add = node => {
  const {functionName, lineNumber, url} = node.callFrame;
  const row = rows[functionName] ??= {self: 0, total: 0, line: lineNumber, url, ticks: {}};
  row.self += node.self;
  row.total += node.total;
  for (const {line, ticks} of node.positionTicks ?? []) row.ticks[line] = (row.ticks[line] ?? 0) + ticks;
  node.children.forEach(add);
};
add(profile.profileHead);
console.log(JSON.stringify(rows));
"#;

#[test]
fn devtools_reads_a_cpuprofile() {
    let exported = Exported::new();
    let script = exported.folder.path().join("devtools.mjs");
    fs::write(&script, DEVTOOLS).expect("a file");
    let mut node = tool(installed("node-24.19.0/bin/node"));
    node.args(["--experimental-transform-types", "--no-warnings"]).arg(script);
    node.arg(installed("devtools-1.0.1705227")).arg(exported.file(Format::Cpuprofile));
    let rows: Value = serde_json::from_str(&run(&mut node).stdout).expect("JSON");
    for (name, (own, total)) in truth(true) {
        // No function is twice on a stack, so that totals of nodes add up to the function's.
        let milliseconds = |of: &str| rows[&name][of].as_f64().expect("a time").round() as u64;
        assert_eq!((milliseconds("self"), milliseconds("total")), (own, total), "{name}: {rows}");
    }
    let [first, second, leaf, ..] = COUNTS;
    assert_eq!(rows["outer"]["ticks"], json!({ "2": first, "4": second }));
    assert_eq!(rows["leaf"]["ticks"], json!({ "11": leaf }));
    // Functions' lines are counted from 0 there.
    assert_eq!((&rows["outer"]["line"], &rows["leaf"]["line"]), (&json!(0), &json!(9)));
    let url = format!("file://{}", exported.folder.path().join("app.js").display());
    assert_eq!(rows["leaf"]["url"], url);
}

/// Sends a request to a server made of the official stubs, and prints what it received.
const RECEIVER: &str = r#"
import collections, json, sys
from concurrent import futures
import grpc
from google.protobuf import unknown_fields
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as service
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2_grpc as stubs

received = []

class Receiver(stubs.ProfilesServiceServicer):
    def Export(self, request, context):
        received.append(request)
        return service.ExportProfilesServiceResponse()

server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
stubs.add_ProfilesServiceServicer_to_server(Receiver(), server)
port = server.add_insecure_port('127.0.0.1:0')
server.start()
request = service.ExportProfilesServiceRequest.FromString(open(sys.argv[1], 'rb').read())
with grpc.insecure_channel(f'127.0.0.1:{port}') as channel:
    stubs.ProfilesServiceStub(channel).Export(request, timeout=60)
server.stop(None)
[request] = received

def unknown(message):
    count = len(unknown_fields.UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type is not None:
            many = [value] if hasattr(value, 'ListFields') else value
            count += sum(unknown(each) for each in many)
    return count

words = request.dictionary
text = lambda index: words.string_table[index]
def attributes(indices):
    all = {}
    for index in indices:
        row = words.attribute_table[index]
        kind = row.value.WhichOneof('value')
        all[text(row.key_strindex)] = getattr(row.value, kind)
    return all
own, total, tiers, threads, times = (collections.Counter() for _ in range(5))
for resource in request.resource_profiles:
    for scope in resource.scope_profiles:
        for profile in scope.profiles:
            for sample in profile.samples:
                count = len(sample.timestamps_unix_nano)
                places = [words.location_table[index] for index in words.stack_table[sample.stack_index].location_indices]
                names = [text(words.function_table[line.function_index].name_strindex) for place in places for line in place.lines]
                own[names[0]] += count
                for name in set(names):
                    total[name] += count
                leaf = attributes(places[0].attribute_indices)
                tiers[f"{leaf.get('code.jit.tier')} {leaf.get('code.jit.generation')} {leaf['profile.frame.type']}"] += count
                threads[attributes(sample.attribute_indices)['thread.name']] += count
zero = [t[0].SerializeToString() for t in (words.mapping_table, words.location_table, words.function_table, words.link_table, words.attribute_table, words.stack_table)]
first = min(t for r in request.resource_profiles for s in r.scope_profiles for p in s.profiles for x in p.samples for t in x.timestamps_unix_nano)
print(json.dumps({'unknown': unknown(request), 'own': own, 'total': total, 'tiers': tiers, 'threads': threads,
    'zero': [len(each) for each in zero], 'string': words.string_table[0], 'first': first,
    'type': [text(request.resource_profiles[0].scope_profiles[0].profiles[0].sample_type.type_strindex)],
    'resource': {each.key: each.value.string_value or each.value.int_value for each in request.resource_profiles[0].resource.attributes}}))
"#;

#[test]
fn the_official_stubs_of_opentelemetry_receive_the_same() {
    let exported = Exported::new();
    let mut python = tool(installed("otlp-1.45.2/bin/python3"));
    let printed = run(python.args(["-c", RECEIVER]).arg(exported.file(Format::Otlp))).stdout;
    let received: Value = serde_json::from_str(&printed).expect("JSON");
    for (name, (own, total)) in truth(false) {
        let count = |of: &str| received[of][&name].as_u64().unwrap_or(0);
        assert_eq!((count("own"), count("total")), (own, total), "{name}");
    }
    let [first, second, leaf, kernel, other] = COUNTS;
    let tiers = json!({
        "baseline 1 jit": first,
        "turbofan 2 jit": second + leaf,
        "None None kernel": kernel,
        "None None native": other,
    });
    assert_eq!(received["tiers"], tiers);
    assert_eq!(
        received["threads"],
        json!({ "app": first + second + leaf + kernel, "helper": other })
    );
    assert_eq!(received["unknown"], 0, "all fields are known to the stubs");
    assert_eq!(received["zero"], json!([0, 0, 0, 0, 0, 0]), "the first row means none");
    assert_eq!((&received["string"], &received["type"]), (&json!(""), &json!(["samples"])));
    assert_eq!(received["first"], json!(1_700_000_000_000_000_000_u64 + PERIOD));
    let resource = json!({
        "process.executable.name": "app", "service.name": "app", "host.name": "host",
        "host.arch": "amd64", "process.pid": 4711,
    });
    assert_eq!(received["resource"], resource);
}
