//! Profiles in several files, in several parts, and through a pipe.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use end_to_end::calls::Calls;
use end_to_end::jitscribe::{self, jitscribe};
use end_to_end::profile::{ByName, Profile};
use end_to_end::tool::run;

fn calls() -> Calls {
    Calls::build(env!("CARGO_BIN_EXE_run-calls"))
}

/// The variables with which the program writes a dump into the folder, and announces nothing to Valgrind.
fn dumped(calls: &Calls) -> [(&str, &str); 2] {
    let folder = calls.dir().to_str().expect("UTF-8");
    [("JITSCRIBE", "jitdump,valgrind=off"), ("JITSCRIBE_DIR", folder)]
}

/// Numbers by name.
type Counts = Vec<(String, u64)>;

/// Self costs and counts of calls. What is called outside may cost something else in another thread or part.
fn counts(part: &ByName) -> (Counts, Counts) {
    let own = part.own.iter().map(|(name, costs)| (name.clone(), costs[0])).collect();
    let calls = part.calls.iter().map(|((from, to), sum)| (format!("{from} -> {to}"), sum.count));
    (own, calls.collect())
}

fn named(profile: &Path) -> Profile {
    let report = jitscribe::callgrind::<&str>(profile, &[]);
    assert_eq!(report["warnings"], serde_json::json!([]), "{report}");
    let named = Profile::read(report["output"].as_str().expect("a path").as_ref());
    assert_eq!(named.sum(), named.totals);
    named
}

/// `--separate-threads=yes`: one file per thread, each with the process id.
#[test]
fn one_profile_a_thread() {
    let calls = calls();
    let known = calls.threads("library", 3, &[]);
    let unknown = calls.threads("copy", 3, &dumped(&calls));
    assert_eq!((known.len(), unknown.len()), (4, 4), "{known:?} {unknown:?}");
    for (known, unknown) in known.iter().zip(&unknown).skip(1) {
        let known = calls.part_of(&Profile::read(known));
        assert!(known.own.len() > 35, "the thread ran {:?}", known.own.keys());
        assert_eq!(counts(&known), counts(&calls.part_of(&named(unknown))), "{unknown:?}");
    }
}

/// Several parts in one file, the names of which have numbers that the first one gives.
#[test]
fn several_parts() {
    let calls = calls();
    let known = calls.part_of(&calls.as_library(&[]));
    let options = ["--combine-dumps=yes", "--dump-every-bb=40000"];
    let profile = calls.as_copy(&options, &dumped(&calls));
    let parts = std::fs::read_to_string(&profile).expect("a profile").matches("\npart: ").count();
    assert!(parts > 5, "{parts} parts");
    let named = calls.part_of(&named(&profile));
    assert_eq!(counts(&known), counts(&named));
}

/// The jumps that are no calls are those that callgrind sees where it knows the code. Without levels of recursion: of a
/// conditional jump that was not taken at some level, callgrind does not write how often it was executed there, and the
/// rounds of a ring of jumps are such levels only where it knows the code.
#[test]
fn jumps_are_kept() {
    let calls = calls();
    let options = ["--separate-recs=1"];
    let known = calls.part_of(&calls.as_library(&options));
    let named = calls.part_of(&named(&calls.as_copy(&options, &dumped(&calls))));
    assert!(known.jumps.len() > 15, "{:?}", known.jumps);
    assert_eq!(known.jumps, named.jumps);
}

/// A pipe gets the content of the file; the object file is in the working directory.
#[test]
fn through_a_pipe() {
    let calls = calls();
    let profile = calls.as_copy(&[], &dumped(&calls));
    let pid = Profile::read(&profile).pid;
    let report = jitscribe::callgrind::<&str>(&profile, &[]);
    let from_file =
        std::fs::read_to_string(report["output"].as_str().expect("a path")).expect("a profile");

    let mut command = jitscribe();
    command.args(["callgrind", "-"]).current_dir(calls.dir());
    command.stdin(Stdio::from(File::open(&profile).expect("the profile")));
    let piped = run(&mut command);
    let image = calls.dir().join(format!("callgrind.out.{pid}.so"));
    assert!(image.is_file(), "{}", piped.stderr);
    let image = image.to_str().expect("UTF-8");
    assert!(piped.stdout.contains(&format!("ob={image}\n")), "{}", piped.stderr);
    let other = report["image"].as_str().expect("a path");
    assert_eq!(piped.stdout.replace(image, "IMAGE"), from_file.replace(other, "IMAGE"));
}

/// The one command names the file of each thread.
#[test]
fn one_profile_a_thread_by_one_command() {
    let calls = calls();
    let output = calls.dir().join("threads.out");
    let mut command = jitscribe();
    command.args(["record", "--tool=callgrind", "--json", "--separate-threads=yes", "-o"]);
    command.arg(&output).arg("--").args(calls.command("copy", 2));
    command.envs(dumped(&calls));
    let printed = run(&mut command);
    // What the program itself prints comes before.
    let json = printed.stdout.find("[\n").map(|at| &printed.stdout[at..]).expect("JSON");
    let reports: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let reports = reports.as_array().expect("a list");
    assert_eq!(reports.len(), 3, "{}", printed.stderr);
    for report in &reports[1..] {
        assert!(report["events"][0]["named"].as_u64() > Some(400_000), "{report}");
        let named = Profile::read(report["output"].as_str().expect("a path").as_ref());
        assert_eq!(named.sum(), named.totals);
        assert!(calls.part_of(&named).own.len() > 35, "{report}");
    }
}
