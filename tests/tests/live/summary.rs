//! The report of `record` and `inject` by function and by activity, compared with counts from what `perf script` prints.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;

use end_to_end::chains::{Chain, Frame};
use end_to_end::corpus::Corpus;
use end_to_end::jitscribe::{demo_jit, inject, report};
use end_to_end::live::without_tag;
use end_to_end::perf::Perf;
use end_to_end::record::{Record, Recorded};
use end_to_end::runtimes::{erlang, script};
use end_to_end::sample::Sample;
use end_to_end::tool::{argument, run, tool};
use serde_json::Value;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// A symbol without the marks of tiers, read in another way than the command reads it.
fn function(symbol: &str) -> String {
    let kinds = ["JS", "LazyCompile", "Function", "Script", "Eval"];
    let of_v8 = symbol.split_once(':').filter(|(kind, _)| kinds.contains(kind));
    let v8 = of_v8.and_then(|(_, rest)| {
        let mut letters = rest.chars();
        letters.next().filter(|mark| "*+^~".contains(*mark))?;
        Some(letters.as_str().trim_start_matches('\'').to_owned())
    });
    let php = || {
        let mut parts: Vec<&str> = symbol.split('$').collect();
        let is_trace = parts.len() > 2 && parts[0].starts_with("TRACE-");
        let is_line = parts.last()?.parse::<u32>().is_ok();
        (is_trace && is_line).then(|| {
            parts.pop();
            parts[1..].join("$")
        })
    };
    let erlang = || {
        let name = symbol.strip_prefix('$').unwrap_or(symbol);
        let name = name.strip_suffix("-CodeInfoPrologue").unwrap_or(name);
        (name != symbol && !name.starts_with("global::")).then(|| name.to_owned())
    };
    let jsc = || Some(symbol.strip_prefix("JSC-")?.split_once(": ")?.1.to_owned());
    let name = v8.or_else(jsc).or_else(php).or_else(erlang).unwrap_or_else(|| symbol.to_owned());
    if name.starts_with(' ') { format!("(anonymous){name}") } else { name }
}

/// The name of a function of a report, with its place as symbols of V8 have it.
fn told_name(row: &Value) -> String {
    let name = row["name"].as_str().expect("a name");
    let symbol = row["symbol"].as_str().unwrap_or_default();
    if let Some((_, full)) = symbol.strip_prefix("JSC-").and_then(|rest| rest.split_once(": ")) {
        // The hash of the source is shown only where others have the name.
        let without = full.rsplit_once('#').map_or(full, |(name, _)| name);
        assert!([full, without].contains(&name), "{row}");
        return full.to_owned();
    }
    // The place is a part of the name, without the folder.
    let name = if name.starts_with("(anonymous) ") { "(anonymous)" } else { name };
    if number(&row["line"]) == 0 {
        return name.to_owned();
    }
    // Modules of node itself are shown as files.
    let file = row["file"].as_str().expect("a file").replacen("node/", "node:", 1);
    let column = match number(&row["column"]) {
        0 => String::new(),
        column => format!(":{column}"),
    };
    format!("{name} {file}:{}{column}", row["line"])
}

/// Samples by function: in it, and in it or what it called.
#[derive(Debug, Default)]
struct Truth {
    own: BTreeMap<String, u64>,
    inclusive: BTreeMap<String, u64>,
}

fn is_jitted(frame: &Frame) -> bool {
    frame.dso.contains(".jit/jit-")
}

impl Truth {
    fn of(chains: &[Chain]) -> Self {
        let mut truth = Self::default();
        for chain in chains {
            let named = |frame: &&Frame| is_jitted(frame) && frame.name().is_some();
            let name = |frame: &Frame| function(frame.name().unwrap_or_default());
            if let Some(first) = chain.frames.first().filter(named) {
                *truth.own.entry(name(first)).or_default() += 1;
            }
            let functions: BTreeSet<String> = chain.frames.iter().filter(named).map(name).collect();
            for function in functions {
                *truth.inclusive.entry(function).or_default() += 1;
            }
        }
        truth
    }

    /// Compares with a report of code into which calls were inlined. perf counts samples in them for the code, and the report for the functions that
    /// were inlined, as all views do (the test `counts`).
    fn expect_inlined(&self, report: &Value) {
        let rows = report["top"].as_array().expect("a list");
        assert!(!rows.is_empty(), "{report}");
        let told: u64 = rows.iter().map(|row| number(&row["samples"])).sum();
        let all: u64 = self.own.values().sum();
        assert!(told <= all && told * 2 >= all / 2, "{told}, {all}: {report}");
        for row in rows {
            assert!(number(&row["inclusive"]) >= number(&row["samples"]), "{row}");
        }
    }

