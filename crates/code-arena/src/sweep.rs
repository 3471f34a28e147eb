//! What arenas of processes that are gone left in a directory.
//!
//! Not every process of the directory can be seen from here (it may be in another pid namespace), so that a process is gone is
//! told by a lock on its file, which the kernel opens when the last process that has the file from it ends.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, openat, statat,
    unlinkat,
};
use rustix::process::geteuid;

/// So many names are looked at, lest a full directory takes the runtime long.
const MOST: usize = 10_000;
/// What is younger stays: it may be somebody's who has not locked it yet.
const LEAST: Duration = Duration::from_secs(60);

/// Says that a process of ours has the file.
pub(crate) fn hold(file: &OwnedFd) {
    // Where there are no locks, nobody sweeps either.
    let _ = flock(file, FlockOperation::NonBlockingLockShared);
}

/// Removes files of this user's that nobody has, and that were not written to for so long. What cannot be done is left.
pub(crate) fn sweep(directory: &Path, age: Duration) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = openat(CWD, directory, flags, Mode::empty()) else { return };
    let Ok(names) = Dir::read_from(&folder) else { return };
    for entry in names.take(MOST) {
        let Ok(entry) = entry else { return };
        if is_ours(entry.file_name().to_bytes()) {
            let _ = look(&folder, entry.file_name(), age.max(LEAST));
        }
    }
}

/// `code-PID-NUMBER.so`?
fn is_ours(name: &[u8]) -> bool {
    let middle = name.strip_prefix(b"code-").and_then(|rest| rest.strip_suffix(b".so"));
    let Some(middle) = middle else { return false };
    let mut numbers = middle.split(|byte| *byte == b'-');
    let is_number = |part: Option<&[u8]>| {
        part.is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
    };
    is_number(numbers.next()) && is_number(numbers.next()) && numbers.next().is_none()
}

/// Removes one, if it is to be.
fn look(folder: &OwnedFd, name: &std::ffi::CStr, age: Duration) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty())?;
    let found = fstat(&file)?;
    if !is_a_file_of_ours(&found) || !is_older(&found, age) {
        return Ok(());
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    // With the lock, nobody else takes the name for this file's; still the same?
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
    fn names_are_told_from_others() {
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

    fn made(folder: &Path, name: &str, hours: u64) -> File {
        let file = File::create(folder.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(hours * 3600)).unwrap();
        file
    }

    #[test]
    fn what_is_old_and_nobodys_goes_and_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        made(folder.path(), "code-1-1.so", 30);
        made(folder.path(), "code-1-2.so", 20);
        made(folder.path(), "other-1-1.so", 30);
        // That of a process that lives, and was not written to for long.
        let held = std::os::fd::OwnedFd::from(made(folder.path(), "code-2-1.so", 30));
        hold(&held);
        // What somebody else put there, to have something else removed.
        made(folder.path(), "target", 30);
        symlink(at("target"), at("code-3-1.so")).unwrap();
        fs::create_dir(at("code-4-1.so")).unwrap();
        made(folder.path(), "linked", 30);
        fs::hard_link(at("linked"), at("code-5-1.so")).unwrap();
        let left = |age: u64| {
            sweep(folder.path(), Duration::from_secs(age * 3600));
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
        sweep(Path::new("/nowhere/at/all"), Duration::ZERO);
    }
}
