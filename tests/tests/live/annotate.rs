//! What `report --stdio`, `annotate` and `diff` show, against perf, objdump and the demo's own record.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use end_to_end::corpus::Corpus;
use end_to_end::jitscribe::{self, jitscribe};
use end_to_end::live::{Recorder, Recording};
use end_to_end::perf::Perf;
use end_to_end::recordings::{DEMO, FRAME_POINTERS, Shared};
use end_to_end::tool::{ended, run, tool};
use serde_json::Value;

/// What a verb prints with `--json` of a recording.
fn json(words: &[&str]) -> Value {
    let mut command = jitscribe();
    command.args(words.first()).arg("--json").args(words.get(1..).unwrap_or_default());
    jitscribe::json(&mut command)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value}"))
}

/// The functions of a recording with samples, as `report --stdio` lists them.
fn top(data: &str) -> Value {
    let report = json(&["report", "--stdio", "--percent-limit", "0", "-i", data]);
    report["top"].clone()
}

/// All compilations of the jitted functions of a recording, each once.
fn codes(data: &str) -> Vec<Value> {
    let mut names: Vec<String> = list(&top(data)["functions"])
        .iter()
        .filter(|function| function["kind"] == "jitted")
        .map(|function| {
            let (name, file, line) =
                (&function["name"], text(&function["file"]), &function["line"]);
            match file {
                "" => text(name).to_owned(),
                file => format!("{} {file}:{line}", text(name)),
            }
        })
        .collect();
    names.sort();
    names.dedup();
    let mut codes = BTreeMap::new();
    for name in names {
        let annotated = json(&["annotate", "--generation", "all", "-i", data, "--", &name]);
        // A function that is inlined everywhere is shown within others.
        for code in list(&annotated["codes"]) {
            let key =
                (code["pid"].to_string(), code["address"].to_string(), code["loaded"].to_string());
            codes.insert((key, text(&code["symbol"]).to_owned()), code.clone());
        }
    }
    codes.into_values().collect()
}

#[test]
fn the_demo_is_annotated_as_its_own_record_says() {
    let (recording, truth) = DEMO.with_truth();
    let ours = recording.ours();
    let data = ours.data.to_str().expect("a UTF-8 path");

    let mut expected: BTreeMap<(u64, Vec<(String, u64)>), u64> = BTreeMap::new();
    for sample in recording.perf().samples(&ours.data) {
        if let Some(chain) = truth.inline_chain(sample.ip, sample.time) {
            *expected.entry((sample.ip, chain)).or_default() += 1;
        }
    }
    assert!(expected.keys().any(|(_, chain)| chain.len() > 1), "nothing was inlined");

    let mut shown: BTreeMap<(u64, Vec<(String, u64)>), u64> = BTreeMap::new();
    let codes = codes(data);
    for code in &codes {
        for instruction in list(&code["instructions"]) {
            let samples = number(&instruction["samples"]);
            if samples == 0 {
                continue;
            }
            let frames = list(&instruction["frames"]).iter();
            let chain =
                frames.map(|frame| (text(&frame["function"]).to_owned(), number(&frame["line"])));
            let address = number(&code["address"]) + number(&instruction["offset"]);
            *shown.entry((address, chain.collect())).or_default() += samples;
        }
    }
    assert_eq!(shown, expected);
    assert_eq!(number(&top(data)["samples"]), recording.raw().len() as u64);

    // The same code with its source, as a person sees it.
    let hottest = run(jitscribe().args(["annotate", "-i", data])).stdout;
    assert!(hottest.contains("inlined ") || hottest.contains("generation"), "{hottest}");
    for (name, options) in [("--asm", vec!["--asm"]), ("--source", vec!["--source"])] {
        let printed = run(jitscribe().args(["annotate", "-i", data]).args(options)).stdout;
        assert!(printed.lines().count() > 5, "{name}: {printed}");
    }
}

