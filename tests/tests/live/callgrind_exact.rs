//! Profiles of jitted code against profiles of the same code as a shared object.

use std::path::PathBuf;

use end_to_end::calls::{Calls, UNRECOVERABLE};
use end_to_end::jitscribe;
use end_to_end::profile::{Profile, plain};
use end_to_end::tool::{run, tool};
use tempfile::TempDir;

fn calls() -> Calls {
    Calls::build(env!("CARGO_BIN_EXE_run-calls"))
}

/// What is compared to: if this were not the same each time, nothing could be.
#[test]
fn a_shared_object_has_the_same_profile_each_time() {
    let calls = calls();
    let (once, again) = (calls.known(), calls.as_library(&[]));
    let once = calls.part_of(&once);
    assert_eq!(once.differences(&calls.part_of(&again), &[]), "");
    let functions = calls.functions();
    assert!(functions.len() > 35, "{functions:?}");
    for function in functions.iter().filter(|name| *name != "only_middle") {
        assert!(once.own.contains_key(function), "{function} did not run");
    }
}

/// Unknown code has no names, but all of the cost: the totals are the same.
#[test]
fn a_copy_costs_what_the_shared_object_does() {
    let calls = calls();
    let known = calls.part_of(&calls.known());
    let unknown = Profile::read(&calls.as_copy(&[], &[("JITSCRIBE", "off")]));
    assert_eq!(unknown.sum(), unknown.totals);
    let of = |own: &mut dyn Iterator<Item = &Vec<u64>>| own.map(|costs| costs[0]).sum::<u64>();
    let unknown = unknown
        .own
        .iter()
        .filter(|(function, _)| function.object == "???" && function.name.starts_with("0x"));
    assert!(
        of(&mut unknown.map(|(_, costs)| costs)) >= of(&mut known.own.values()),
        "some of the code's cost is nowhere"
    );
}

/// The profile that `jitscribe callgrind` makes of one of code that wrote a jitdump into `dir`.
fn named(calls: &Calls, options: &[&str]) -> (PathBuf, serde_json::Value) {
    let variables = [
        ("JITSCRIBE", "jitdump,valgrind=off"),
        ("JITSCRIBE_DIR", calls.dir().to_str().expect("UTF-8")),
    ];
    let profile = calls.as_copy(options, &variables);
    let report = jitscribe::callgrind::<&str>(&profile, &[]);
    (PathBuf::from(report["output"].as_str().expect("a path")), report)
}

/// Every self cost, every count of calls, every inclusive cost, for each way to come from function to function: if the code is announced
/// while it runs, and if it gets names later, from a dump or from a map.
#[test]
fn code_has_the_profile_of_a_shared_object() {
    let calls = calls();
    let objects = calls.dir().to_str().expect("UTF-8");
    let known = calls.part_of(&calls.known());

    let announced = calls.as_copy(&[], &[("JITSCRIBE", "valgrind"), ("JITSCRIBE_DIR", objects)]);
    let announced = Profile::read(&announced);
    assert_eq!(known.differences(&calls.part_of(&announced), &[]), "", "announced");
    let ours = |object: &str| object.starts_with(objects);
    let mut nameless = announced.own.keys().filter(|function| function.name.starts_with("0x"));
    assert_eq!(nameless.find(|function| ours(&function.object)), None);

    let profile = calls.as_copy(&[], &[("JITSCRIBE", "perf-map,valgrind=off")]);
    let report = jitscribe::callgrind::<&str>(&profile, &[]);
    let mapped = Profile::read(report["output"].as_str().expect("a path").as_ref());
    std::fs::remove_file(format!("/tmp/perf-{}.map", mapped.pid)).expect("the map");
    assert_eq!(known.differences(&calls.part_of(&mapped), UNRECOVERABLE), "", "a map");

    let (output, report) = named(&calls, &[]);
    assert_eq!(report["warnings"], serde_json::json!([]), "{report}");
    let named = Profile::read(&output);
    assert_eq!(named.sum(), named.totals);
    assert_eq!(known.differences(&calls.part_of(&named), UNRECOVERABLE), "", "a dump");
    // The list is not longer than it has to be.
    for call in UNRECOVERABLE {
        let inclusive = |part: &end_to_end::profile::ByName| {
            part.calls[&(call.0.to_owned(), call.1.to_owned())].inclusive.clone()
        };
        assert_ne!(inclusive(&known), inclusive(&calls.part_of(&named)), "{call:?}");
    }
}

/// Threads, callers in names, deeper recursion, several parts, more events: costs and counts are the same.
#[test]
fn all_options_of_callgrind() {
    let calls = calls();
    for options in [
        &["--separate-recs=4"][..],
        &["--separate-callers=3"],
        &["--separate-callers=2", "--separate-recs=1"],
        &["--compress-strings=no", "--compress-pos=no"],
        &["--cache-sim=yes", "--branch-sim=yes", "--collect-bus=yes"],
        &["--dump-line=no"],
        &["--compress-mangled=yes", "--separate-callers=2"],
    ] {
        let known = calls.part_of(&calls.as_library(options));
        let (output, report) = named(&calls, options);
        let named = Profile::read(&output);
        assert_eq!(named.sum(), named.totals, "{options:?}");
        let own = |profile: &end_to_end::profile::ByName| {
            profile.own.iter().map(|(name, costs)| (name.clone(), costs[0])).collect::<Vec<_>>()
        };
        let named = calls.part_of(&named);
        // Where caches and branches are simulated, the same at another address costs something else.
        assert_eq!(own(&known), own(&named), "{options:?}\n{report}");
        let counts = |part: &end_to_end::profile::ByName| {
            part.calls.iter().map(|(call, sum)| (call.clone(), sum.count)).collect::<Vec<_>>()
        };
        assert_eq!(counts(&known), counts(&named), "{options:?}");
    }
}

