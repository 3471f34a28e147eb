//! Removes the workspaces of recordings that were killed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::geteuid;

use crate::{note, text};

/// How the names of workspaces begin.
pub const PREFIX: &str = ".jitscribe-";
/// A file in workspaces that are kept.
pub const KEPT: &str = "kept";

/// The most entries of a folder that are searched.
const ENTRIES: usize = 100_000;
/// A recording that has just created its workspace may not have opened it yet.
const NEW: Duration = Duration::from_secs(60);

/// Removes the workspaces in this folder that no process has open. perf may record on when `record` was killed.
pub fn remove(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    let paths = entries.take(ENTRIES).flatten().map(|entry| entry.path());
    let mut abandoned: BTreeSet<PathBuf> = paths
        .filter(|path| is_workspace(path))
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    if abandoned.is_empty() {
        return;
    }
    each_open_file(|file| abandoned.retain(|workspace| !file.starts_with(workspace)));
    for workspace in abandoned {
        // Others may be able to remove what this user cannot.
        if fs::remove_dir_all(&workspace).is_ok() {
            note::say(format_args!(
                "removed {}, which a recording left that was killed",
                text::path(&workspace)
            ));
        }
    }
}

/// Whether there is a workspace of this user's that is not new, and was not kept on purpose.
fn is_workspace(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_prefix(PREFIX));
    let is_name = name.is_some_and(|rest| {
        rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    let is_ours = || {
        let folder = path.symlink_metadata().ok()?;
        let age = SystemTime::now().duration_since(folder.modified().ok()?).ok()?;
        let is_private = folder.is_dir() && folder.permissions().mode() & 0o7777 == 0o700;
        Some(is_private && folder.uid() == geteuid().as_raw() && age > NEW)
    };
    is_name && is_ours() == Some(true) && path.join(KEPT).symlink_metadata().is_err()
}

/// Calls `each` with the paths of the files that processes have open, as far as this user may see them.
fn each_open_file(mut each: impl FnMut(&Path)) {
    let Ok(processes) = fs::read_dir("/proc") else { return };
    let is_process = |name: &OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    for process in processes.flatten().filter(|entry| is_process(&entry.file_name())) {
        let Ok(open) = fs::read_dir(process.path().join("fd")) else { continue };
        let files = open.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
        files.for_each(|file| each(&file));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn only_what_a_killed_recording_left_is_removed() {
        let top = tempfile::tempdir().expect("a folder");
        let old = SystemTime::now() - 2 * NEW;
        let make = |name: &str, mode: u32, file: &str| {
            let path = top.path().join(name);
            fs::create_dir(&path).expect("a folder");
            fs::write(path.join(file), "").expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
            File::open(&path).expect("a folder").set_modified(old).expect("a time");
            path
        };
        let left = make(".jitscribe-AbC123", 0o700, "perf.data");
        let kept = [
            make(".jitscribe-kept01", 0o700, KEPT),
            make(".jitscribe-others", 0o755, "perf.data"),
            make(".jitscribe-other-name", 0o700, "perf.data"),
            make(".jitscribe-used01", 0o700, "perf.data"),
            make(".jitscribe-new001", 0o700, "perf.data"),
        ];
        let used = File::open(kept[3].join("perf.data")).expect("a file");
        File::open(&kept[4]).expect("a folder").set_modified(SystemTime::now()).expect("a time");
        std::os::unix::fs::symlink(&left, top.path().join(".jitscribe-link01")).expect("a link");
        remove(top.path());
        assert!(!left.exists());
        assert!(kept.iter().all(|path| path.exists()));
        drop(used);
        remove(top.path());
        assert!(!kept[3].exists());
    }
}