    /// Compares with a report: how many functions it has.
    fn expect(&self, report: &Value, has_stacks: bool) -> usize {
        let top = report["top"].as_array().expect("a list");
        for row in top {
            let name = &*told_name(row);
            if name.chars().any(char::is_control) {
                // perf shows it in another spelling.
                continue;
            }
            // Where names are inferred, callers are not known to be there.
            let is_inferred = name.starts_with('[') || name.starts_with('→');
            let own = self.own.get(name).copied().unwrap_or_default();
            assert_eq!(number(&row["samples"]), own, "{name}: {self:#?}");
            if has_stacks && !is_inferred {
                let inclusive = self.inclusive.get(name).copied().unwrap_or_default();
                let told = number(&row["inclusive"]);
                // perf looks up return addresses, which may be behind the code that called: of few samples, one may be such.
                let differ = told.abs_diff(inclusive);
                assert!(differ <= (inclusive / 100).max(1), "{name}: {told}, {inclusive}");
            } else if has_stacks {
                assert!(number(&row["inclusive"]) >= own, "{row}");
            } else {
                assert!(row["inclusive"].is_null(), "{row}");
            }
            let by_tier = row["tiers"].as_array().expect("a list").iter();
            let by_tier: u64 = by_tier.map(|tier| number(&tier["samples"])).sum();
            assert!(by_tier <= own, "{row}");
        }
        // No other function has more.
        let mut most: Vec<u64> = self.own.values().copied().collect();
        most.sort_unstable_by(|a, b| b.cmp(a));
        let told: Vec<u64> = top.iter().map(|row| number(&row["samples"])).collect();
        most.resize(most.len().max(told.len()), 0);
        assert_eq!(told, most[..told.len()], "{self:#?}");
        top.len()
    }
}

/// Injects a recording of the corpus and compares: the report, and what perf prints.
fn corpus(producer: &str, recording: &str, has_stacks: bool) -> (Value, Vec<Chain>) {
    let corpus = Corpus::unpack(producer);
    let output = corpus.scratch().join("out.data");
    let dir = corpus.dir();
    let options = [OsStr::new("--aux-dir"), dir.as_os_str(), OsStr::new("--json")];
    let printed = inject(&corpus.file(&format!("{recording}.data")), &output, options);
    let report = report(&printed);
    let perf = Perf::installed();
    // perf prints samples without call chains in another form.
    let alone = |sample: Sample| {
        let Sample { tid, time, ip: address, symbol, dso, .. } = sample;
        Chain { tid, time, frames: vec![Frame { address, symbol, dso }] }
    };
    let chains = match has_stacks {
        true => perf.chains(&output),
        false => perf.samples(&output).into_iter().map(alone).collect(),
    };
    assert!(Truth::of(&chains).expect(&report, has_stacks) > 4, "{producer}: {report}");
    // Each sample is counted once.
    let parts = ["kernel", "garbage_collector", "compiler", "interpreter", "jitted", "native"];
    let sum: u64 = parts.iter().map(|part| number(&report["activities"][part])).sum();
    assert_eq!(sum, number(&report["activities"]["samples"]), "{producer}");
    assert!(printed.stderr.lines().count() < 25, "{}", printed.stderr);
    (report, chains)
}

fn top<'r>(report: &'r Value, name: &str) -> &'r Value {
    let rows = report["top"].as_array().expect("a list");
    let found = rows.iter().find(|row| row["name"].as_str().is_some_and(|it| it.starts_with(name)));
    found.unwrap_or_else(|| panic!("no {name} in {rows:#?}"))
}

#[test]
fn v8_in_the_corpus() {
    let (report, _) = corpus("node18-b12", "g", true);
    let tiers: BTreeSet<&str> = report["top"]
        .as_array()
        .expect("a list")
        .iter()
        .flat_map(|row| row["tiers"].as_array().expect("a list"))
        .map(|tier| tier["tier"].as_str().expect("a name"))
        .collect();
    assert!(tiers.contains("turbofan"), "{tiers:?}");
}

