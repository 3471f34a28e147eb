//! The file of a segment.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use fallible::PathText;
use guest::{OwnFile, file_size_limit};
use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, fallocate, openat, unlinkat};
use rustix::io::{Errno, pwrite};

use crate::error::Error;
use crate::options::Options;
use crate::sweep;

/// Number of names that are tried until one is free.
const TRIES: u32 = 10_000;

/// A file that only this user can access.
#[derive(Debug)]
pub(crate) struct File {
    file: OwnFile,
    pub(crate) path: PathText,
}

impl File {
    /// Creates a new file, without replacing any.
    pub(crate) fn create(options: &Options) -> Result<Self, Error> {
        // A relative path must stay valid after a `chdir`, and a loader takes one without a slash for a library name.
        let directory = options.directory.as_ref().filter(|_| !options.is_refused);
        let directory = directory.and_then(PathText::absolute);
        let no_memory = || Error::new(Path::new(""), "find the directory", Errno::NOMEM);
        let directory = directory.ok_or_else(no_memory)?;
        let pid = std::process::id();
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for number in 1..TRIES {
            let name = fallible::attempt(|| fallible::text!("code-{pid}-{number}.so")).ok();
            let path = name.and_then(|name| directory.join(&*name)).ok_or_else(no_memory)?;
            match openat(CWD, path.as_c_str(), flags, Mode::RUSR | Mode::WUSR) {
                Ok(fd) => {
                    sweep::hold(&fd);
                    return match OwnFile::new(fd) {
                        Ok(file) => Ok(Self { file, path }),
                        Err(error) => {
                            remove(&path);
                            Err(Error::new(path.as_path(), "examine the file", error))
                        }
                    };
                }
                // It belongs to another segment, or to an earlier process with the same pid.
                Err(Errno::EXIST) => {}
                Err(error) => return Err(Error::new(path.as_path(), "create the file", error)),
            }
        }
        Err(Error::new(directory.as_path(), "create the file", Errno::EXIST))
    }

    /// The file's descriptor, unless someone else in the process has closed it.
    pub(crate) fn fd(&self) -> Result<BorrowedFd<'_>, Errno> {
        self.file.get().ok_or(Errno::BADF)
    }

    /// Ensures that `size` bytes from `at` on permanently have disk space: a store to a mapping without it raises a
    /// signal.
    pub(crate) fn back(&self, at: usize, size: usize) -> Result<(), Errno> {
        let end = at.saturating_add(size) as u64;
        // Growing beyond this limit raises a signal, too.
        if file_size_limit().is_some_and(|limit| end > limit) {
            return Err(Errno::FBIG);
        }
        if let Some(file) = self.file.get() {
            return allocate(file, at, size);
        }
        // A host that closes all descriptors has closed ours. The file may still have its name.
        let file = self.file.open_at(self.path.as_c_str()).ok_or(Errno::BADF)?;
        allocate(file.as_fd(), at, size)
    }

    pub(crate) fn remove(&self) {
        remove(&self.path);
    }
}

fn remove(path: &PathText) {
    let _ = unlinkat(CWD, path.as_c_str(), AtFlags::empty());
}

fn allocate(file: BorrowedFd<'_>, at: usize, size: usize) -> Result<(), Errno> {
    loop {
        let done = fallocate(file, FallocateFlags::empty(), at as u64, size as u64);
        match done {
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::ACCESS) => {
                return write_zeros(file, at, size);
            }
            done => return done,
        }
    }
}

fn write_zeros(file: BorrowedFd<'_>, mut at: usize, mut size: usize) -> Result<(), Errno> {
    let zeros = [0; 4096];
    while size > 0 {
        let part = zeros.get(..size).unwrap_or(&zeros);
        match pwrite(file, part, at as u64) {
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
