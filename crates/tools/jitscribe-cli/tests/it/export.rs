//! Exports of a recording: all have the same samples as perf, nothing is overwritten, and the server answers its own questions alone.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::common::{Bench, Done, Running, expect_tool, interrupt};
use test_privilege::needs;

/// Nearly all of its time is in `leaf`, which V8 inlines into `top`.
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

/// A recording of node, `run.data`.
fn recorded() -> Bench {
    expect_tool("node");
    let bench = Bench::with("spin.js", SCRIPT);
    bench.record("-F 999 -o run.data -- node spin.js").ok();
    bench
}

fn export(bench: &Bench, options: &str) -> Done {
    bench.ask(&format!("export -i run.data {options}"))
}

fn exported(bench: &Bench, options: &str) -> String {
    export(bench, &format!("{options} -o -")).ok().stdout
}

/// Stacks, outermost first, and their counts.
fn folded(text: &str) -> BTreeMap<&str, usize> {
    let line = |line| {
        let (stack, count) = str::rsplit_once(line, ' ').expect("a count");
        (stack, count.parse().expect("a number"))
    };
    text.lines().map(line).collect()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().expect("an array")
}

#[test]
fn exports_have_the_samples_that_perf_has() {
    needs!(Perf);
    let bench = recorded();
    let perf = bench.run("perf script --no-inline -G -F ip,sym -i run.data");
    let leaves: Vec<&str> = perf.lines().filter(|line| !line.trim().is_empty()).collect();
    // As V8 of node 18 has it, and of node 20.
    let is_optimized = |leaf: &&&str| leaf.contains(" LazyCompile:*") || leaf.contains(" JS:*");
    let (all, optimized) = (leaves.len(), leaves.iter().filter(is_optimized).count());
    assert!(all > 100 && optimized > 50, "{optimized} of {all}");

    let plain = exported(&bench, "--folded");
    assert_eq!(folded(&plain).values().sum::<usize>(), all);
    let tiers = exported(&bench, "--folded --tiers");
    let is_optimized =
        |stack: &str| stack.rsplit(';').next().expect("a frame").contains(" [turbofan]");
    let in_optimized = folded(&tiers).into_iter().filter(|(stack, _)| is_optimized(stack));
    assert_eq!(in_optimized.map(|(_, count)| count).sum::<usize>(), optimized);
    assert!(plain.contains("top_[j];leaf_[i] "), "jitted and inlined: {plain:.4000}");
    let lines = exported(&bench, "--folded --lines");
    assert!(lines.contains("top:8_[j];leaf:3_[i] "), "{lines:.2000}");

    let json = |options: &str| -> Value {
        serde_json::from_str(&exported(&bench, options)).expect("JSON")
    };
    let firefox = json("--firefox");
    let of_firefox = |thread: &Value| array(&thread["samples"]["stack"]).len();
    let threads = array(&firefox["threads"]);
    assert_eq!(threads.iter().map(of_firefox).sum::<usize>(), all);
    let speedscope = json("--speedscope");
    let of_thread = |thread: &Value| {
        array(&thread["samples"]).iter().filter(|stack| !array(stack).is_empty()).count()
    };
    assert_eq!(array(&speedscope["profiles"]).iter().map(of_thread).sum::<usize>(), all);

    // One thread, which another option chooses.
    let done = export(&bench, "--cpuprofile").ok();
    let cpuprofile: Value =
        serde_json::from_slice(&bench.read("run.data.cpuprofile")).expect("JSON");
    let nodes = array(&cpuprofile["nodes"]).iter();
    let busy = nodes.filter(|node| node["callFrame"]["functionName"] != "(idle)");
    let hits: u64 = busy.map(|node| node["hitCount"].as_u64().expect("hits")).sum();
    let most = threads.iter().max_by_key(|thread| of_firefox(thread)).expect("a thread");
    assert_eq!(hits, of_firefox(most) as u64);
    let of_tid = json(&format!("--cpuprofile --tid {}", most["tid"]));
    assert_eq!(of_tid["samples"], cpuprofile["samples"]);
    if threads.len() > 1 {
        done.says("choose another with --tid");
    }
}

#[test]
fn nothing_is_overwritten_and_errors_say_what_there_is() {
    needs!(Perf);
    let bench = recorded();
    let done = export(&bench, "--pprof").ok();
    done.says("next: go tool pprof -http=: run.data.pb.gz");
    assert_eq!(done.stdout, "");
    assert!(bench.read("run.data.pb.gz").starts_with(&[0x1f, 0x8b]), "gzip");
    export(&bench, "--pprof").ends(1).says("--force");
    assert_eq!(export(&bench, "--pprof --force -q").ok().stderr, "");

    // Tables are written below a folder, all or none.
    let tables = "--parquet fleet --host a/b --service ../x";
    export(&bench, tables).ok();
    for table in ["samples", "stacks", "functions", "codes"] {
        let days = fs::read_dir(bench.path("fleet").join(table)).expect("a folder");
        let days: Vec<_> = days.map(|day| day.expect("an entry").path()).collect();
        assert!(days.len() == 1 && days[0].join("service=%2E.%2Fx").is_dir(), "{days:?}");
    }
    export(&bench, tables).says("--force");
    export(&bench, &format!("{tables} --force")).ok();
    // Not through a link that another user may have put there.
    for folder in ["theirs", "elsewhere"] {
        fs::create_dir(bench.path(folder)).expect("a folder");
    }
    symlink("../elsewhere", bench.path("theirs/samples")).expect("a link");
    for (options, says) in [
        ("--parquet theirs", "theirs/samples"),
        ("--parquet run.data", "not a folder"),
        ("--folded --tid 1", "threads with samples: "),
        ("--folded --event no-such", "there are: c"),
        ("--folded -o /nonexistent/x", "/nonexistent/x"),
    ] {
        export(&bench, options).ends(1).says(says);
    }
    assert_eq!(fs::read_dir(bench.path("elsewhere")).expect("a folder").count(), 0);
}

