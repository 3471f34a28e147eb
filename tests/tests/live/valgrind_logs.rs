//! What valgrind's tools say of jitted code, once it has names, against what they say of the same code as a
//! shared object.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use end_to_end::calls::compile_heap;
use end_to_end::jitscribe::{jitscribe, json};
use end_to_end::tool::{ended, run, tool};
use serde_json::Value;
use tempfile::TempDir;

/// The program of `workloads/heap.c`.
struct Heap {
    dir: TempDir,
    library: PathBuf,
}

/// A leak check reads all of the log, a mapping of 4 GiB by default.
const LIMIT: &str = "1M";

/// What the runtime wrote about its code.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    /// Names and lines.
    Jitdump,
    /// Names.
    PerfMap,
}

impl Heap {
    fn build() -> Self {
        let dir = TempDir::with_prefix("jitscribe-heap-").expect("a temporary folder");
        let library = compile_heap(dir.path(), "-g");
        Self { dir, library }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs the code under valgrind, which writes into the file `name`, as a shared object.
    fn as_library(&self, tool: &str, options: &[&str], name: &str) -> PathBuf {
        self.valgrind("library", tool, options, name)
    }

    /// Runs the code from anonymous memory.
    fn as_copy(&self, told: Source, tool: &str, options: &[&str], name: &str) -> PathBuf {
        let copy = self.valgrind("copy", tool, options, name);
        if told == Source::PerfMap {
            for dump in self.dumps() {
                std::fs::remove_file(dump).expect("the dump");
            }
        }
        copy
    }

    fn valgrind(&self, how: &str, of: &str, options: &[&str], name: &str) -> PathBuf {
        let path = self.path(name);
        let mut valgrind = tool("valgrind");
        valgrind.arg(format!("--tool={of}")).args(options);
        valgrind.arg(match of {
            "massif" | "dhat" | "cachegrind" => format!("--{of}-out-file={}", path.display()),
            _ if options.contains(&"--xml=yes") => format!("--xml-file={}", path.display()),
            _ => format!("--log-file={}", path.display()),
        });
        valgrind.env("JITSCRIBE_LIMIT", LIMIT);
        // The code is to have no names while it runs.
        valgrind.env("JITSCRIBE", "jitdump,perf-map,valgrind=off");
        valgrind.env("JITSCRIBE_DIR", self.dir.path()).current_dir(self.dir.path());
        run(valgrind.arg(env!("CARGO_BIN_EXE_run-calls")).arg(how).arg(&self.library).arg("3"));
        path
    }

    /// The dumps of the processes that have run, the newest last.
    fn dumps(&self) -> Vec<PathBuf> {
        let files = self.dir.path().read_dir().expect("a folder").flatten();
        let mut dumps: Vec<_> = files.map(|entry| entry.path()).collect();
        dumps.retain(|path| path.extension().is_some_and(|extension| extension == "dump"));
        dumps.sort_by_key(|path| {
            path.metadata().and_then(|metadata| metadata.modified()).expect("a time")
        });
        dumps
    }
}

/// Runs a verb that must succeed, and gives what it wrote and what it reports.
fn name(verb: &str, file: &Path, more: &[PathBuf]) -> (String, Value) {
    let output = file.with_extension("named");
    let mut command = jitscribe();
    command.arg(verb).arg(file).arg("--json").arg("-f").arg("-o").arg(&output).args(more);
    let report = json(&mut command);
    assert!(report["unknown"].as_u64() > Some(0), "nothing was to be named: {report}");
    (std::fs::read_to_string(output).expect("what was written"), report)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file of valgrind's")
}

/// Stacks as memcheck prints them, with what is above each: the frames of the code and what they call, without
/// what differs from run to run.
fn stacks(log: &str, lines: bool) -> Vec<String> {
    let mut stacks = Vec::new();
    let mut open = false;
    let mut heading = "";
    for line in log.lines() {
        let said = line.splitn(3, "==").nth(2).unwrap_or(line).trim();
        let frame = said.strip_prefix("at ").or(said.strip_prefix("by "));
        let Some((_, frame)) = frame.and_then(|frame| frame.split_once(": ")) else {
            open = false;
            heading = said.split(" in loss record").next().unwrap_or(said);
            heading = heading
                .split_once("Address 0x")
                .map_or(heading, |(_, rest)| rest.split_once(' ').map_or(rest, |(_, rest)| rest));
            continue;
        };
        if !open {
            stacks.push(heading.to_owned());
            open = true;
        }
        let stack = stacks.last_mut().expect("one that is open");
        // The program calls the code from a function of its own in either way.
        if frame.contains("run-calls") || stack.ends_with(" < …") {
            if !stack.ends_with(" < …") {
                *stack += " < …";
            }
            continue;
        }
        let function = frame.split(" (").next().unwrap_or(frame);
        let place = frame.rsplit_once('(').map_or("", |(_, place)| place);
        let place = if lines && place.starts_with("heap.c:") { place } else { "" };
        *stack += &format!(" < {function} {place}");
    }
    stacks.retain(|stack| stack.contains(" < run "));
    stacks.sort();
    stacks
}

/// The same of an XML log.
fn xml_stacks(log: &str) -> Vec<String> {
    let mut stacks = Vec::new();
    for stack in log.split("<stack>").skip(1) {
        let stack = stack.split("</stack>").next().unwrap_or_default();
        let mut said = String::new();
        for frame in stack.split("<frame>").skip(1) {
            let element = |tag: &str| {
                let text = frame.split_once(&format!("<{tag}>"))?.1;
                Some(text.split_once('<')?.0.to_owned())
            };
            let object = element("obj").unwrap_or_default();
            if object.ends_with("run-calls") {
                break;
            }
            let told = |tag| element(tag).unwrap_or_default();
            said += &format!(" < {}", told("fn"));
            if told("file") == "heap.c" {
                said += &format!(" {}/heap.c:{}", told("dir"), told("line"));
            }
        }
        stacks.push(said);
    }
    stacks.retain(|stack| stack.contains("heap.c"));
    stacks.sort();
    stacks
}

const MEMCHECK: [&str; 2] = ["--leak-check=full", "--num-callers=40"];

#[test]
fn memcheck_reports_jitted_code_like_a_shared_object() {
    let heap = Heap::build();
    let expected = read(&heap.as_library("memcheck", &MEMCHECK, "library.log"));
    let expected_with_lines = stacks(&expected, true);
    assert!(expected_with_lines.len() >= 6, "{expected}");
    for told in [Source::Jitdump, Source::PerfMap] {
        let log = heap.as_copy(told, "memcheck", &MEMCHECK, "copy.log");
        assert!(read(&log).contains(": ???"), "the code had names before");
        // The process id is on each line, so its files are found by it.
        let beside = ["--aux-dir".into(), heap.dir.path().to_owned()];
        let (named, report) = name("memcheck", &log, &beside);
        let lines = told == Source::Jitdump;
        assert_eq!(stacks(&named, lines), stacks(&expected, lines), "{expected}\n{named}");
        assert!(!named.contains(": ???"), "{named}");
        assert_eq!((&report["broken_stacks"], &report["unknown"]), (&0.into(), &report["named"]));
        // All else is as it was, line by line.
        let changed = read(&log).lines().zip(named.lines()).filter(|(old, new)| old != new).count();
        assert_eq!(Some(changed as u64), report["named"].as_u64());
    }
}

#[test]
fn memcheck_reports_it_in_xml_too() {
    let heap = Heap::build();
    let options = [&MEMCHECK[..], &["--xml=yes"]].concat();
    let expected = xml_stacks(&read(&heap.as_library("memcheck", &options, "library.xml")));
    assert!(expected.len() >= 6, "{expected:?}");
    let log = heap.as_copy(Source::Jitdump, "memcheck", &options, "copy.xml");
    let (named, report) = name("memcheck", &log, &[]);
    assert_eq!(xml_stacks(&named), expected);
    assert_eq!((&report["broken_stacks"], &report["unknown"]), (&0.into(), &report["named"]));
}

#[test]
fn helgrind_and_drd_are_read_as_well() {
    let heap = Heap::build();
    for of in ["helgrind", "drd"] {
        let path = heap.as_copy(Source::Jitdump, of, &[], "copy.log");
        let mut command = jitscribe();
        let log = run(command.arg("memcheck").arg(&path).args(["-o", "-"])).stdout;
        assert_eq!(log, read(&path), "there was nothing to name");
    }
}

/// Trees of massif: each line of the code's with those that it was called from, and how much it is.
fn trees(file: &str) -> BTreeSet<String> {
    let mut above: Vec<(usize, String)> = Vec::new();
    let mut seen = BTreeSet::new();
    for line in file.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let Some((size, frame)) = text.split_once(": ").and_then(|(count, rest)| {
            count.starts_with('n').then(|| rest.split_once(" 0x")).flatten()
        }) else {
            continue;
        };
        let frame = frame.split_once(": ").map_or(frame, |(_, frame)| frame);
        above.retain(|(depth, _)| *depth < indent);
        above.push((indent, frame.to_owned()));
        if frame.contains("heap.c:") {
            let chain: Vec<&str> = above.iter().map(|(_, frame)| frame.as_str()).collect();
            seen.insert(format!("{size} {}", chain.join(" < ")));
        }
    }
    seen
}

