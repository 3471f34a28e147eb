//! Opening the map, in a folder that everybody may write.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, fchmod, fstat, openat, stat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid, getpid};

use crate::born::before_birth;
use crate::descriptor::Identity;
use crate::error::{Cause, Error};
use crate::file::MapFile;

/// How often to try again when the name is taken or let go between two looks at it.
const TRIES: u32 = 8;

/// What all openings have in common. Should a FIFO or a device get the name between two looks,
/// nothing is waited for and no terminal is acquired.
const GUARDED: OFlags =
    OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// The path of this process's map in `directory`.
///
/// The pid is the one that the process has in its own, innermost namespace: by that one perf
/// looks for the file (the last number of `NStgid`).
pub(crate) fn path_in(directory: &Path) -> PathBuf {
    // A relative path must outlast a `chdir`.
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    directory.join(format!("perf-{}.map", getpid().as_raw_nonzero()))
}

/// Opens the map: a new file, or one that this process has already, of another writer in it or
/// of the time before an `exec`. A file that a dead process of the same number left behind is
/// deleted first.
pub(crate) fn open(path: &Path) -> Result<MapFile, Error> {
    open_or(path).map_err(|cause| Error::new(path, cause))
}

fn open_or(path: &Path) -> Result<MapFile, Cause> {
    for _ in 0..TRIES {
        match create(path) {
            Err(Cause::System { error, .. })
                if error.raw_os_error() == Some(Errno::EXIST.raw_os_error()) => {}
            other => return other,
        }
        // Looked at before it is opened, since opening a device can have effects.
        let Some(there) = examine(path)? else { continue };
        judge(&there)?;
        if is_left_over(&there) {
            match unlinkat(CWD, path, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                Err(errno) => return Err(Cause::system("delete a dead process's file")(errno)),
            }
        }
        let Some(append) = reopen(path, OFlags::WRONLY | OFlags::APPEND)? else { continue };
        let Some(patch) = reopen(path, OFlags::RDWR)? else { continue };
        let opened = fstat(&append).map_err(Cause::system("examine it"))?;
        if Identity::of(&opened) == Identity::of(&there) {
            judge(&opened)?;
            return MapFile::new(append, patch);
        }
    }
    Err(Cause::Contested)
}

/// Makes a file that was not there before.
pub(crate) fn create(path: &Path) -> Result<MapFile, Cause> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | GUARDED;
    let mode = Mode::RUSR | Mode::WUSR;
    let append = openat(CWD, path, flags, mode).map_err(Cause::system("create it"))?;
    let patch = || {
        // A umask could have left us no right to read it.
        fchmod(&append, mode).map_err(Cause::system("set its mode"))?;
        reopen(path, OFlags::RDWR)?.ok_or(Cause::Contested)
    };
    match patch() {
        Ok(patch) => MapFile::new(append, patch),
        Err(cause) => {
            if let Ok(stat) = fstat(&append) {
                remove(path, Identity::of(&stat));
            }
            Err(cause)
        }
    }
}

/// Opens what is there; `None` if nothing is.
fn reopen(path: &Path, access: OFlags) -> Result<Option<OwnedFd>, Cause> {
    match openat(CWD, path, access | GUARDED, Mode::empty()) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP) => Err(Cause::NotRegular),
        Err(errno) => Err(Cause::system("open it")(errno)),
    }
}

/// Looks at what has the name, following no symlink; `None` if nothing has it.
pub(crate) fn examine(path: &Path) -> Result<Option<Stat>, Cause> {
    match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(Cause::system("examine it")(errno)),
    }
}

/// Deletes the file unless another one has its name by now.
pub(crate) fn remove(path: &Path, identity: Identity) {
    if let Ok(Some(there)) = examine(path)
        && Identity::of(&there) == identity
    {
        let _ = unlinkat(CWD, path, AtFlags::empty());
    }
}

/// Whether a file that was there before us may be appended to.
fn judge(stat: &Stat) -> Result<(), Cause> {
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Cause::NotRegular);
    }
    if stat.st_uid != geteuid().as_raw() {
        return Err(Cause::Owner { uid: stat.st_uid });
    }
    if stat.st_nlink > 1 {
        return Err(Cause::Linked);
    }
    let mode = Mode::from_raw_mode(stat.st_mode);
    // A umask of 002, common where each user has a group, lets our own group write.
    let by_group = mode.contains(Mode::WGRP) && stat.st_gid != getegid().as_raw();
    if mode.contains(Mode::WOTH) || by_group {
        return Err(Cause::Writable { mode: mode.bits() });
    }
    Ok(())
}

/// Whether a dead process of the same number left the file behind: it was last written before
/// we were born, and none of our descriptors is of it. The second guards against a clock that
/// was set since: another writer of this process has the file open.
fn is_left_over(there: &Stat) -> bool {
    let seconds = u64::try_from(there.st_mtime).unwrap_or(0);
    let nanoseconds = u32::try_from(there.st_mtime_nsec).unwrap_or(0);
    let written =
        Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanoseconds.into()));
    before_birth().is_some_and(|birth| written < birth) && !is_open_here(Identity::of(there))
}

fn is_open_here(identity: Identity) -> bool {
    let Ok(descriptors) = std::fs::read_dir("/proc/self/fd") else { return true };
    descriptors.flatten().any(|fd| {
        // The link is a kernel one: to follow it examines the open file, whatever its name.
        stat(fd.path()).is_ok_and(|stat| Identity::of(&stat) == identity)
    })
}
