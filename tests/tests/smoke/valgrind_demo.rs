//! The demo JIT's program under callgrind in three ways: its code as a shared object that `as` and `ld` made, in
//! memory and announced while it runs, in memory and named afterwards.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use end_to_end::jitscribe;
use end_to_end::profile::{ByName, Profile, callgrind};
use end_to_end::tool::{run, tool};
use serde_json::Value;
use tempfile::TempDir;

/// How often each function of a phase is called.
const CALLS: [&str; 2] = ["--calls", "2"];

/// The codes that a run makes, by symbol, and a shared object with each of them.
struct Demo {
    dir: TempDir,
    library: PathBuf,
    /// The address of each symbol's code in one run.
    places: BTreeMap<String, Vec<(u64, u64)>>,
}

impl Demo {
    fn build() -> Self {
        let dir = TempDir::with_prefix("demo-jit-").expect("a temporary folder");
        let truth = dir.path().join("truth.json");
        run(jitscribe::demo_jit().args(CALLS).arg("--truth").arg(&truth));
        let truth = std::fs::read_to_string(truth).expect("the truth");
        let (mut places, mut assembly) = (BTreeMap::<_, Vec<_>>::new(), String::from(".text\n"));
        for version in truth.lines() {
            let version: Value = serde_json::from_str(version).expect("JSON");
            let symbol = version["symbol"].as_str().expect("a name");
            let number = |name: &str| version[name].as_u64().expect("a number");
            let of_symbol = places.entry(symbol.to_owned()).or_default();
            of_symbol.push((number("address"), number("size")));
            // One that was moved is the same code.
            if of_symbol.len() == 1 {
                let bytes = version["bytes"].as_str().expect("bytes");
                assemble(&mut assembly, symbol, bytes);
            }
        }
        assembly += ".section .note.GNU-stack, \"\", @progbits\n";
        let source = dir.path().join("demo.s");
        std::fs::write(&source, assembly).expect("a file");
        let library = dir.path().join("demo.so");
        run(tool("cc").args(["-shared", "-nostdlib", "-o"]).arg(&library).arg(source));
        Self { dir, library, places }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Runs the code of the shared object.
    fn as_library(&self) -> ByName {
        let mut demo = jitscribe::demo_jit();
        demo.args(CALLS).arg("--code-from").arg(&self.library);
        self.part_of(&Profile::read(&callgrind(self.path(), &[], &demo).0))
    }

    /// Runs the code in memory with this in the environment.
    fn in_memory(&self, words: &str, options: &[&str]) -> PathBuf {
        let mut demo = jitscribe::demo_jit();
        demo.args(CALLS).args(["--log", "--memory"]).args(options);
        demo.env("JITSCRIBE", words).env("JITSCRIBE_DIR", self.path());
        callgrind(self.path(), &[], &demo).0
    }

    /// The costs of the codes in the profile, and of calls to and from them.
    fn part_of(&self, profile: &Profile) -> ByName {
        assert_eq!(profile.sum(), profile.totals);
        profile.by_name().of(|name| self.places.contains_key(name))
    }

    /// By symbol, the first of all symbols that had code at the same addresses at some time.
    fn neighbours(&self) -> BTreeMap<&str, &str> {
        let all = self.places.iter();
        let mut ranges: Vec<(u64, u64, &str)> = all
            .flat_map(|(symbol, places)| {
                places.iter().map(move |&(at, size)| (at, at + size, symbol.as_str()))
            })
            .collect();
        ranges.sort_unstable();
        let mut first: BTreeMap<&str, &str> =
            self.places.keys().map(|symbol| (symbol.as_str(), symbol.as_str())).collect();
        let (mut end, mut owner) = (0, "");
        for (from, to, symbol) in ranges {
            if from < end {
                let (old, new) = (first[symbol], first[owner]);
                first.values_mut().filter(|first| **first == old).for_each(|first| *first = new);
            } else {
                owner = symbol;
            }
            end = end.max(to);
        }
        first
    }
}

/// A function of these bytes, as hexadecimal digits.
fn assemble(out: &mut String, symbol: &str, digits: &str) {
    _ = writeln!(out, ".globl \"{symbol}\"\n.type \"{symbol}\", @function\n.p2align 6");
    _ = writeln!(out, "\"{symbol}\":");
    for byte in digits.as_bytes().chunks(2) {
        _ = writeln!(out, ".byte 0x{}", str::from_utf8(byte).expect("digits"));
    }
    _ = writeln!(out, ".size \"{symbol}\", . - \"{symbol}\"");
}

/// The same, where all symbols are one that had code at the same addresses.
fn merged(part: &ByName, first: &BTreeMap<&str, &str>) -> ByName {
    let name = |name: &String| first.get(name.as_str()).map_or(name.clone(), |&of| of.to_owned());
    let add = |sum: &mut Vec<u64>, costs: &[u64]| {
        sum.resize(costs.len(), 0);
        sum.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
    };
    let mut merged = ByName::default();
    for (function, costs) in &part.own {
        add(merged.own.entry(name(function)).or_default(), costs);
    }
    for ((caller, callee), call) in &part.calls {
        let sum = merged.calls.entry((name(caller), name(callee))).or_default();
        sum.count += call.count;
        add(&mut sum.inclusive, &call.inclusive);
    }
    merged
}

#[test]
fn announced_code_has_the_profile_of_the_shared_object() {
    let demo = Demo::build();
    let known = demo.as_library();
    assert_eq!(known.differences(&demo.as_library(), &[]), "", "it is not the same each time");
    assert_eq!(known.own.len(), demo.places.len(), "{:?}", known.own);
    for memory in ["anonymous", "memfd"] {
        let announced = Profile::read(&demo.in_memory("valgrind", &[memory]));
        assert_eq!(known.differences(&demo.part_of(&announced), &[]), "", "{memory}");
    }
}

/// Where nothing ever replaced anything, all is equal. Where different code was at one address, the last one has what
/// all of them cost, but for what lay behind its end.
#[test]
fn code_named_later_has_the_same_profile_except_at_reused_addresses() {
    let demo = Demo::build();
    let known = demo.as_library();
    let folder = demo.path().to_str().expect("a path of characters");
    let profile = demo.in_memory("valgrind=off", &["anonymous", "--dump-dir", folder]);
    let report = jitscribe::callgrind::<&str>(&profile, &[]);
    let named = Profile::read(report["output"].as_str().expect("a path").as_ref());
    let named = demo.part_of(&named);
    let first = demo.neighbours();
    let again: Vec<_> = first.iter().filter(|(symbol, first)| symbol != first).collect();
    assert_eq!(again.len(), 3, "{again:?}");
    assert_eq!(merged(&known, &first).differences(&merged(&named, &first), &[]), "");
    // They do differ, and this is reported.
    let costs = |part: &ByName| part.own.get("compact::collatz").map(|costs| costs[0]);
    assert!(costs(&named) > costs(&known), "{named:?}");
    assert!(report["warnings"].to_string().contains("held other code at other times"), "{report}");
}