/// Of node's functions, each address has perf's number of samples, and each instruction is objdump's.
#[test]
fn functions_of_node_are_annotated_as_perf_and_objdump_see_them() {
    let data = BEFORE.get().ours().data;
    let folder = tempfile::tempdir().expect("a folder");
    let mut expected: BTreeMap<(String, u64), u64> = BTreeMap::new();
    for sample in Perf::installed().samples(&data) {
        if let Some(symbol) = sample.announced() {
            *expected.entry((symbol.name.clone(), sample.ip)).or_default() += 1;
        }
    }
    let codes = codes(data.to_str().expect("a UTF-8 path"));
    let mut samples = 0;
    let mut shown: BTreeMap<(String, u64), u64> = BTreeMap::new();
    let mut decoded = 0;
    for code in &codes {
        let symbol = text(&code["symbol"]);
        for instruction in list(&code["instructions"]) {
            let count = number(&instruction["samples"]);
            let address = number(&code["address"]) + number(&instruction["offset"]);
            if count > 0 {
                *shown.entry((symbol.to_owned(), address)).or_default() += count;
                samples += count;
            }
        }
        if code["missing"].is_null() && number(&code["samples"]) > 0 && decoded < 20 {
            expect_objdump(folder.path(), code);
            decoded += 1;
        }
    }
    assert!(samples > 100 && decoded > 3, "{samples} samples, {decoded} codes");
    for (place, count) in &shown {
        assert_eq!(expected.get(place), Some(count), "{place:x?}");
    }
}

/// Compares the offsets of the instructions of a code with objdump's.
fn expect_objdump(folder: &Path, code: &Value) {
    let instructions = list(&code["instructions"]);
    let hex: String = instructions.iter().map(|instruction| text(&instruction["bytes"])).collect();
    let bytes: Vec<u8> = hex
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("text"), 16).expect("hex"))
        .collect();
    assert_eq!(bytes.len() as u64, number(&code["size"]));
    let file = folder.join("code.bin");
    fs::write(&file, &bytes).expect("a file");
    let mut objdump = tool("objdump");
    objdump.args(["-D", "-w", "-z", "-b", "binary", "-m", "i386:x86-64", "--no-show-raw-insn"]);
    let printed = run(objdump.arg(&file)).stdout;
    let offset = |line: &str| u64::from_str_radix(line.split_once(":\t")?.0.trim(), 16).ok();
    let theirs: Vec<u64> = printed.lines().filter_map(offset).collect();
    let ours: Vec<u64> = instructions.iter().map(|each| number(&each["offset"])).collect();
    // Data behind the code, as V8 has it, is no instruction: what objdump makes of it does not matter.
    let data = instructions.iter().position(|each| text(&each["text"]).starts_with(".byte"));
    let until = data.unwrap_or(ours.len());
    assert!(until > 3);
    assert_eq!(
        theirs.get(..until.min(theirs.len())),
        ours.get(..until.min(theirs.len())),
        "{}",
        code["symbol"]
    );
}

/// A recording of the corpus with images.
fn injected_node() -> (Corpus, PathBuf) {
    let corpus = Corpus::unpack("node18-b12");
    let data = corpus.inject("g");
    (corpus, data)
}

#[test]
fn a_recording_does_not_differ_from_itself() {
    let (_corpus, data) = injected_node();
    let data = data.to_str().expect("a UTF-8 path");
    let difference = json(&["diff", "--all", data, data]);
    let functions = list(&difference["functions"]);
    assert!(functions.len() > 20, "{} functions", functions.len());
    for function in functions {
        assert_eq!(
            (&function["before"], &function["verdict"]),
            (&function["after"], &"noise".into())
        );
    }
    let printed = run(jitscribe().args(["diff", data, data])).stdout;
    assert!(printed.contains("differ by no more than chance"), "{printed}");
}

/// Two functions, of which the second run has one do four times the work.
const PROGRAM: &str = "
function steady(n) { let x = 0; for (let i = 0; i < n; i++) x = (x * 31 + i) | 0; return x; }
function changed(n) { let x = 1; for (let i = 0; i < n; i++) x = (x * 33 ^ i) | 0; return x; }
%NeverOptimizeFunction(main);
function main(factor) {
    let x = 0;
    for (let i = 0; i < 300; i++) { x ^= steady(500000); x ^= changed(500000 * factor); }
    return x;
}
console.log(main(Number(process.argv[2])));
";

