//! A short form of `scripts/storm.sh`: processes that announce code are killed, fork, are short of everything, and have system
//! calls refused to them.

use std::process::Command;

use end_to_end::jitscribe::jitscribe;
use end_to_end::tool::ended;

#[test]
fn a_short_storm() {
    let mut storm = Command::new(env!("CARGO_BIN_EXE_storm"));
    let done = ended(storm.arg(jitscribe().get_program()).arg("5"));
    let table = done.stdout;
    assert_eq!(done.code, Some(0), "{table}\n{}", done.stderr);
    // Every scene is in the table, be it as left out.
    for scene in [
        "kill -9",
        "threads that come and go",
        "fork, parent waits",
        "raw clone3, parent goes on",
        "vfork",
        "CLONE_VM",
        "RLIMIT_AS",
        "RLIMIT_STACK",
        "a full tmpfs",
        "a cgroup",
        "forbidden: EPERM",
        "forbidden: ENOSYS",
        "forbidden: KILL",
        "0 failures",
    ] {
        assert!(table.contains(scene), "{scene}: {table}");
    }
}