#[test]
fn php_erlang_mono_and_javascriptcore_in_the_corpus() {
    let (php, _) = corpus("php82-jitdebug32", "g", true);
    assert_eq!(top(&php, "mandel")["tiers"][0]["tier"], "trace");
    let (erlang, _) = corpus("erl25-map", "g", true);
    assert_eq!(top(&erlang, "churned:f/1")["has_code"], false);
    corpus("mono68-b12", "g", true);
    let (jsc, _) = corpus("jsc-b12", "g", true);
    let is_short = |row: &Value| {
        row["symbol"].as_str().expect("a symbol").contains('#')
            && !row["name"].as_str().expect("a name").contains('#')
    };
    assert!(jsc["top"].as_array().expect("a list").iter().any(is_short), "{jsc}");
    // Without call chains, nothing inclusive is known.
    corpus("jsc-b12", "n", false);
}

/// The callers are those of the unwound stacks. perf 6.1 unwinds some stacks by the tables of code that was replaced (docs/viewers.md).
#[test]
fn functions_on_copied_stacks() {
    let demo = argument(demo_jit().get_program());
    let record = Record::new(&["-F", "999", "--call-graph", "dwarf"]);
    let recorded = record.program(&[&*demo, "--quiet", "--no-frame-pointers"]);
    let (report, truth) = (&recorded.report, Truth::of(&recorded.chains()));
    let mut callers = 0;
    for row in report["top"].as_array().expect("a list") {
        let name = row["name"].as_str().expect("a name");
        let (own, inclusive) = (number(&row["samples"]), number(&row["inclusive"]));
        // Samples in inlined calls count for the functions that were inlined, which perf does not show.
        let Some(&in_code) = truth.own.get(name) else { continue };
        assert!(own <= in_code, "{name}: {own}, {in_code}");
        let shown = truth.inclusive.get(name).copied().unwrap_or_default();
        assert!(inclusive >= own && inclusive.abs_diff(shown) * 20 <= shown + 60, "{row}: {shown}");
        callers += u64::from(inclusive > own);
    }
    assert!(callers > 1, "{report}");
}

#[test]
fn java_in_the_corpus() {
    let (report, chains) = corpus("java17-perfmap", "g", true);
    let interpreter = top(&report, "Interpreter");
    assert_eq!(interpreter["interprets"], true);
    // The stub is the only interpreter, and the kernel's part is that of the recording.
    assert_eq!(report["activities"]["interpreter"], interpreter["samples"]);
    assert!(chains.len() > 1000);
}

/// A recorder with further options, in whose folder there is a file.
fn recorder(options: &[&str], file: &str, content: &str) -> Record {
    let record = Record::new(&[&["-F", "999", "--force"], options].concat());
    fs::write(record.folder().join(file), content).expect("a file");
    record
}

/// Records a program, and checks what holds for all.
fn record(record: Record, words: &[&str]) -> Recorded {
    let recorded = record.program(words);
    assert_eq!(recorded.report["schema_version"], 1);
    assert_eq!(recorded.report["child"]["exit_code"], 0);
    assert!(recorded.said.lines().count() < 25, "{}", recorded.said);
    recorded
}

/// How many samples are in the kernel, from the exec on.
fn in_kernel(recorded: &Recorded) -> u64 {
    let samples = recorded.samples();
    let samples = samples.iter().filter(|sample| sample.comm != "perf-exec");
    samples.filter(|sample| sample.dso.starts_with("[kernel")).count() as u64
}

/// The script of a program that collects much garbage.
const GARBAGE: &str = "function spin(n) { return n < 2 ? n : spin(n - 1) + spin(n - 2) }
    let kept = []; const end = Date.now() + 1500;
    while (Date.now() < end) {
      spin(20);
      for (let i = 0; i < 3000; i++) kept.push({ a: i, b: [i] });
      if (kept.length > 200000) kept = [];
    }";

/// Whether a frame is in V8's collector.
fn is_collector(frame: &Frame) -> bool {
    let parts = [
        "v8::internal::Scaveng",
        "MarkCompact",
        "MarkingVisitor",
        "ConcurrentMarking",
        "IncrementalMarking",
        "v8::internal::Sweeper",
        "Evacuat",
        "Heap::CollectGarbage",
        "Heap::PerformGarbageCollection",
        "PretenuringHandler",
    ];
    frame.name().is_some_and(|name| parts.iter().any(|part| name.contains(part)))
}

/// Collecting is what has a function of the collector between it and the nearest code of the program.
fn collects(chain: &Chain) -> bool {
    let in_user = chain.frames.first().is_some_and(|frame| !frame.dso.starts_with("[kernel"));
    in_user && chain.frames.iter().take_while(|frame| !is_jitted(frame)).any(is_collector)
}

