//! Removes the files that V8 wrote only because `record` asked it to: in the working directory of recorded processes, and perf maps
//! in `/tmp`.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jitscribe_inject::files::pid_of_v8_log;
use rustix::fs::{AtFlags, OFlags, unlinkat};
use rustix::process::geteuid;

use super::follow::{is_dump_of, is_map_of, map_name};
use crate::inject::Report;

/// The most entries of a folder that are searched for logs.
const ENTRIES: usize = 100_000;

/// An upper bound for the rounding of file times.
const ROUNDED: Duration = Duration::from_millis(500);

/// Removes V8's dumps, logs and perf maps of these processes that were created since `begun`.
pub fn remove(report: &Report, pids: &BTreeSet<u32>, begun: SystemTime) {
    for source in report.sources.iter().filter(|source| pids.contains(&source.pid)) {
        let is_over = !Path::new("/proc").join(source.pid.to_string()).exists();
        let Some(folder) = source.path.parent().filter(|_| is_over) else { continue };
        // What cannot be removed is listed at the end.
        if is_dump_of(&source.path, source.pid) {
            let _ = remove_from(folder, source.pid, begun);
        } else if is_map_of(&source.path, source.pid) {
            let _ = remove_map(folder, source.pid, begun);
        }
    }
}

/// A folder that stays the same if its path comes to lead elsewhere, and a path to it.
fn open_folder(folder: &Path) -> std::io::Result<(File, PathBuf)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let folder =
        OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(folder)?;
    let here = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    Ok((folder, here))
}

fn remove_map(folder: &Path, pid: u32, begun: SystemTime) -> std::io::Result<()> {
    let (folder, here) = open_folder(folder)?;
    remove_file(&folder, &here, &map_name(pid), begun)
}

fn remove_from(folder: &Path, pid: u32, begun: SystemTime) -> std::io::Result<()> {
    let (folder, here) = open_folder(folder)?;
    remove_file(&folder, &here, &format!("jit-{pid}.dump"), begun)?;
    // The folder of another user may have any number of entries, and block when it is read.
    if folder.metadata()?.uid() == geteuid().as_raw() {
        for entry in here.read_dir()?.take(ENTRIES).flatten() {
            let name = entry.file_name();
            if let Some(name) =
                name.to_str().filter(|name| pid_of_v8_log(name.as_bytes()) == Some(pid))
            {
                remove_file(&folder, &here, name, begun)?;
            }
        }
    }
    Ok(())
}

/// Removes a file of ours that is new. If the file system does not record when a file was created, its name decides: V8 would
/// have overwritten an earlier file of this name.
fn remove_file(folder: &File, here: &Path, name: &str, begun: SystemTime) -> std::io::Result<()> {
    let file = here.join(name).symlink_metadata()?;
    let is_new = file.created().map_or(true, |created| created + ROUNDED >= begun);
    if file.is_file() && file.uid() == geteuid().as_raw() && is_new {
        unlinkat(folder, name, AtFlags::empty())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_new_files_of_the_process_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = || {
            let entries = fs::read_dir(folder.path()).expect("a folder").flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
            names.sort();
            names
        };
        let write = |name: &str| fs::write(folder.path().join(name), "text").expect("a file");
        let begun = SystemTime::now();
        let kept = ["app.js", "isolate-0x1-70-v8.log", "jit-70.dump", "v8.log"];
        let removed = ["jit-7.dump", "isolate-0x1-7-v8.log", "isolate-0x2-7-v8.log"];
        kept.iter().chain(&removed).for_each(|name| write(name));
        remove_from(folder.path(), 7, begun).expect("removed");
        assert_eq!(names(), kept);
        // On a file system that does not record when files were created, all are taken for new.
        let old = folder.path().join("jit-70.dump");
        if old.metadata().expect("a file").created().is_ok() {
            let later = SystemTime::now() + Duration::from_secs(60);
            remove_from(folder.path(), 70, later).expect("nothing to do");
            assert_eq!(names(), kept);
        }
        write("perf-7.map");
        write("perf-70.map");
        remove_map(folder.path(), 7, begun).expect("removed");
        assert_eq!(names().len(), kept.len() + 1);
        // A link is not followed, and not removed.
        std::os::unix::fs::symlink("app.js", folder.path().join("jit-8.dump")).expect("a link");
        remove_from(folder.path(), 8, begun).expect("nothing to do");
        assert_eq!(names().len(), kept.len() + 2);
    }
}
