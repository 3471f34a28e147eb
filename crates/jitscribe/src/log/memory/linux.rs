//! Linux.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

pub(crate) use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

pub(crate) use super::backing::Backing;

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Maps `size` bytes of a backing. Nothing is read or written yet.
pub(crate) fn map(backing: &Backing, size: usize) -> Result<NonNull<u8>, Errno> {
    // SAFETY: a new mapping at an address of the kernel's choice replaces nothing.
    let base = unsafe { map_at(ptr::null_mut(), backing, size, MapFlags::SHARED) }?;
    // Room for a log that never comes is not for core files. Older kernels know no such wish.
    // SAFETY: advice about just that mapping, which changes no content.
    let _ = unsafe { madvise(base, size, Advice::LinuxDontDump) };
    NonNull::new(base.cast()).ok_or(Errno::NOMEM)
}

/// Puts another backing in the place of what is mapped, at once for all threads.
///
/// # Safety
/// The range is a mapping of the caller's, in which nobody relies on values.
pub(crate) unsafe fn replace(
    base: NonNull<u8>,
    size: usize,
    backing: &Backing,
) -> Result<(), Errno> {
    let flags = MapFlags::SHARED | MapFlags::FIXED;
    // SAFETY: the caller's promise.
    unsafe { map_at(base.as_ptr().cast(), backing, size, flags) }.map(drop)
}

/// # Safety
/// As for `mmap`.
unsafe fn map_at(
    at: *mut c_void,
    backing: &Backing,
    size: usize,
    flags: MapFlags,
) -> Result<*mut c_void, Errno> {
    // SAFETY: the caller's promise.
    unsafe {
        match backing.fd() {
            Some(file) => mmap(at, size, READ_WRITE, flags, file.as_fd(), 0),
            None => mmap_anonymous(at, size, READ_WRITE, flags | MapFlags::NORESERVE),
        }
    }
}

/// Memory of zeros that is this process's alone, and taken when it is touched. The child of a fork has a copy.
pub(crate) fn zeros(size: usize) -> Result<NonNull<u8>, Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice replaces nothing.
    let base = unsafe { mmap_anonymous(ptr::null_mut(), size, READ_WRITE, flags) }?;
    NonNull::new(base.cast()).ok_or(Errno::NOMEM)
}

/// Gives memory back.
///
/// # Safety
/// It is all that [`map`] or [`zeros`] gave, and nobody uses it.
pub(crate) unsafe fn give_back(base: NonNull<u8>, size: usize) {
    // SAFETY: the caller's promise.
    let _ = unsafe { munmap(base.as_ptr().cast(), size) };
}

/// Sees to it that there is memory behind whole pages of what [`map`] gave, for ever, and in core files.
///
/// # Safety
/// They lie in it.
pub(crate) unsafe fn have(
    backing: &Backing,
    base: NonNull<u8>,
    at: usize,
    length: usize,
) -> Result<(), Errno> {
    backing.grow(at, length)?;
    // SAFETY: the caller's promise; the advice changes no content. Kernels that cannot do it do without.
    let _ = unsafe { madvise(base.add(at).as_ptr().cast(), length, Advice::LinuxDoDump) };
    Ok(())
}

/// Has pages made at once, for speed. An error says that they cannot be had, which of anonymous memory nothing else says.
///
/// # Safety
/// As for [`have`].
pub(crate) unsafe fn populate(base: NonNull<u8>, at: usize, length: usize) -> Result<(), Errno> {
    // SAFETY: as in `have`.
    let made = unsafe { madvise(base.add(at).as_ptr().cast(), length, Advice::LinuxPopulateWrite) };
    match made {
        Err(error @ (Errno::NOMEM | Errno::FAULT | Errno::HWPOISON)) => Err(error),
        // Older kernels.
        _ => Ok(()),
    }
}

/// A page that the kernel clears in the child of a fork.
#[derive(Debug)]
pub(crate) struct ForkPage(NonNull<u8>);

// SAFETY: the page stays for ever and is used by atomics alone.
unsafe impl Send for ForkPage {}
// SAFETY: as above.
unsafe impl Sync for ForkPage {}

impl ForkPage {
    pub(crate) fn new() -> Result<Self, Errno> {
        let size = rustix::param::page_size();
        // SAFETY: a new mapping at an address of the kernel's choice, and advice about just that.
        let base = unsafe {
            let base = mmap_anonymous(ptr::null_mut(), size, READ_WRITE, MapFlags::PRIVATE)?;
            if let Err(error) = madvise(base, size, Advice::LinuxWipeOnFork) {
                let _ = munmap(base, size);
                return Err(error);
            }
            base
        };
        NonNull::new(base.cast::<u8>()).map(Self).ok_or(Errno::NOMEM)
    }

    pub(crate) fn word(&self) -> &AtomicU32 {
        // SAFETY: the page is aligned, stays for ever and is used by atomics alone.
        unsafe { AtomicU32::from_ptr(self.0.as_ptr().cast::<u32>()) }
    }
}

/// Has the descriptor `old` stand for the file of `new` from now on.
pub(crate) fn redirect(old: &OwnedFd, new: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: the descriptor stays open and stays owned by `old`: this second owner is never dropped.
    let mut same = std::mem::ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(old.as_raw_fd()) });
    rustix::io::dup3(new, &mut same, rustix::io::DupFlags::CLOEXEC)
}

/// The executable mapping of a dump's first page, by which perf learns of the file.
///
/// It stays for ever: `perf record -p` finds it only while it is there.
pub(crate) fn map_marker(file: &OwnedFd) -> Result<(), Errno> {
    let size = rustix::param::page_size();
    let protection = ProtFlags::READ | ProtFlags::EXEC;
    // SAFETY: a new mapping at an address of the kernel's choice, which nobody reads or runs.
    unsafe { mmap(ptr::null_mut(), size, protection, MapFlags::PRIVATE, file.as_fd(), 0) }.map(drop)
}