/// The command that runs it, in the folder of a recorder.
fn program(recorder: &Recorder, factor: &str) -> Vec<String> {
    fs::write(recorder.dir().join("program.js"), PROGRAM).expect("a file");
    ["node", "--allow-natives-syntax", "--perf-prof", "program.js", factor]
        .map(str::to_owned)
        .to_vec()
}

/// Its first run.
const BEFORE: Shared = Shared {
    name: "annotated",
    options: FRAME_POINTERS,
    program: |recorder| program(recorder, "1"),
};

#[test]
fn a_function_that_became_slower_is_found() {
    let path =
        |recording: &Recording| recording.ours().data.to_str().expect("a UTF-8 path").to_owned();
    let recorder = Recorder::new();
    let slower = program(&recorder, "4");
    let slower = recorder.record(&slower);
    let (before, after) = (path(&BEFORE.get()), path(&slower));
    let difference = json(&["diff", &before, &after]);
    let function = |name: &str| {
        let functions = list(&difference["functions"]).iter();
        functions.clone().find(|function| function["name"] == name).unwrap_or_else(|| {
            panic!("no {name} in {:?}", functions.map(|each| &each["name"]).collect::<Vec<_>>())
        })
    };
    // Of all time, the part of the one grows and that of the other shrinks.
    assert_eq!(function("changed")["verdict"], "more");
    assert_eq!(function("steady")["verdict"], "less");
    // In time, only the one changed for the worse by a lot.
    let by_time = json(&["diff", "--by", "time", &before, &after]);
    let first = &list(&by_time["functions"])[0];
    assert_eq!((&first["name"], &first["verdict"]), (&"changed".into(), &"more".into()));
}

#[test]
fn what_is_not_found_is_refused_with_what_there_is() {
    let (_corpus, data) = injected_node();
    let refused = |words: &[&str]| {
        let ended = ended(jitscribe().args(words).arg("-i").arg(&data));
        (ended.code, ended.stdout, ended.stderr)
    };
    let (code, stdout, stderr) = refused(&["annotate", "no such function"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("no function is called no such function"), "{stderr}");
    let (code, stdout, stderr) = refused(&["annotate", "e"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("choose one") && stdout.lines().count() > 3, "{stdout}{stderr}");
    let (code, _, stderr) = refused(&["annotate", "--generation", "999999"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("has no such compilation; there are: "), "{stderr}");
    let (code, _, stderr) = refused(&["report", "--stdio", "--comm", "nothing"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("no samples are selected; threads with samples: "), "{stderr}");
    assert_eq!(refused(&["report", "--stdio", "--time", "2,1"]).0, Some(2));
    assert_eq!(refused(&["annotate", "--generation", "0"]).0, Some(2));
}

/// On a terminal, colours and the user's pager; elsewhere neither.
#[test]
fn terminals_get_colours_and_a_pager() {
    let (_corpus, data) = injected_node();
    let program = jitscribe().get_program().to_string_lossy().into_owned();
    let line = format!("'{program}' report --stdio -i '{}'", data.display());
    let mut terminal = tool("script");
    terminal.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm");
    terminal.env_remove("NO_COLOR").env("JITSCRIBE_PAGER", "sed 's/^/paged: /'");
    let shown = run(&mut terminal).stdout;
    // Messages on standard error reach the terminal as well.
    let table: Vec<&str> = shown.lines().filter(|line| line.contains('%')).collect();
    assert!(!table.is_empty() && table.iter().all(|line| line.starts_with("paged: ")), "{shown}");
    assert!(shown.contains("\u{1b}[1m"), "{shown}");
    let mut plain = jitscribe();
    plain.args(["report", "--stdio", "-i"]).arg(&data).env("JITSCRIBE_PAGER", "sed 's/^/paged: /'");
    let plain = run(&mut plain).stdout;
    assert!(!plain.contains('\u{1b}') && !plain.contains("paged"), "{plain}");
}
