//! Memory on Linux.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

pub(crate) use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap, mmap_anonymous, mremap, munmap,
};

pub(crate) use super::backing::Backing;
use super::backing::retry;

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Maps `size` bytes of a backing. Nothing is read or written yet.
pub(crate) fn map(backing: &Backing, size: usize) -> Result<NonNull<u8>, Errno> {
    // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
    let base = unsafe { map_at(ptr::null_mut(), backing, size, MapFlags::SHARED) }?;
    // Exclude unused space of the log from core files. Older kernels do not support this.
    // SAFETY: advice about just that mapping, which changes no content.
    let _ = unsafe { madvise(base, size, Advice::LinuxDontDump) };
    hide(base.addr(), size);
    NonNull::new(base.cast()).ok_or(Errno::NOMEM)
}

/// Replaces the backing of a mapping, atomically for all threads.
///
/// # Safety
/// The range is a mapping of the caller, and no code relies on values in it.
pub(crate) unsafe fn replace(
    base: NonNull<u8>,
    size: usize,
    backing: &Backing,
) -> Result<(), Errno> {
    let flags = MapFlags::SHARED | MapFlags::FIXED;
    // SAFETY: guaranteed by the caller.
    unsafe { map_at(base.as_ptr().cast(), backing, size, flags) }?;
    hide(base.addr().get(), size);
    Ok(())
}

/// Under Valgrind, gives an empty file its first page: Valgrind 3.24 prints a warning when an empty file is mapped. If this fails,
/// [`have`] reports why.
fn fill_for_valgrind(backing: &Backing) {
    #[cfg(feature = "valgrind")]
    if matches!(backing, Backing::File(..)) && guest::valgrind::is_under_valgrind() {
        let _ = backing.grow(0, rustix::param::page_size(), std::iter::empty());
    }
    #[cfg(not(feature = "valgrind"))]
    let _ = backing;
}

/// Maps the first `size` bytes of a mapping a second time. At a multiple of `align`, which is a multiple of the page size, if the
/// process has the descriptor of the backing.
///
/// # Safety
/// There is a shared mapping of the backing at `base` of at least this size.
pub(crate) unsafe fn map_again(
    backing: &Backing,
    base: NonNull<u8>,
    size: usize,
    align: usize,
) -> Result<NonNull<u8>, Errno> {
    let Some(file) = backing.fd() else {
        // SAFETY: a shared mapping whose old size is given as 0 stays, and is mapped again at an address that the kernel chooses.
        let made = unsafe { mremap(base.as_ptr().cast(), 0, size, MremapFlags::MAYMOVE) }?;
        return NonNull::new(made.cast()).ok_or(Errno::NOMEM);
    };
    let reserved = size.checked_add(align).ok_or(Errno::NOMEM)?;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), reserved, ProtFlags::empty(), flags) }?;
    let front = start.addr().next_multiple_of(align) - start.addr();
    let at = start.wrapping_byte_add(front);
    let end = at.wrapping_byte_add(size.next_multiple_of(rustix::param::page_size()));
    let flags = MapFlags::SHARED | MapFlags::FIXED;
    // SAFETY: it replaces a part of the memory that was just reserved.
    let made = unsafe { mmap(at, size, READ_WRITE, flags, file, 0) };
    let rest = start.addr() + reserved - end.addr();
    // SAFETY: these parts of the reserved memory are not used: all of it if the second mapping failed.
    unsafe {
        if made.is_err() {
            let _ = munmap(start, reserved);
        } else {
            for (at, size) in [(start, front), (end, rest)] {
                if size > 0 {
                    let _ = munmap(at, size);
                }
            }
        }
    }
    NonNull::new(made?.cast()).ok_or(Errno::NOMEM)
}

/// Hides unused space of the log from memcheck's leak search, which would allocate its pages.
fn hide(address: usize, size: usize) {
    #[cfg(feature = "valgrind")]
    guest::valgrind::make_no_access(address, size);
    #[cfg(not(feature = "valgrind"))]
    let _ = (address, size);
}

/// Reverts [`hide`] for memory that is now in use.
fn show(address: usize, size: usize) {
    #[cfg(feature = "valgrind")]
    guest::valgrind::make_defined(address, size);
    #[cfg(not(feature = "valgrind"))]
    let _ = (address, size);
}

/// # Safety
/// As for `mmap`.
unsafe fn map_at(
    at: *mut c_void,
    backing: &Backing,
    size: usize,
    flags: MapFlags,
) -> Result<*mut c_void, Errno> {
    fill_for_valgrind(backing);
    // SAFETY: guaranteed by the caller.
    unsafe {
        match backing.own() {
            Some(file) => {
                let file = file.get().ok_or(Errno::BADF)?;
                mmap(at, size, READ_WRITE, flags, file, 0)
            }
            None => mmap_anonymous(at, size, READ_WRITE, flags | MapFlags::NORESERVE),
        }
    }
}

/// Zeroed private memory, allocated when it is touched. The child of a fork has a copy.
pub(crate) fn zeros(size: usize) -> Result<NonNull<u8>, Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
    let base = unsafe { mmap_anonymous(ptr::null_mut(), size, READ_WRITE, flags) }?;
    NonNull::new(base.cast()).ok_or(Errno::NOMEM)
}