/// Checks the samples in the kernel and in V8's collector. Returns the chains.
fn expect_activities_of_node(recorded: &Recorded) -> Vec<Chain> {
    let chains = recorded.chains();
    let activities = &recorded.report["activities"];
    assert_eq!(number(&activities["kernel"]), in_kernel(recorded));
    let truth = chains.iter().filter(|chain| collects(chain)).count() as u64;
    let told = number(&activities["garbage_collector"]);
    assert!(truth > 20, "the program collects too little: {truth}");
    assert!(told.abs_diff(truth) * 20 <= truth, "{told} samples told, perf script shows {truth}");
    chains
}

#[test]
fn node_that_collects_garbage() {
    let record = |options| record(recorder(options, "spin.js", GARBAGE), &["node", "spin.js"]);
    let recorded = record(&[]);
    let report = &recorded.report;
    let chains = expect_activities_of_node(&recorded);
    Truth::of(&chains).expect(report, true);

    let spin = top(report, "spin");
    assert!(number(&spin["inclusive"]) >= number(&spin["samples"]), "{spin}");
    assert_eq!(spin["has_lines"], true);
    let symbol = spin["symbol"].as_str().expect("a symbol");
    assert!(without_tag(symbol).is_some_and(|name| name.contains("spin ")), "{symbol}");
    let annotate = recorded.said.lines().find(|line| line.contains("perf annotate"));
    assert!(annotate.is_some_and(|line| line.contains(symbol)), "{}", recorded.said);

    // On copied stacks, the callers tell the activity as well: much of what the collector does is done by functions that it calls.
    let recorded = record(&["--call-graph", "dwarf,16384"]);
    let report = &recorded.report;
    let chains = expect_activities_of_node(&recorded);
    let leaves = chains.iter().filter(|chain| chain.frames.first().is_some_and(is_collector));
    let leaves = leaves.count() as u64;
    let told = number(&report["activities"]["garbage_collector"]);
    assert!(told > leaves, "{told} samples told, {leaves} are in the collector itself: {report}");
}

#[test]
fn java_that_interprets_and_collects() {
    let source = "import java.util.*;
        public class Spin {
            static int spin(int n) { return n < 2 ? n : spin(n - 1) + spin(n - 2); }
            public static void main(String[] words) {
                long end = System.currentTimeMillis() + 1500;
                List<Object> kept = new ArrayList<>();
                while (System.currentTimeMillis() < end) {
                    spin(18);
                    for (int i = 0; i < 20000; i++) kept.add(new int[10]);
                    if (kept.size() > 400000) kept = new ArrayList<>();
                }
            }
        }";
    let record = |chosen: &[&str], options: &[&str]| {
        let recorder = recorder(chosen, "Spin.java", source);
        run(tool("javac").arg("Spin.java").current_dir(recorder.folder()));
        record(recorder, &[&["java"], options, &["-cp", ".", "Spin"]].concat())
    };
    let by_frame_pointers = ["--call-graph", "fp"];
    let recorded = record(&by_frame_pointers, &["-XX:+UseG1GC", "-XX:ParallelGCThreads=2"]);
    let report = &recorded.report;
    Truth::of(&recorded.chains()).expect_inlined(report);
    assert_eq!(number(&report["activities"]["kernel"]), in_kernel(&recorded));
    let of_threads = |names: [&str; 2]| {
        let samples = recorded.samples();
        let of_them = samples.iter().filter(|sample| {
            !sample.dso.starts_with("[kernel")
                && names.iter().any(|name| sample.comm.starts_with(name))
        });
        of_them.count() as u64
    };
    // The VM's own thread collects, too.
    let collected = of_threads(["GC Thread", "G1 "]);
    assert!(collected > 10, "the program collects too little");
    let activity = |of: &str| number(&report["activities"][of]);
    assert!(activity("garbage_collector") >= collected, "{report}");
    // A compiler's thread takes part in a collection now and then: the function decides.
    let compiled = of_threads(["C1 Comp", "C2 Comp"]);
    let both = activity("compiler") + activity("garbage_collector");
    assert!(compiled > 0 && activity("compiler") > 0, "{compiled}: {report}");
    assert!(both >= collected + compiled, "{collected}, {compiled}: {report}");

    // An interpreter has code, and is not what to look at.
    let recorded = record(&by_frame_pointers, &["-Xint"]);
    let report = &recorded.report;
    assert_eq!(report["top"][0]["name"], "Interpreter", "{}", report["top"]);
    assert!(number(&report["activities"]["interpreter"]) > 100, "{}", report["activities"]);
    let advice = "annotate -i it.data Interpreter";
    assert!(!recorded.said.contains(advice), "{}", recorded.said);
    Truth::of(&recorded.chains()).expect(report, true);

    // Stacks are copied if nothing else is asked for, and its methods have names.
    let recorded = record(&[], &["-Xint"]);
    let said = &recorded.said;
    assert!(said.contains("stacks by --call-graph dwarf,"), "{said}");
    let names = recorded.report["top"].as_array().expect("a list").iter();
    let names: Vec<&str> = names.filter_map(|row| row["name"].as_str()).collect();
    assert!(["Spin.spin", "Spin.main"].iter().all(|name| names.contains(name)), "{names:?}");
    assert_ne!(names.first(), Some(&"Interpreter"), "{names:?}");
    assert!(number(&recorded.report["activities"]["interpreter"]) > 100, "{}", recorded.report);
}

