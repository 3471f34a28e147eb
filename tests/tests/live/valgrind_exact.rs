//! Code that is announced under valgrind has the profile that the same code has as a shared object.

use end_to_end::calls::Calls;
use end_to_end::profile::Profile;
use tempfile::TempDir;

/// Every self cost, every count of calls, every inclusive cost, for each way to come from function to function.
#[test]
fn announced_code_has_the_profile_of_a_shared_object() {
    let dir = TempDir::with_prefix("jitscribe-calls-").expect("a temporary folder");
    let calls = Calls::build(dir.path(), env!("CARGO_BIN_EXE_run-calls"));
    let objects = dir.path().to_str().expect("a path of characters");
    let known = calls.part_of(&calls.as_library(&[]));
    let announced = calls.as_copy(&[], &[("JITSCRIBE", "valgrind"), ("JITSCRIBE_DIR", objects)]);
    let announced = Profile::read(&announced);
    assert_eq!(known.differences(&calls.part_of(&announced), &[]), "");
    let ours = |object: &str| object.starts_with(objects);
    let mut nameless = announced.own.keys().filter(|function| function.name.starts_with("0x"));
    assert_eq!(nameless.find(|function| ours(&function.object)), None);
}
