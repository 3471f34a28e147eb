//! A descriptor that other code in the process may have closed.

use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

use rustix::fs::{Stat, fstat};

use crate::error::Cause;

/// The identity of a file, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub fn of(stat: &Stat) -> Self {
        Identity { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// An open file that is closed in the end only if it is still ours.
///
/// Programs that daemonize close all descriptors, and the numbers are reused. Closing a reused
/// number would close a file of the host. Closing an unused number makes the standard library
/// abort, where it checks.
#[derive(Debug)]
pub(crate) struct Descriptor {
    /// `None` only while it is being closed.
    fd: Option<OwnedFd>,
    identity: Identity,
}

impl Descriptor {
    pub fn new(fd: OwnedFd) -> Result<Self, Cause> {
        let stat = fstat(&fd).map_err(Cause::system("examine it"))?;
        // A program that closes all descriptors opens its next files under the lowest numbers.
        // Under this one, there is no file then, and a write that was not preceded by a check
        // fails.
        let fd = guest::moved_out_of_the_way(fd);
        Ok(Descriptor { fd: Some(fd), identity: Identity::of(&stat) })
    }

    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The descriptor, whether it is still ours or not.
    pub fn get(&self) -> Result<BorrowedFd<'_>, Cause> {
        self.fd.as_ref().map(AsFd::as_fd).ok_or(Cause::Descriptor)
    }

    /// The file's current status, if the descriptor is still ours.
    pub fn examine(&self) -> Result<Stat, Cause> {
        let stat = fstat(self.get()?).map_err(|_| Cause::Descriptor)?;
        if Identity::of(&stat) == self.identity { Ok(stat) } else { Err(Cause::Descriptor) }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        let ours = self.examine().is_ok();
        if let Some(fd) = self.fd.take()
            && !ours
        {
            let _ = fd.into_raw_fd();
        }
    }
}
