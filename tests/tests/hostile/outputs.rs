//! Outputs in folders of other users: what is written follows no link that they put there.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use end_to_end::jitscribe::jitscribe;
use end_to_end::tool::output;
use tempfile::TempDir;
use test_privilege::{Privilege, have};

/// Where `jitscribe record -o OUTPUT` lets perf write.
fn recording_of_perf(output_file: &Path) -> PathBuf {
    let programs = TempDir::with_prefix("jitscribe-programs-").expect("a folder");
    let (perf, told) = (programs.path().join("perf"), programs.path().join("told"));
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >> '{}'\nexit 1\n", told.display());
    fs::write(&perf, script).expect("a program");
    fs::set_permissions(&perf, fs::Permissions::from_mode(0o755)).expect("ours");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = [programs.path().to_owned()].into_iter().chain(std::env::split_paths(&path));
    let mut record = jitscribe();
    record.args(["record", "-o"]).arg(output_file).args(["--", "true"]);
    record.env("PATH", std::env::join_paths(paths).expect("a search path"));
    let done = output(&mut record);
    let words = fs::read_to_string(&told).unwrap_or_else(|error| panic!("{error}: {done:?}"));
    let words: Vec<&str> = words.lines().collect();
    let option = words.windows(2).find(|words| words[0] == "-o").expect("perf has an output");
    PathBuf::from(option[1])
}

/// A user who sees root's workspace could rename it, and put a folder with links in its place.
#[test]
fn a_workspace_is_where_no_other_user_can_replace_it() {
    let own = TempDir::with_prefix("jitscribe-own-").expect("a folder");
    let inside = |path: &Path, folder: &TempDir| {
        path.starts_with(folder.path().canonicalize().expect("a folder"))
    };
    assert!(inside(&recording_of_perf(&own.path().join("perf.data")), &own));
    if !have(&[Privilege::OtherUsers]) {
        return;
    }
    let of_user = TempDir::with_prefix("jitscribe-user-").expect("a folder");
    chown(of_user.path(), Some(65534), Some(65534)).expect("root");
    let below = of_user.path().join("below");
    fs::create_dir(&below).expect("a folder");
    for folder in [of_user.path(), &below] {
        let recording = recording_of_perf(&folder.join("perf.data"));
        assert!(!inside(&recording, &of_user), "{}", recording.display());
        let left = recording.parent().expect("a folder").exists();
        assert!(!left, "{} is left", recording.display());
        let mut kept = jitscribe();
        kept.args(["record", "--keep-raw", "-o"]).arg(folder.join("perf.data"));
        let done = output(kept.args(["--", "true"]));
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success() && said.contains("other users may replace"), "{said}");
    }
    assert!(!of_user.path().join("perf.data").exists());
}