#[test]
fn massif_shows_who_allocated() {
    let heap = Heap::build();
    let options = ["--detailed-freq=1", "--threshold=0.0", "--max-snapshots=1000"];
    let expected = trees(&read(&heap.as_library("massif", &options, "massif.out.library")));
    let file = heap.as_copy(Source::Jitdump, "massif", &options, "massif.out.copy");
    // The file's name does not say its process.
    let dump = heap.dumps().pop().expect("a dump");
    let (named, report) = name("massif", &file, &["--jitdump".into(), dump]);
    assert_eq!(report["unknown"], report["named"]);
    let got = trees(&named);
    assert!(got.iter().any(|line| line.contains("deep (heap.c:")), "{named}");
    assert!(got.iter().any(|line| line.contains("leak_twice (heap.c:")), "{named}");
    assert_eq!(got, expected);
    // What prints it takes it.
    let printed = run(tool("ms_print").arg(file.with_extension("named"))).stdout;
    assert!(printed.contains("leak_twice (heap.c:"), "{printed}");
}

/// What DHAT knows of the places where the code allocates: how much, how often, and the stack.
fn points(file: &str) -> BTreeSet<String> {
    let file: Value = serde_json::from_str(file).expect("JSON");
    let table = file["ftbl"].as_array().expect("a table");
    let mut seen = BTreeSet::new();
    for point in file["pps"].as_array().expect("points") {
        let frames = point["fs"].as_array().expect("frames").iter().map(|place| {
            let frame = table[place.as_u64().expect("a number") as usize].as_str().expect("text");
            frame.split_once(": ").map_or(frame, |(_, frame)| frame)
        });
        // The program calls the code from a function of its own in either way.
        let frames: Vec<&str> =
            frames.skip(1).take_while(|frame| frame.contains("heap.c:")).collect();
        if !frames.is_empty() {
            seen.insert(format!("{} {} {frames:?}", point["tb"], point["tbk"]));
        }
    }
    seen
}

