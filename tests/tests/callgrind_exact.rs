//! Profiles of jitted code against profiles of the same code as a shared object.

use end_to_end::calls::Calls;
use end_to_end::profile::Profile;
use tempfile::TempDir;

fn calls() -> (TempDir, Calls) {
    let dir = TempDir::with_prefix("jitscribe-calls-").expect("a temporary folder");
    let calls = Calls::build(dir.path(), env!("CARGO_BIN_EXE_run-calls"));
    (dir, calls)
}

/// What is compared to: if this were not the same each time, nothing could be.
#[test]
fn a_shared_object_has_the_same_profile_each_time() {
    let (_dir, calls) = calls();
    let (once, again) = (calls.as_library(&[]), calls.as_library(&[]));
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
    let (_dir, calls) = calls();
    let known = calls.part_of(&calls.as_library(&[]));
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
