//! The file behind a log, and its growth.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, fallocate, fcntl_add_seals, memfd_create,
    open,
};
use rustix::io::{Errno, fcntl_dupfd_cloexec, pwrite};
use rustix::process::{Resource, getrlimit};

use super::Failure;

/// What the log lies in.
#[derive(Debug)]
pub(crate) enum Backing {
    /// A memfd: seen in the process's list of files, nowhere else.
    Memory(OwnedFd),
    /// A file, for tools that read dumps.
    File(OwnedFd, PathBuf),
    /// Shared anonymous memory, where there is no memfd to be had: seen in the list of mappings.
    Anonymous,
}

impl Backing {
    /// A memfd that can grow and not shrink, so that readers may map it.
    pub(crate) fn memory() -> Result<Self, Failure> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Since Linux 6.3 systems can ask for this flag; before, it is an invalid one.
        let file = memfd_create("jitscribe", flags | MemfdFlags::NOEXEC_SEAL)
            .or_else(|_| memfd_create("jitscribe", flags))
            .map_err(|cause| Failure { what: "memfd_create".to_owned(), cause })?;
        let file = out_of_the_way(file);
        // Without the seal readers copy instead of mapping.
        let _ = fcntl_add_seals(&file, SealFlags::SHRINK);
        Ok(Self::Memory(file))
    }

    /// A new file of this user alone, through no link, in the place of none.
    pub(crate) fn file(path: &Path) -> Result<Self, Failure> {
        let failure = |cause| Failure { what: path.display().to_string(), cause };
        let name =
            CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| failure(Errno::INVAL))?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = open(name.as_c_str(), flags, Mode::RUSR | Mode::WUSR).map_err(failure)?;
        Ok(Self::File(out_of_the_way(file), path.to_owned()))
    }

    /// Memory to be had where [`Self::memory`] is not.
    pub(crate) fn instead() -> Option<Self> {
        Some(Self::Anonymous)
    }

    pub(crate) fn fd(&self) -> Option<&OwnedFd> {
        match self {
            Self::Memory(file) | Self::File(file, _) => Some(file),
            Self::Anonymous => None,
        }
    }

    /// Sees to it that `length` bytes from `at` on have memory or disk behind them, for ever: a store
    /// to a shared mapping without is a signal.
    pub(crate) fn grow(&self, at: usize, length: usize) -> Result<(), Errno> {
        let Some(file) = self.fd() else { return Ok(()) };
        let end = (at + length) as u64;
        // Growing beyond this limit is a signal too.
        if getrlimit(Resource::Fsize).current.is_some_and(|limit| end > limit) {
            return Err(Errno::FBIG);
        }
        match retry(|| fallocate(file, FallocateFlags::empty(), at as u64, length as u64)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(file, at as u64, length),
            done => done,
        }
    }
}

/// Gives a descriptor a high number, or the highest that the process's limit allows.
fn out_of_the_way(file: OwnedFd) -> OwnedFd {
    let high = [in_process::high_descriptor(), 200, 10];
    let moved = high.into_iter().find_map(|least| fcntl_dupfd_cloexec(&file, least).ok());
    moved.unwrap_or(file)
}

fn write_zeros(file: &OwnedFd, mut at: u64, mut length: usize) -> Result<(), Errno> {
    let zeros = [0; 4096];
    while length > 0 {
        let part = zeros.get(..length).unwrap_or(&zeros);
        let written = retry(|| pwrite(file, part, at))?;
        if written == 0 {
            return Err(Errno::NOSPC);
        }
        at += written as u64;
        length = length.saturating_sub(written);
    }
    Ok(())
}

/// Calls again when a signal came in between.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}
