//! A descriptor that the host may have closed, and whose number may now belong to a file of the host.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{
    AtomicI32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use rustix::fs::{Mode, OFlags, Stat, fstat, open};
use rustix::io::Errno;
#[cfg(target_os = "linux")]
use rustix::io::{DupFlags, dup3};
#[cfg(not(target_os = "linux"))]
use rustix::io::{FdFlags, dup2, fcntl_setfd};

use crate::descriptor::moved_out_of_the_way;

/// A file that this library opened, identified by its device and inode instead of its descriptor's number.
///
/// Daemons close all descriptors that they find, and the kernel reuses the numbers. So each use checks whether the number still
/// belongs to the file. Between this check and the use, another thread can still close the number and open a file of its own
/// under it; only a use that needs no descriptor avoids that.
#[derive(Debug)]
pub struct OwnFile {
    number: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
    /// The identity before [`Self::become_file`]: a child that borrows its parent's memory (vfork) changes this value, but not
    /// the parent's descriptors.
    before: (AtomicU64, AtomicU64),
}

/// No descriptor.
const NONE: RawFd = -1;

impl OwnFile {
    /// Takes over an open file, and moves its descriptor to a number that is [out of the program's way](crate::high_descriptor).
    ///
    /// # Errors
    /// If the system does not report the file's identity.
    pub fn new(file: OwnedFd) -> Result<Self, Errno> {
        let file = moved_out_of_the_way(file);
        let (device, inode) = identity(&fstat(&file)?);
        Ok(Self {
            number: AtomicI32::new(file.into_raw_fd()),
            device: AtomicU64::new(device),
            inode: AtomicU64::new(inode),
            before: (AtomicU64::new(device), AtomicU64::new(inode)),
        })
    }

    /// The descriptor, if its number still belongs to the file.
    #[must_use]
    pub fn get(&self) -> Option<BorrowedFd<'_>> {
        self.open().filter(|file| fstat(file).is_ok_and(|stat| self.is_of(&stat)))
    }

    /// The descriptor, whatever its number belongs to.
    fn open(&self) -> Option<BorrowedFd<'_>> {
        let number = self.number.load(Acquire);
        if number == NONE {
            return None;
        }
        // SAFETY: the number is not -1, and this value does not close it while it is borrowed. If someone else in the process
        // has closed it, the system reports that there is no such descriptor, or the identity of another file.
        Some(unsafe { BorrowedFd::borrow_raw(number) })
    }

    /// Opens the file again by one of its names; `None` if there is no file of that name, or another one.
    #[must_use]
    pub fn open_at(&self, path: &CStr) -> Option<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = open(path, flags, Mode::empty()).ok()?;
        let is_same = fstat(&file).is_ok_and(|stat| self.is_of(&stat));
        is_same.then_some(file)
    }

    /// Makes this value refer to the file of `new`: under the same number, if that still belongs to the old file; otherwise the
    /// number is left alone, and the new file keeps its own.
    ///
    /// For the child of a fork, while it has only one thread.
    pub fn become_file(&self, new: Self) {
        let number = new.number.swap(NONE, Relaxed);
        let was = (self.before.0.load(Relaxed), self.before.1.load(Relaxed));
        let is_ours = |stat: &Stat| self.is_of(stat) || identity(stat) == was;
        let old = self.open().filter(|file| fstat(file).is_ok_and(|stat| is_ours(&stat)));
        if let Some(old) = old.map(|file| file.as_raw_fd()) {
            // SAFETY: both are open, and have no other owner: the one belongs to `new`, the other to this value.
            let (file, mut place) =
                unsafe { (OwnedFd::from_raw_fd(number), OwnedFd::from_raw_fd(old)) };
            let done = put_in_place(&file, &mut place);
            // This value keeps the number.
            let _ = place.into_raw_fd();
            if done.is_err() {
                // It keeps its own, high number. The old file is not needed any more, but its number may be known to others.
                self.number.store(file.into_raw_fd(), Relaxed);
            }
        } else {
            self.number.store(number, Relaxed);
        }
        let inode = self.inode.swap(new.inode.load(Relaxed), Relaxed);
        let device = self.device.swap(new.device.load(Relaxed), Release);
        self.before.0.store(device, Relaxed);
        self.before.1.store(inode, Relaxed);
    }

    fn is_of(&self, stat: &Stat) -> bool {
        identity(stat) == (self.device.load(Relaxed), self.inode.load(Relaxed))
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        if let Some(file) = self.get().map(|file| file.as_raw_fd()) {
            // SAFETY: it belongs to this value, which ends here.
            drop(unsafe { OwnedFd::from_raw_fd(file) });
        }
    }
}

/// Makes `place` a descriptor of `file`.
#[cfg(target_os = "linux")]
fn put_in_place(file: &OwnedFd, place: &mut OwnedFd) -> Result<(), Errno> {
    dup3(file, place, DupFlags::CLOEXEC)
}

/// Where `dup3` does not exist. The child has only one thread, so that no other one can start a program in between.
#[cfg(not(target_os = "linux"))]
fn put_in_place(file: &OwnedFd, place: &mut OwnedFd) -> Result<(), Errno> {
    dup2(file, place)?;
    fcntl_setfd(place, FdFlags::CLOEXEC)
}

#[allow(clippy::unnecessary_cast, reason = "their types differ from system to system")]
fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}