/// Unmaps memory.
///
/// # Safety
/// It is exactly what [`map`] or [`zeros`] returned, and is not used any more.
pub(crate) unsafe fn give_back(base: NonNull<u8>, size: usize) {
    // SAFETY: guaranteed by the caller.
    let _ = unsafe { munmap(base.as_ptr().cast(), size) };
}

/// Ensures that whole pages of what [`map`] returned permanently have memory behind them, and are in core files.
///
/// # Safety
/// They are within it, and it has `size` bytes.
pub(crate) unsafe fn have(
    backing: &Backing,
    base: NonNull<u8>,
    size: usize,
    at: usize,
    length: usize,
) -> Result<(), Errno> {
    let names = || map_files(base, size, at);
    // SAFETY: guaranteed by the caller.
    let populate = || unsafe { populate(base, at, length) };
    match backing {
        Backing::Memory(_) => {
            if !populate()? {
                backing.grow(at, length, names())?;
            }
        }
        Backing::File(..) => {
            backing.grow(at, length, names())?;
            populate()?;
        }
        // If it cannot be populated, it is allocated when it is touched.
        Backing::Anonymous => drop(populate()?),
    }
    // SAFETY: guaranteed by the caller.
    unsafe { is_in_use(base, at, length) };
    Ok(())
}

/// Makes memory of a mapping, which has pages behind it, part of core files, and known to memcheck.
///
/// # Safety
/// As for [`have`].
unsafe fn is_in_use(base: NonNull<u8>, at: usize, length: usize) {
    show(base.addr().get() + at, length);
    // SAFETY: guaranteed by the caller; the advice changes no content. Kernels that do not support it are fine.
    let _ = unsafe { madvise(base.add(at).as_ptr().cast(), length, Advice::LinuxDoDump) };
}

/// Like [`have`], and writes `bytes` there; `false` if the caller has to do both. Writing to a memfd takes less than half of the
/// time of the page faults and of clearing the pages.
///
/// # Safety
/// As for [`have`]. No other thread accesses the memory.
pub(crate) unsafe fn write(backing: &Backing, base: NonNull<u8>, at: usize, bytes: &[u8]) -> bool {
    let is_written = backing.write(at, bytes);
    if is_written {
        // SAFETY: guaranteed by the caller.
        unsafe { is_in_use(base, at, bytes.len()) };
    }
    is_written
}

/// Allocates pages at once, without a signal if that fails; `false` if the kernel does not support this.
///
/// # Safety
/// As for [`have`].
unsafe fn populate(base: NonNull<u8>, at: usize, length: usize) -> Result<bool, Errno> {
    // SAFETY: as in `have`.
    let made =
        || unsafe { madvise(base.add(at).as_ptr().cast(), length, Advice::LinuxPopulateWrite) };
    match retry(made) {
        Ok(()) => Ok(true),
        // Before Linux 5.14; and if a filter of system calls forbids it.
        Err(Errno::INVAL | Errno::PERM | Errno::ACCESS | Errno::NOSYS) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The kernel's names of the mapping, which may have split it into the part with [memory](have) and the part without.
fn map_files(base: NonNull<u8>, size: usize, at: usize) -> impl Iterator<Item = super::MapName> {
    let base = base.addr().get();
    let parts = [(base, base + size), (base, base + at), (base + at, base + size)];
    parts.into_iter().map(|(start, end)| super::MapName::new(start, end))
}

/// A page that the kernel clears in the child of a fork.
#[derive(Debug)]
pub(crate) struct ForkPage(NonNull<u8>);

// SAFETY: the page is never unmapped, and only accessed atomically.
unsafe impl Send for ForkPage {}
// SAFETY: as above.
unsafe impl Sync for ForkPage {}

impl ForkPage {
    pub(crate) fn new() -> Result<Self, Errno> {
        let size = rustix::param::page_size();
        // SAFETY: a new mapping at an address that the kernel chooses, and advice about just that.
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
        // SAFETY: the page is aligned, never unmapped, and only accessed atomically.
        unsafe { AtomicU32::from_ptr(self.0.as_ptr().cast::<u32>()) }
    }

    /// Another word, which the kernel clears at the same time.
    pub(crate) fn second_word(&self) -> &AtomicU32 {
        // SAFETY: as above; it is behind the first word, within the page.
        unsafe { AtomicU32::from_ptr(self.0.as_ptr().cast::<u32>().add(1)) }
    }
}

/// Creates the marker mmap: an executable mapping of a dump's first page, from which perf learns the file's path.
///
/// It is never unmapped: `perf record -p` finds it only while it exists.
pub(crate) fn map_marker(file: BorrowedFd<'_>) -> Result<(), Errno> {
    let size = rustix::param::page_size();
    let protection = ProtFlags::READ | ProtFlags::EXEC;
    // SAFETY: a new mapping at an address that the kernel chooses, which is never read or executed.
    unsafe { mmap(ptr::null_mut(), size, protection, MapFlags::PRIVATE, file, 0) }.map(drop)
}
