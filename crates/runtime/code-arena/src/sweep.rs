//! Removes files that arenas of dead processes left in a directory.
//!
//! Not every process that uses the directory is visible (it may be in another pid namespace). So whether a process is dead is
//! detected with a lock on its file, which the kernel releases when the last process that has the file open from it ends.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::time::{Duration, SystemTime};

use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RawDir, Stat, flock, fstat, openat,
    statat, unlinkat,
};
use rustix::process::geteuid;

/// Maximum number of names to check, so that a full directory does not delay the runtime.
const MOST: usize = 10_000;
/// Younger files stay: another process may not have locked them yet.
const LEAST: Duration = Duration::from_secs(60);

/// Marks the file as used by a process.
pub(crate) fn hold(file: &OwnedFd) {
    // If locks are not supported, no process sweeps either.
    let _ = flock(file, FlockOperation::NonBlockingLockShared);
}

/// Removes files of this user that no process has locked, and that were not written to for `age`. Errors are ignored.
pub(crate) fn sweep(directory: &CStr, age: Duration) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = openat(CWD, directory, flags, Mode::empty()) else { return };
    let mut region = [MaybeUninit::uninit(); 4096];
    let mut names = RawDir::new(&folder, &mut region);
    for _ in 0..MOST {
        let Some(Ok(entry)) = names.next() else { return };
        if is_ours(entry.file_name().to_bytes()) {
            let _ = look(&folder, entry.file_name(), age.max(LEAST));
        }
    }
}

/// Whether the name has the form `code-PID-NUMBER.so`.
fn is_ours(name: &[u8]) -> bool {
    let middle = name.strip_prefix(b"code-").and_then(|rest| rest.strip_suffix(b".so"));
    let Some(middle) = middle else { return false };
    let mut numbers = middle.split(|byte| *byte == b'-');
    let is_number = |part: Option<&[u8]>| {
        part.is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
    };
    is_number(numbers.next()) && is_number(numbers.next()) && numbers.next().is_none()
}

/// Removes a file, if it is due.
fn look(folder: &OwnedFd, name: &std::ffi::CStr, age: Duration) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty())?;
    let found = fstat(&file)?;
    if !is_a_file_of_ours(&found) || !is_older(&found, age) {
        return Ok(());
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    // While we have the lock, no other process uses the name for this file. Is it still the same file?
    let named = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if (named.st_dev, named.st_ino) == (found.st_dev, found.st_ino) {
        unlinkat(folder, name, AtFlags::empty())?;
    }
    Ok(())
}

fn is_a_file_of_ours(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && found.st_uid == geteuid().as_raw()
        && found.st_nlink == 1
}

fn is_older(found: &Stat, age: Duration) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let written = u64::try_from(found.st_mtime).unwrap_or(0);
    now.as_secs().saturating_sub(written) > age.as_secs()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use super::{hold, is_ours, sweep};

    #[test]
    fn own_file_names_are_recognised() {
        for name in [&b"code-1-2.so"[..], b"code-1234-10.so"] {
            assert!(is_ours(name));
        }
        for name in [
            &b"code-1.so"[..],
            b"code--1.so",
            b"code-1-2.so.1",
            b"code-1-2-3.so",
            b"code-a-1.so",
            b"",
        ] {
            assert!(!is_ours(name), "{name:?}");
        }
    }

    fn path(path: &Path) -> std::ffi::CString {
        std::ffi::CString::new(path.to_str().unwrap()).unwrap()
    }

    fn made(folder: &Path, name: &str, hours: u64) -> File {
        let file = File::create(folder.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(hours * 3600)).unwrap();
        file
    }

    #[test]
    fn only_old_files_without_a_process_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        made(folder.path(), "code-1-1.so", 30);
        made(folder.path(), "code-1-2.so", 20);
        made(folder.path(), "other-1-1.so", 30);
        // The file of a live process, not written to for long.
        let held = std::os::fd::OwnedFd::from(made(folder.path(), "code-2-1.so", 30));
        hold(&held);
        // A symlink that another user put there to have something else removed.
        made(folder.path(), "target", 30);
        symlink(at("target"), at("code-3-1.so")).unwrap();
        fs::create_dir(at("code-4-1.so")).unwrap();
        made(folder.path(), "linked", 30);
        fs::hard_link(at("linked"), at("code-5-1.so")).unwrap();
        let left = |age: u64| {
            sweep(&path(folder.path()), Duration::from_secs(age * 3600));
            let names = fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let all = ["code-1-2.so", "code-2-1.so", "code-3-1.so", "code-4-1.so", "code-5-1.so"];
        let others = ["linked", "other-1-1.so", "target"];
        assert_eq!(left(24), [&all[..], &others].concat());
        assert_eq!(left(1), [&all[1..], &others].concat());
        drop(held);
        assert_eq!(left(1), [&all[2..], &others].concat());
        sweep(c"/nowhere/at/all", Duration::ZERO);
    }
}
