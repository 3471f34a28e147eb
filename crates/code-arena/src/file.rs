//! The file of a segment.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, fallocate, openat, unlinkat};
use rustix::io::{Errno, pwrite};
use rustix::process::{Resource, getpid, getrlimit};

use crate::error::Error;
use crate::sweep;

/// How many names are tried until one is free.
const TRIES: u32 = 10_000;

/// A file of this user alone.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) fd: OwnedFd,
    pub(crate) path: PathBuf,
}

impl File {
    /// A new file, in the place of none.
    pub(crate) fn create(directory: &Path) -> Result<Self, Error> {
        // A relative path must outlast a `chdir`, and a loader takes one without a slash for a name.
        let directory = std::path::absolute(directory)
            .map_err(|error| Error::new(directory, "find the directory", error))?;
        let pid = getpid().as_raw_nonzero();
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut path = directory.clone();
        for number in 1..TRIES {
            path = directory.join(format!("code-{pid}-{number}.so"));
            match openat(CWD, &path, flags, Mode::RUSR | Mode::WUSR) {
                Ok(fd) => {
                    sweep::hold(&fd);
                    return Ok(Self { fd, path });
                }
                // Another segment's, or of an earlier process of the same number.
                Err(Errno::EXIST) => {}
                Err(error) => return Err(Error::new(&path, "create the file", error)),
            }
        }
        Err(Error::new(&path, "create the file", Errno::EXIST))
    }

    /// Sees to it that `size` bytes from `at` on have disk space, for ever: a store to a mapping without is a signal.
    pub(crate) fn back(&self, at: usize, size: usize) -> Result<(), Errno> {
        let end = at.saturating_add(size) as u64;
        // Growing beyond this limit is a signal too.
        if getrlimit(Resource::Fsize).current.is_some_and(|limit| end > limit) {
            return Err(Errno::FBIG);
        }
        loop {
            let done = fallocate(&self.fd, FallocateFlags::empty(), at as u64, size as u64);
            match done {
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return self.write_zeros(at, size),
                done => return done,
            }
        }
    }

    fn write_zeros(&self, mut at: usize, mut size: usize) -> Result<(), Errno> {
        let zeros = [0; 4096];
        while size > 0 {
            let part = zeros.get(..size).unwrap_or(&zeros);
            match pwrite(&self.fd, part, at as u64) {
                Err(Errno::INTR) => {}
                Ok(0) => return Err(Errno::NOSPC),
                Ok(written) => {
                    at = at.saturating_add(written);
                    size = size.saturating_sub(written);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(crate) fn remove(&self) {
        let _ = unlinkat(CWD, &self.path, AtFlags::empty());
    }
}
