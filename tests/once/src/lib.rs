//! What the tests of one run share: a library that is installed, a program that is compiled, a recording.
//!
//! cargo-nextest runs each test in a process of its own, so a static variable is not shared; `cargo test` runs the tests of a program in one process.
//! Here, the first process that needs a folder makes it, under a lock, and all others of the same run wait for it and use it. Nothing is taken from an earlier run.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// In a folder that is complete.
const MADE: &str = ".made";
/// Folders of runs that began so long ago are removed.
const STALE: Duration = Duration::from_secs(6 * 3600);

/// What all processes of a run know it by: cargo-nextest gives each run an id; otherwise the process is the run.
fn run_id() -> String {
    std::env::var("NEXTEST_RUN_ID").unwrap_or_else(|_| std::process::id().to_string())
}

/// The folder `name` of this run below `parent`, which `make` fills the first time. If `make` panics, the next caller tries again.
///
/// # Panics
/// If a file or folder cannot be created.
pub fn once(parent: &Path, name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    once_of(&run_id(), parent, name, make)
}

fn once_of(run: &str, parent: &Path, name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    fs::create_dir_all(parent).expect("a folder");
    let lock = File::create(parent.join(format!("{name}.lock"))).expect("a file");
    lock.lock().expect("a lock");
    let folder = parent.join(format!("{name}.{run}"));
    if !folder.join(MADE).exists() {
        remove_stale(parent, name);
        // What an attempt that failed has left, or an earlier run with the same process id.
        _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder");
        make(&folder);
        File::create(folder.join(MADE)).expect("a file");
    }
    folder
}

/// Removes the folders that earlier runs made.
fn remove_stale(parent: &Path, name: &str) {
    let prefix = format!("{name}.");
    for entry in fs::read_dir(parent).expect("a folder").flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix));
        let made = fs::metadata(entry.path().join(MADE)).and_then(|made| made.modified());
        let age = made.ok().and_then(|made| SystemTime::now().duration_since(made).ok());
        if is_ours && age.is_some_and(|age| age > STALE) {
            _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn one_of_many_makes_it_and_the_others_wait() {
        let parent = tempfile::tempdir().expect("a folder");
        let made = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let folder = once_of("run", parent.path(), "it", |folder| {
                        made.fetch_add(1, Relaxed);
                        fs::write(folder.join("content"), "whole").expect("written");
                    });
                    assert_eq!(fs::read_to_string(folder.join("content")).expect("read"), "whole");
                });
            }
        });
        assert_eq!(made.load(Relaxed), 1);
    }

    #[test]
    fn another_run_makes_its_own() {
        let parent = tempfile::tempdir().expect("a folder");
        let folders = ["one", "other"].map(|run| once_of(run, parent.path(), "it", |_| {}));
        assert_ne!(folders[0], folders[1]);
    }

    #[test]
    fn what_failed_is_tried_again() {
        let parent = tempfile::tempdir().expect("a folder");
        let failing = std::panic::AssertUnwindSafe(|| {
            once_of("run", parent.path(), "it", |folder| {
                fs::write(folder.join("half"), "").expect("written");
                panic!("in the middle");
            })
        });
        assert!(std::panic::catch_unwind(failing).is_err());
        let folder = once_of("run", parent.path(), "it", |_| {});
        assert!(!folder.join("half").exists());
    }
}
