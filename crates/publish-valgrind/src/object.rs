//! The object files on disk.

use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, renameat, statat, unlinkat};
use rustix::io::{Errno, writev};
use rustix::process::{Resource, getpid, getrlimit};

use crate::error::Cause;

/// How many names are tried for a file until one is free.
const TRIES: u32 = 1000;
/// How many pieces are written at once, at most: Linux takes 1,024.
const PIECES: usize = 512;

/// A file that this process made.
#[derive(Debug)]
pub(crate) struct ObjectFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

/// The folder of the files, and what their names begin with.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    pid: i32,
}

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        // A relative path must outlast a `chdir`.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { path, pid: getpid().as_raw_nonzero().get() }
    }

    /// The child of a fork has files of its own.
    pub(crate) fn forked(&mut self) {
        self.pid = getpid().as_raw_nonzero().get();
    }

    /// Makes a file for the region that begins at `address`.
    pub(crate) fn create(
        &self,
        address: u64,
        pieces: &mut [IoSlice<'_>],
    ) -> Result<(ObjectFile, OwnedFd), Cause> {
        let stem = format!("jit-{}-{address:x}", self.pid);
        let mut path = self.path.join(format!("{stem}.so"));
        for number in 2..TRIES {
            match create(&path) {
                Ok(fd) => {
                    let written = write(&fd, pieces).and_then(|()| {
                        let identity = identity_of(&fd)?;
                        Ok(ObjectFile { path: path.clone(), identity })
                    });
                    if written.is_err() {
                        let _ = unlinkat(CWD, &path, AtFlags::empty());
                    }
                    return written.map(|file| (file, fd));
                }
                // Of an earlier process of the same number, or of what lay at this address before.
                Err(Errno::EXIST) => path = self.path.join(format!("{stem}-{number}.so")),
                Err(errno) => return Err(Cause::system("create the object file")(errno)),
            }
        }
        Err(Cause::system("create the object file")(Errno::EXIST))
    }

    /// Puts a new file in the place of one that was made before. `None` if it is not there any more.
    ///
    /// Valgrind may read the old one at any time, so it is never seen half written. It is deleted
    /// before the new one gets its name: file systems that are told to rename over a file write
    /// everything to the disk at once.
    pub(crate) fn replace(
        &self,
        file: &mut ObjectFile,
        pieces: &mut [IoSlice<'_>],
    ) -> Result<Option<OwnedFd>, Cause> {
        let found = statat(CWD, &file.path, AtFlags::SYMLINK_NOFOLLOW).map(|stat| identity(&stat));
        if found != Ok(file.identity) {
            return Ok(None);
        }
        let beside = self.path.join(format!(".jit-{}.new", self.pid));
        let fd = create(&beside)
            .or_else(|_| {
                // What a process of the same number left in the middle of this.
                unlinkat(CWD, &beside, AtFlags::empty())?;
                create(&beside)
            })
            .map_err(Cause::system("create the object file"))?;
        let replaced = write(&fd, pieces).and_then(|()| {
            file.identity = identity_of(&fd)?;
            unlinkat(CWD, &file.path, AtFlags::empty())
                .and_then(|()| renameat(CWD, &beside, CWD, &file.path))
                .map_err(Cause::system("replace the object file"))
        });
        if replaced.is_err() {
            let _ = unlinkat(CWD, &beside, AtFlags::empty());
        }
        replaced.map(|()| Some(fd))
    }
}

impl ObjectFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Deletes it.
    pub(crate) fn remove(&self) {
        let _ = unlinkat(CWD, &self.path, AtFlags::empty());
    }
}

fn create(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::RUSR | Mode::WUSR)
}

fn identity_of(fd: &OwnedFd) -> Result<(u64, u64), Cause> {
    fstat(fd).map(|stat| identity(&stat)).map_err(Cause::system("examine the object file"))
}

#[allow(clippy::useless_conversion)] // The fields' types differ between machines.
fn identity(stat: &rustix::fs::Stat) -> (u64, u64) {
    (stat.st_dev.into(), stat.st_ino.into())
}

fn write(fd: &OwnedFd, mut pieces: &mut [IoSlice<'_>]) -> Result<(), Cause> {
    let size: usize = pieces.iter().map(|piece| piece.len()).sum();
    let limit = getrlimit(Resource::Fsize).current;
    if limit.is_some_and(|limit| limit < size as u64) {
        return Err(Cause::SizeLimit);
    }
    let mut left = size;
    while left > 0 {
        let some = pieces.len().min(PIECES);
        match writev(fd, &pieces[..some]) {
            Err(Errno::INTR) => {}
            // Nothing is written, and no error told, by file systems that never will.
            Ok(0) => return Err(Cause::system("write the object file")(Errno::NOSPC)),
            Ok(written) => {
                left = left.saturating_sub(written);
                IoSlice::advance_slices(&mut pieces, written);
            }
            Err(errno) => return Err(Cause::system("write the object file")(errno)),
        }
    }
    Ok(())
}
