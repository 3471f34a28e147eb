//! The object files on disk.

use std::ffi::{CStr, CString, OsStr};
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, renameat, statat, unlinkat};
use rustix::io::{Errno, writev};
use rustix::process::{Resource, getpid, getrlimit};

use crate::error::Cause;

/// How many names are tried for a file until one is free.
const TRIES: u32 = 1000;

/// A file that this process made.
#[derive(Debug)]
pub(crate) struct ObjectFile {
    /// As system calls take it, like the next one.
    path: CString,
    /// Where another version is written.
    beside: CString,
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
        let beside = self.place(&format!(".jit-{}.new", self.pid))?;
        let mut path = self.place(&format!("{stem}.so"))?;
        for number in 2..TRIES {
            match create(&path) {
                Ok(fd) => {
                    let identity = write(&fd, pieces).and_then(|()| identity_of(&fd));
                    if identity.is_err() {
                        let _ = unlinkat(CWD, &*path, AtFlags::empty());
                    }
                    return Ok((ObjectFile { path, beside, identity: identity? }, fd));
                }
                // Of an earlier process of the same number, or of what lay at this address before.
                Err(Errno::EXIST) => path = self.place(&format!("{stem}-{number}.so"))?,
                Err(errno) => return Err(Cause::system("create the object file")(errno)),
            }
        }
        Err(Cause::system("create the object file")(Errno::EXIST))
    }

    /// The path of a file in it.
    fn place(&self, name: &str) -> Result<CString, Cause> {
        CString::new(self.path.join(name).into_os_string().into_vec())
            .map_err(Cause::system("create the object file"))
    }
}

impl ObjectFile {
    pub(crate) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.path.to_bytes()))
    }

    /// Puts another version in its place. `None` if it is not there any more.
    ///
    /// Valgrind may read the old one at any time, so it is never seen half written. It is deleted
    /// before the new one gets its name: file systems that are told to rename over a file write
    /// everything to the disk at once.
    pub(crate) fn replace(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<Option<OwnedFd>, Cause> {
        let (path, beside) = (&*self.path, &*self.beside);
        let found = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map(|stat| identity(&stat));
        if found != Ok(self.identity) {
            return Ok(None);
        }
        let fd = create(beside)
            .or_else(|_| {
                // What a process of the same number left in the middle of this.
                unlinkat(CWD, beside, AtFlags::empty())?;
                create(beside)
            })
            .map_err(Cause::system("create the object file"))?;
        let replaced = write(&fd, pieces).and_then(|()| {
            self.identity = identity_of(&fd)?;
            unlinkat(CWD, path, AtFlags::empty())
                .and_then(|()| renameat(CWD, beside, CWD, path))
                .map_err(Cause::system("replace the object file"))
        });
        if replaced.is_err() {
            let _ = unlinkat(CWD, beside, AtFlags::empty());
        }
        replaced.map(|()| Some(fd))
    }

    /// Deletes it.
    pub(crate) fn remove(&self) {
        let _ = unlinkat(CWD, &*self.path, AtFlags::empty());
    }
}

fn create(path: &CStr) -> Result<OwnedFd, Errno> {
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
    loop {
        match writev(fd, pieces) {
            Err(Errno::INTR) => {}
            // Nothing is written, and no error told, by file systems that never will.
            Ok(0) => return Err(Cause::system("write the object file")(Errno::NOSPC)),
            Ok(written) if written == left => return Ok(()),
            Ok(written) => {
                left = left.saturating_sub(written);
                IoSlice::advance_slices(&mut pieces, written);
            }
            Err(errno) => return Err(Cause::system("write the object file")(errno)),
        }
    }
}