#[test]
fn dhat_shows_who_allocated() {
    let heap = Heap::build();
    let options = ["--num-callers=40"];
    let expected = points(&read(&heap.as_library("dhat", &options, "dhat.out.library")));
    assert!(expected.len() >= 4, "{expected:?}");
    for told in [Source::Jitdump, Source::PerfMap] {
        let file = heap.as_copy(told, "dhat", &options, "dhat.out.copy");
        let (named, report) = name("dhat", &file, &[]);
        assert_eq!(report["unknown"], report["named"]);
        if told == Source::Jitdump {
            assert_eq!(points(&named), expected);
        } else {
            assert!(named.contains(": leak_twice (in /tmp/perf-"), "{named}");
        }
    }
}

#[test]
fn cachegrind_reports_the_share_without_names() {
    let heap = Heap::build();
    let unknown = |file: &Path, code: i32| {
        let ended = ended(jitscribe().arg("cachegrind").arg("--json").arg(file));
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        let report: Value = serde_json::from_str(&ended.stdout).expect("a report");
        assert_eq!(report["events"][0]["name"], "Ir");
        (report["events"][0]["unknown"].as_u64().expect("a count"), ended.stderr)
    };
    let library = heap.as_library("cachegrind", &[], "cachegrind.out.library");
    let copy = heap.as_copy(Source::Jitdump, "cachegrind", &[], "cachegrind.out.copy");
    let (named, _) = unknown(&library, i32::from(read(&library).contains("\nfn=???\n")));
    let (unnamed, said) = unknown(&copy, 1);
    assert!(unnamed > named + 100, "{unnamed} {named}");
    assert!(said.contains("--tool=callgrind"), "{said}");
}

#[test]
fn piped_output_is_named_while_the_program_runs() {
    let heap = Heap::build();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg("valgrind \"$0\" copy \"$1\" 2 2>&1 | \"$2\" memcheck -");
    shell.arg(env!("CARGO_BIN_EXE_run-calls")).arg(&heap.library).arg(jitscribe().get_program());
    shell.env("JITSCRIBE", "jitdump,valgrind=off").env("JITSCRIBE_DIR", heap.dir.path());
    shell.env("JITSCRIBE_LIMIT", LIMIT);
    let printed = run(&mut shell);
    assert!(printed.stdout.contains(": read_behind (heap.c:"), "{}", printed.stdout);
    assert!(!printed.stdout.contains("???"), "{}", printed.stdout);
}
