//! Opens the map, in a directory to which everybody may write.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use fallible::PathText;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat, fchmod, fstat, openat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid, getpid};

use crate::descriptor::Identity;
use crate::error::{Cause, Error};
use crate::file::{MapFile, Origin};
use crate::options::Options;
use crate::process_start::earliest_write_time;

/// Number of attempts if the name is taken or freed between two checks.
const TRIES: u32 = 8;

/// Common flags. If a FIFO or a device takes the name between two checks, opening does not block
/// and does not acquire a terminal.
const GUARDED: OFlags =
    OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// The path of this process's map in `directory`.
///
/// The pid is that of the process's innermost namespace: perf looks for the file under this number
/// (the last one of `NStgid`).
pub(crate) fn path_in(options: &Options) -> Result<PathText, Error> {
    let path = || {
        if options.is_refused {
            return None;
        }
        let name = fallible::attempt(|| fallible::text!("perf-{}.map", getpid().as_raw_nonzero()));
        let name = name.ok()?;
        match &options.directory {
            // A relative path must stay valid after a `chdir`.
            Some(directory) => directory.absolute()?.join(&*name),
            None => PathText::new("/tmp")?.join(&*name),
        }
    };
    path().ok_or_else(|| Error::new(Path::new(""), Cause::Memory))
}

/// Opens the map: a new file, or one that already belongs to this process, from another writer or
/// from before an `exec`. A file that a dead process with the same pid left behind is deleted
/// first.
pub(crate) fn open(path: &PathText) -> Result<MapFile, Error> {
    open_or(path).map_err(|cause| Error::new(path.as_path(), cause))
}

fn open_or(path: &PathText) -> Result<MapFile, Cause> {
    for _ in 0..TRIES {
        match create(path) {
            Err(Cause::System { error, .. })
                if error.raw_os_error() == Some(Errno::EXIST.raw_os_error()) => {}
            other => return other,
        }
        // Checked before it is opened, because opening a device can have side effects.
        let Some(there) = examine(path)? else { continue };
        judge(&there)?;
        if is_left_over(&there) {
            match unlinkat(CWD, path.as_c_str(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                Err(errno) => return Err(Cause::system("delete a dead process's file")(errno)),
            }
        }
        let Some(append) = reopen(path, OFlags::WRONLY | OFlags::APPEND)? else { continue };
        let Some(patch) = reopen(path, OFlags::RDWR)? else { continue };
        let opened = fstat(&append).map_err(Cause::system("examine it"))?;
        if Identity::of(&opened) == Identity::of(&there) {
            judge(&opened)?;
            return MapFile::new(append, patch, Origin::Existing);
        }
    }
    Err(Cause::Contested)
}

/// Creates a new file.
pub(crate) fn create(path: &PathText) -> Result<MapFile, Cause> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | GUARDED;
    let mode = Mode::RUSR | Mode::WUSR;
    let append = openat(CWD, path.as_c_str(), flags, mode).map_err(Cause::system("create it"))?;
    let patch = || {
        // The umask may have left us no right to read it.
        fchmod(&append, mode).map_err(Cause::system("set its mode"))?;
        reopen(path, OFlags::RDWR)?.ok_or(Cause::Contested)
    };
    match patch() {
        Ok(patch) => MapFile::new(append, patch, Origin::New),
        Err(cause) => {
            if let Ok(stat) = fstat(&append) {
                remove(path, Identity::of(&stat));
            }
            Err(cause)
        }
    }
}

/// Opens an existing file; `None` if there is none.
fn reopen(path: &PathText, access: OFlags) -> Result<Option<OwnedFd>, Cause> {
    match openat(CWD, path.as_c_str(), access | GUARDED, Mode::empty()) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP) => Err(Cause::NotRegular),
        Err(errno) => Err(Cause::system("open it")(errno)),
    }
}

/// The status of whatever has the name, without following symlinks; `None` if nothing has it.
pub(crate) fn examine(path: &PathText) -> Result<Option<Stat>, Cause> {
    match statat(CWD, path.as_c_str(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(Cause::system("examine it")(errno)),
    }
}

/// Deletes the file, unless its name now belongs to another one.
pub(crate) fn remove(path: &PathText, identity: Identity) {
    if let Ok(Some(there)) = examine(path)
        && Identity::of(&there) == identity
    {
        let _ = unlinkat(CWD, path.as_c_str(), AtFlags::empty());
    }
}

/// Checks whether an existing file may be appended to.
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

/// Whether a dead process with the same pid left the file behind: it was last written before this
/// process started, and none of our descriptors refers to it. The second condition covers a changed
/// clock: another writer of this process has the file open.
fn is_left_over(there: &Stat) -> bool {
    let seconds = u64::try_from(there.st_mtime).unwrap_or(0);
    let nanoseconds = u32::try_from(there.st_mtime_nsec).unwrap_or(0);
    let written =
        Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanoseconds.into()));
    earliest_write_time().is_some_and(|birth| written < birth) && !is_open_here(Identity::of(there))
}

fn is_open_here(identity: Identity) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = openat(CWD, c"/proc/self/fd", flags, Mode::empty()) else { return true };
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut descriptors = RawDir::new(&folder, &mut buffer);
    while let Some(Ok(fd)) = descriptors.next() {
        // This is a magic link: following it examines the open file, whatever its name.
        if statat(&folder, fd.file_name(), AtFlags::empty())
            .is_ok_and(|stat| Identity::of(&stat) == identity)
        {
            return true;
        }
    }
    false
}
