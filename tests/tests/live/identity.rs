//! Keys of functions and codes: the same where two processes have the same function or code, and others where they differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use disassembly::mask_addresses;
use end_to_end::demo::{demo, record_demo};
use end_to_end::java::Jdk;
use end_to_end::live::{Recorder, Recording};
use end_to_end::profiles::read;
use end_to_end::record::Record;
use end_to_end::recordings::DEMO;
use end_to_end::runtimes::script;
use end_to_end::tool::{argument, installed};
use profile::{CodeKey, CodeSource, Function, FunctionKey, FunctionKind, Profile};
use tempfile::TempDir;

/// The keys of a recording's jitted functions, by name and place.
type Functions = BTreeMap<(String, u32, u32), FunctionKey>;

/// The machine code of jitted functions, by name and tier: the bytes as they were, and the key.
type Codes = BTreeMap<(String, String), BTreeSet<(Vec<u8>, CodeKey)>>;

fn text(profile: &Profile, id: profile::StringId) -> String {
    String::from_utf8_lossy(profile.text(id)).into_owned()
}

fn is_jitted(function: &Function) -> bool {
    function.kind == FunctionKind::Jitted
}

/// What is in a recording whose functions are `wanted`, by name.
fn keys(data: &Path, wanted: impl Fn(&str) -> bool) -> (Functions, Codes) {
    let mut recorded = read(data);
    let profile = &recorded.profile;
    let mut functions = Functions::new();
    for function in profile.functions().iter().filter(|function| is_jitted(function)) {
        let name = text(profile, function.name);
        if wanted(&name) {
            let key = FunctionKey::of(profile, function);
            functions.insert((name, function.line, function.column), key);
        }
    }
    let mut codes = Codes::new();
    for (id, code) in profile.numbered_codes().filter(|(_, code)| code.process.is_some()) {
        let name = text(profile, profile.function(code.function).name);
        let Some(listing) = recorded.code.listing(id).filter(|_| wanted(&name)) else { continue };
        let mut masked = listing.bytes.clone();
        assert!(mask_addresses(listing.machine, code.address, &mut masked), "x86-64");
        let key = CodeKey::of(profile, code, Some(&masked));
        let tier = text(profile, code.tier);
        codes.entry((name, tier)).or_default().insert((listing.bytes, key));
    }
    (functions, codes)
}

/// The functions of both, whose keys and ids are the same, and differ from those of other functions.
fn expect_same_functions(one: &Functions, other: &Functions) -> usize {
    let mut ids = BTreeMap::new();
    let mut both = 0;
    for (function, key) in one {
        if let Some(earlier) = ids.insert(key.id(), function) {
            panic!("{earlier:?} and {function:?} have one id");
        }
        if let Some(of_other) = other.get(function) {
            assert_eq!(key, of_other, "{function:?}");
            assert_eq!(key.id(), of_other.id());
            both += 1;
        }
    }
    both
}

/// How many codes of one process have the id of a code of the same function in the other.
fn same_codes(one: &Codes, other: &Codes) -> usize {
    let has_id = |name, id| other[name].iter().any(|(_, other): &(_, CodeKey)| other.id() == id);
    let of_both = one.iter().filter(|(name, _)| other.contains_key(*name));
    of_both
        .flat_map(|(name, codes)| codes.iter().filter(move |(_, key)| has_id(name, key.id())))
        .count()
}

/// Cranelift's code of one source has the same bytes in each process, but for the addresses in it.
#[test]
fn functions_and_codes_of_the_demo_are_the_same_in_two_processes() {
    let of = |recording: &Recording| keys(&recording.data(), |_| true);
    let (one, other) = (of(&DEMO.get()), of(&record_demo(Recorder::new(), &[]).0));
    let both = expect_same_functions(&one.0, &other.0);
    assert!(both >= 8, "{both} functions in both: {:?}", one.0.keys());
    let same = same_codes(&one.1, &other.1);
    let all: usize =
        one.1.iter().filter(|(name, _)| other.1.contains_key(*name)).map(|it| it.1.len()).sum();
    assert_eq!(same, all, "codes of functions in both: {:#?}\n{:#?}", ids(&one.1), ids(&other.1));
    assert!(all >= 8, "{all} codes");
}

fn ids(codes: &Codes) -> Vec<String> {
    let all = codes.iter().flat_map(|(name, codes)| codes.iter().map(move |code| (name, code)));
    all.map(|(name, (bytes, key))| format!("{name:?} {} {:016x}", bytes.len(), key.id())).collect()
}

const BEFORE: &str = "
function first(n) { let sum = 0; for (let i = 0; i < n; i++) sum = (sum * 31 + i) % 65521; return sum; }
function second(n) { let sum = 0; for (let i = 0; i < n; i++) sum = (sum ^ i) + first(3); return sum; }
const end = Date.now() + 400; let all = 0;
while (Date.now() < end) { all += first(20000) + second(20000); }
console.log(all > 0);
";

/// Records node with a script in a folder, as an application is deployed.
fn record_node(dir: &Path, deployment: &str, script: &str) -> (Functions, Codes) {
    let folder = dir.join(deployment);
    fs::create_dir(&folder).expect("a folder");
    let path = folder.join("app.js");
    fs::write(&path, script).expect("a script");
    let recorded = Record::new(&["-F", "999"]).program(&["node", &argument(path)]);
    keys(&recorded.data(), |name| ["first", "second"].contains(&name))
}