#[test]
fn what_cannot_be_exported_is_refused() {
    let bench = Bench::with("text.data", "no recording\n");
    for options in [
        "",
        "--pprof --folded",
        "--pprof --serve",
        "--firefox --port 1",
        "--parquet fleet --pprof",
        "--parquet fleet -o x",
        "--parquet fleet --window 0",
        "--pprof --window 60",
        "--pprof --host x",
    ] {
        export(&bench, options).ends(2);
    }
    assert_eq!(bench.ask("export --folded -i text.data").ends(1).stdout, "");
    assert_eq!(bench.files(), ["text.data"], "nothing is left");
}

/// Sends bytes, and returns the status and the content of the answer.
fn send(host: &str, request: &[u8]) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(host).expect("the server");
    stream.write_all(request).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n").expect("a head");
    let status = std::str::from_utf8(&answer[9..12]).expect("a status").parse().expect("a number");
    (status, answer.split_off(end + 4))
}

fn ask(host: &str, path: &str, question: &Value) -> (u16, Value) {
    let body = question.to_string();
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n");
    let (status, content) = send(host, (head + &body).as_bytes());
    (status, serde_json::from_slice(&content).unwrap_or_default())
}

#[test]
fn the_server_shows_source_and_assembly_to_those_who_have_the_token() {
    needs!(Perf);
    let bench = recorded();
    let mut server = Running::start(&mut bench.jitscribe("export --firefox --serve -i run.data"));
    let url = server.line();
    let (page, symbols) = url.split_once("?symbolServer=").expect("both parts");
    let decoded = |text: &str| text.replace("%3A", ":").replace("%2F", "/");
    assert!(page.starts_with("https://profiler.firefox.com/from-url/"), "{url}");
    let symbols = decoded(symbols.trim_end());
    assert!(decoded(page).ends_with(&format!("{symbols}/profile.json")), "{url}");
    let (host, token) =
        symbols.strip_prefix("http://").expect("HTTP").split_once('/').expect("a path");
    assert!(host.starts_with("127.0.0.1:") && token.len() == 32, "{symbols}");

    let profile: Value = serde_json::from_str(&exported(&bench, "--firefox")).expect("JSON");
    let shared = &profile["shared"];
    let symbols = &shared["nativeSymbols"];
    let mut shown = 0;
    for (library, (address, name)) in array(&symbols["libIndex"])
        .iter()
        .zip(array(&symbols["address"]).iter().zip(array(&symbols["name"])))
    {
        let library = &profile["libs"][library.as_u64().expect("a place") as usize];
        let name = &shared["stringArray"][name.as_u64().expect("a place") as usize];
        if library["name"].as_str().is_none_or(|name| !name.starts_with("JIT (")) {
            continue;
        }
        let address = format!("{:#x}", address.as_u64().expect("an address"));
        let question = json!({
            "name": library["name"], "codeId": null, "debugName": library["debugName"],
            "debugId": library["breakpadId"], "startAddress": address, "size": "0x10",
        });
        let (status, answer) = ask(host, &format!("/{token}/asm/v1"), &question);
        assert_eq!(status, 200);
        assert!(
            answer["instructions"].as_array().is_some_and(|all| !all.is_empty()),
            "{name}: {answer}"
        );
        shown += 1;
    }
    assert!(shown > 0, "jitted code");
    let file = bench.name("spin.js");
    let source = |file: &str| ask(host, &format!("/{token}/source/v1"), &json!({ "file": file })).1;
    assert_eq!(source(&file)["source"], SCRIPT);
    assert!(source("/etc/passwd")["error"].is_string());

    let with_host = |path: &str, of: &str| format!("GET {path} HTTP/1.1\r\nHost: {of}\r\n\r\n");
    let status = |request: &str| send(host, request.as_bytes()).0;
    let path = format!("/{token}/profile.json");
    assert_eq!(status(&with_host(&path, host)), 200);
    assert_eq!(status(&with_host(&path, "evil.example")), 403);
    assert_eq!(status(&with_host("/profile.json", host)), 404);
    assert_eq!(status(&with_host(&format!("/{token}/../etc/passwd"), host)), 404);
    assert_eq!(status(&format!("OPTIONS /{token}/asm/v1 HTTP/1.1\r\nHost: {host}\r\n\r\n")), 204);
    assert_eq!(status("nonsense\r\n\r\n"), 400);
    // Connections that say nothing do not keep others waiting.
    let silent: Vec<_> = (0..20).map(|_| TcpStream::connect(host).expect("the server")).collect();
    assert_eq!(status(&with_host(&path, host)), 200);
    drop(silent);
    interrupt(server.pid());
    assert_eq!(server.code(), 0);
}