/// Debian's MoarVM has no frame pointers: stacks are copied.
#[test]
fn rakudo_that_compiles_and_runs() {
    let record = Record::new(&["-F", "999", "--force"]);
    let recorded = self::record(record, &["rakudo", &script("spin.raku")]);
    let said = &recorded.said;
    assert!(said.contains("stacks by --call-graph dwarf,"), "{said}");
    let stacks = &recorded.report["stacks"];
    // By frame pointers, one in a hundred is. The compiler's are deeper than the copies at times.
    assert!(number(&stacks["whole"]) * 10 >= number(&stacks["stacks"]) * 9, "{stacks}");
    let compiled = top(&recorded.report, "fib");
    assert!(number(&compiled["inclusive"]) > 10, "{compiled}");
}

#[test]
fn php_that_runs() {
    let record = Record::new(&["-F", "999", "--force"]);
    let recorded = self::record(record, &["php", &script("spin.php")]);
    let report = &recorded.report;
    Truth::of(&recorded.chains()).expect(report, true);
    // execute_ex is exported, so its samples are known.
    let interprets = |sample: &&Sample| sample.name() == Some("execute_ex");
    let truth = recorded.samples().iter().filter(interprets).count() as u64;
    assert!(number(&report["activities"]["interpreter"]) >= truth, "{report}");
    assert_eq!(number(&report["activities"]["kernel"]), in_kernel(&recorded));
}

#[test]
fn erlang_that_compiles_and_runs() {
    let record = Record::new(&["-F", "999", "--force"]);
    let program = erlang(record.folder(), &[]);
    let program: Vec<&str> = program.iter().map(String::as_str).collect();
    let recorded = self::record(record, &program);
    let report = &recorded.report;
    Truth::of(&recorded.chains()).expect(report, true);
    assert!(number(&top(report, "spin:fib/1")["samples"]) > 0);
    // Scripts and programs before the emulator in its process. What it starts has processes of its own, also before these run another program.
    let others = ["perf-exec", "erl", "sh", "erlexec"];
    let pid = number(&report["sources"][0]["pid"]);
    let samples = recorded.samples();
    let is_emulator =
        |sample: &&Sample| u64::from(sample.pid) == pid && !others.contains(&&*sample.comm);
    let emulator = || samples.iter().filter(is_emulator);
    let activity = |of: &str| number(&report["activities"][of]);
    // What ran before the emulator in its process counts, too.
    let (all, of_emulator) = (samples.len() as u64, emulator().count() as u64);
    assert!((of_emulator..=all).contains(&activity("samples")), "{of_emulator}: {report}");
    let in_kernel = emulator().filter(|sample| sample.dso.starts_with("[kernel")).count() as u64;
    assert!(activity("kernel") >= in_kernel, "{in_kernel}: {report}");
    // The emulator exports C++ functions: the assembler of its JIT compiler is known by them.
    let assembles = emulator().filter(|sample| {
        sample.dso.ends_with("/beam.smp")
            && sample.name().is_some_and(|name| name.contains("asmjit::"))
    });
    let assembles = assembles.count() as u64;
    assert!(assembles > 0 && activity("compiler") >= assembles, "{assembles}: {report}");
    // It compiles everything.
    assert_eq!(activity("interpreter"), 0, "{report}");
}