#[test]
fn functions_of_node_are_those_of_one_source_in_any_deployment() {
    let dir = TempDir::new().expect("a folder");
    let one = record_node(dir.path(), "app-1.0.1", BEFORE);
    let same = record_node(dir.path(), "app-1.0.2", BEFORE);
    assert_eq!(expect_same_functions(&one.0, &same.0), 2, "{:?}", one.0);
    for key in one.0.values() {
        assert!(key.file.ends_with(b"/app/app.js"), "{key:?}");
        assert_eq!(key.version.runtime, b"node");
        assert!(key.version.build_id.len() >= 16 && key.version.source.len() == 16, "{key:?}");
    }
    // The function is one line further down, and the source has another hash.
    let after = format!("\n{BEFORE}");
    let changed = record_node(dir.path(), "app-1.1.0", &after);
    for ((name, line, column), key) in &one.0 {
        let moved = &changed.0[&(name.clone(), line + 1, *column)];
        assert_ne!(key.id(), moved.id(), "{name}");
        assert_ne!(key.version.source, moved.version.source);
        assert_eq!(key.without_place().id(), moved.without_place().id(), "{name}");
    }
    // What is compiled may differ, as it depends on what has run before.
    for codes in [&one.1, &same.1, &changed.1] {
        assert!(codes.values().flatten().count() >= 2, "{:?}", ids(codes));
    }
    for (_, key) in one.1.values().flatten() {
        let of_functions = one.0.values().filter(|function| **function == key.function);
        assert_eq!(of_functions.count(), 1);
    }
}

/// By tier: how many codes of one process have the size of a code of the same function in the other, how many of these the same bytes, and how many the same id.
fn by_tier<'c>(one: &'c Codes, other: &Codes) -> BTreeMap<&'c str, [usize; 3]> {
    let mut tiers = BTreeMap::new();
    for ((name, tier), codes) in one {
        let counts: &mut [usize; 3] = tiers.entry(tier.as_str()).or_default();
        for (bytes, key) in codes {
            let of_other = other.get(&(name.clone(), tier.clone())).into_iter().flatten();
            let alike = of_other
                .filter(|(_, other)| (&other.function, other.size) == (&key.function, key.size));
            let alike: Vec<_> = alike.collect();
            counts[0] += usize::from(!alike.is_empty());
            counts[1] += usize::from(alike.iter().any(|(other, _)| other == bytes));
            counts[2] += usize::from(alike.iter().any(|(_, other)| other.id() == key.id()));
        }
    }
    tiers
}

/// V8's code has addresses of its heap, of its program and of itself. Without these, it is the same code in two processes.
fn expect_same_code_of_node(node: &Path) {
    let record = || {
        let program = [&argument(node), "--always-sparkplug", &script("hosts/app.js")];
        keys(&Record::new(&["-F", "999"]).program(&program).data(), |_| true).1
    };
    let (one, other) = (record(), record());
    let tiers = by_tier(&one, &other);
    // It depends on nothing but the source.
    let [alike, bytes, ids] = tiers["sparkplug"];
    assert!(alike >= 10 && bytes * 10 <= alike, "{tiers:?}");
    assert_eq!(ids, alike, "{tiers:?}");
    // What other tiers compile depends on what has run before, even if its size is the same.
    for ([alike, _, ids], tier) in
        ["maglev", "turbofan"].iter().filter_map(|tier| Some((*tiers.get(tier)?, tier)))
    {
        assert!(ids * 2 >= alike, "{tier}: {tiers:?}");
    }
}

#[test]
fn codes_of_node_20_are_the_same_in_two_processes() {
    expect_same_code_of_node(Path::new("node"));
}

#[test]
fn codes_of_node_24_are_the_same_in_two_processes() {
    expect_same_code_of_node(&installed("node-24.19.0/bin/node"));
}

#[test]
fn methods_of_java_are_the_same_in_two_processes() {
    let jdk = Jdk::of_debian_12();
    let record = || {
        let record = Record::new(&["-F", "999", "--call-graph", "fp"]).env("PATH", jdk.path());
        jdk.compile("Tiers.java", record.folder());
        let recorded = record.program(&["java", "Tiers", "1200"]);
        keys(&recorded.data(), |name| name.contains("Tiers."))
    };
    let (one, other) = (record(), record());
    let both = expect_same_functions(&one.0, &other.0);
    assert!(both >= 2, "{:?}\n{:?}", one.0.keys(), other.0.keys());
    for key in one.0.values() {
        assert_eq!(key.version.runtime, b"libjvm.so");
        assert!(!key.version.build_id.is_empty(), "{key:?}");
    }
}

/// A program that is built again is another runtime: its functions have other ids, and the same lineage.
#[test]
fn the_demo_is_a_runtime_with_a_build_id() {
    let recording = DEMO.get();
    let program = demo(recording.dir(), "x", &[]).swap_remove(0);
    let elf = fs::read(&program).expect("the demo");
    let elf = object::File::parse(&*elf).expect("an ELF file");
    let build_id = object::Object::build_id(&elf).expect("readable notes");
    let (functions, _) = keys(&recording.data(), |_| true);
    for key in functions.values() {
        let name = Path::new(&program).file_name().expect("a name").as_encoded_bytes();
        assert_eq!((&*key.version.runtime, Some(&*key.version.build_id)), (name, build_id));
    }
    assert!(functions.len() >= 8, "{:?}", functions.keys());
}