/// Of memory accesses, as of instructions, the inclusive costs are exact. Cache misses depend on addresses.
#[test]
fn inclusive_costs_of_memory_accesses_are_exact() {
    let calls = calls();
    let options = ["--cache-sim=yes"];
    let mut known = calls.as_library(&options);
    let mut named = Profile::read(&named(&calls, &options).0);
    for profile in [&mut known, &mut named] {
        assert_eq!(profile.events[..3], ["Ir", "Dr", "Dw"]);
        profile.own.values_mut().for_each(|costs| costs.truncate(3));
        profile.calls.values_mut().for_each(|call| call.inclusive.truncate(3));
    }
    let known = calls.part_of(&known);
    assert_eq!(known.differences(&calls.part_of(&named), UNRECOVERABLE), "");
    let ring = ("calling_ring".to_owned(), "calling_ring_back".to_owned());
    assert!(known.calls[&ring].inclusive[1..].iter().all(|&cost| cost > 0));
}

/// Every instruction has the line that the debug info of the shared object has, and the object file has the bytes.
#[test]
fn lines_and_bytes_are_the_codes_own() {
    let calls = calls();
    let known = calls.known();
    let (output, report) = named(&calls, &[]);
    let named = Profile::read(&output);
    let functions = calls.functions();
    let lines = |profile: &Profile| {
        let mut lines: Vec<_> = profile
            .places
            .iter()
            .map(|((function, _, file, line), costs)| {
                let file = file.rsplit('/').next().unwrap_or(file).to_owned();
                // Where a ring of jumps is a recursion, the level of each instruction is unknown.
                (plain(&function.name), file, *line, costs.clone())
            })
            .filter(|(name, ..)| functions.contains(name))
            .collect();
        lines.sort();
        lines
    };
    let mut sums = std::collections::BTreeMap::new();
    for (profile, place) in [(&known, 0), (&named, 1)] {
        for (name, file, line, costs) in lines(profile) {
            sums.entry((name, file, line)).or_insert([0; 2])[place] += costs[0];
        }
    }
    assert!(sums.len() > 100, "{}", sums.len());
    let differing: Vec<_> = sums.iter().filter(|(_, [known, named])| known != named).collect();
    assert!(differing.is_empty(), "{differing:#?}");

    let image = report["image"].as_str().expect("an object file");
    let (function, address, ..) = named
        .places
        .keys()
        .find(|(function, ..)| function.name == "chain_a")
        .expect("an instruction of chain_a");
    assert_eq!(function.object, image);
    let disassembly = run(tool("objdump")
        .args(["-C", "-d", &format!("--start-address={address:#x}")])
        .arg(format!("--stop-address={:#x}", address + 6))
        .arg(image));
    assert!(disassembly.stdout.contains("<chain_a>:"), "{}", disassembly.stdout);
    assert!(disassembly.stdout.contains("<chain_b>"), "{}", disassembly.stdout);
    run(tool("eu-readelf").args(["-a"]).arg(image));
}

/// Without instructions or without jumps, less is possible, and the missing option is reported.
#[test]
fn failures_are_reported() {
    let calls = calls();
    for (option, named_functions) in [("--dump-instr=no", 30), ("--collect-jumps=no", 42)] {
        let (output, report) = named(&calls, &[option]);
        let named = Profile::read(&output);
        assert_eq!(named.sum(), named.totals, "{option}");
        let wanted = option.replace("=no", "=yes");
        assert!(report["warnings"].to_string().contains(&wanted), "{report}");
        assert!(report["functions"].as_u64().expect("a number") >= named_functions, "{report}");
        let unknown = &report["events"][0];
        assert!(unknown["named"].as_u64() > Some(500_000), "{report}");
    }
}

/// What was asked for and is not possible is said where Valgrind writes, and not otherwise.
#[test]
fn a_directory_that_cannot_be_used_is_reported_if_valgrind_was_asked_for() {
    let calls = calls();
    let words = calls.command("copy", 1);
    let said = |word: &str, dir: &str| {
        let mut valgrind = tool("valgrind");
        valgrind.arg("--tool=none").args(&words).env("JITSCRIBE", word).env("JITSCRIBE_DIR", dir);
        run(&mut valgrind).stderr
    };
    let nowhere = "/proc/100%d/nowhere";
    let reports = |said: &str| said.matches("jitscribe: valgrind is shown no code").count();
    let asked = said("valgrind", nowhere);
    assert!(asked.contains(&format!("shown no code: {nowhere}")), "{asked}");
    assert_eq!(reports(&asked), 1, "{asked}");
    assert_eq!(reports(&said("bytes", nowhere)), 0);
    let dir = TempDir::with_prefix("jitscribe-valgrind-").expect("a temporary folder");
    let usable = said("valgrind", dir.path().to_str().expect("UTF-8"));
    assert!(!usable.contains("jitscribe:"), "{usable}");
}
