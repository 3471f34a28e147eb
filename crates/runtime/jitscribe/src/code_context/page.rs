//! The memory of a context.
#![allow(unsafe_code)]

use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{
    AtomicPtr, AtomicU8, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};

use guest::file_size_limit;
use process_context::MAPPING_NAME;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use rustix::process::set_virtual_memory_region_name;

use super::protocol::{Store, USED};
use crate::log::{Failure, retry};

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// A page of this process with the name of a context, which no child of a fork has.
#[derive(Debug)]
pub(super) struct Page(NonNull<u8>);

/// The page of this process, if it has one. Callers hold the lock of the context, and in the child of a fork, they call
/// [`Self::forget`] first.
#[derive(Debug)]
pub(super) struct CurrentPage(AtomicPtr<u8>);

impl CurrentPage {
    pub(super) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    pub(super) fn get(&self) -> Option<Page> {
        NonNull::new(self.0.load(Acquire)).map(Page)
    }

    pub(super) fn set(&self, page: Page) {
        self.0.store(page.0.as_ptr(), Release);
    }

    /// In the child of a fork: the parent's page is not there.
    pub(super) fn forget(&self) {
        self.0.store(ptr::null_mut(), Release);
    }

    pub(super) fn unmap(&self) {
        let base = self.0.swap(ptr::null_mut(), Release);
        if !base.is_null() {
            // SAFETY: `Page::new` mapped it, and it is unmapped once, as this took the address out. Callers hold the lock, so no
            // other thread uses a `Page` with this address; their own are not used after this.
            let _ = unsafe { munmap(base.cast(), size()) };
        }
    }
}

impl Page {
    /// Maps a page of zeros. Its name shows that it is a context if there are memfds; if not, only [`Self::name`] shows it.
    /// Returns whether that is so.
    pub(super) fn new() -> Result<(Self, bool), Failure> {
        let file = file();
        let failed = |cause| Failure::of("memory for the process context", cause);
        let flags = MapFlags::PRIVATE;
        // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
        let base = unsafe {
            match &file {
                Some(file) => mmap(ptr::null_mut(), size(), READ_WRITE, flags, file, 0),
                None => mmap_anonymous(ptr::null_mut(), size(), READ_WRITE, flags),
            }
        };
        let base = base.map_err(failed)?;
        // SAFETY: advice about just that mapping.
        let prepared = unsafe {
            // Now, as later the lack of memory would be a signal.
            let populated = retry(|| madvise(base, size(), Advice::LinuxPopulateWrite));
            let populated = match (populated, &file) {
                // Before Linux 5.14; and if a filter of system calls forbids it.
                (Err(Errno::INVAL | Errno::PERM | Errno::ACCESS | Errno::NOSYS), Some(file)) => {
                    allocate(file)
                }
                (Err(Errno::INVAL | Errno::PERM | Errno::ACCESS | Errno::NOSYS), None) => Ok(()),
                (done, _) => done,
            };
            populated.and_then(|()| madvise(base, size(), Advice::LinuxDontFork))
        };
        if let Err(cause) = prepared {
            // SAFETY: it was mapped above, and nothing refers to it.
            let _ = unsafe { munmap(base, size()) };
            return Err(failed(cause));
        }
        let base = NonNull::new(base.cast()).ok_or(failed(Errno::NOMEM))?;
        Ok((Self(base), file.is_some()))
    }

    /// Names the mapping; each publication and each update is followed by this, as readers may wait for the call. Returns whether
    /// the kernel supports it.
    pub(super) fn name(&self) -> bool {
        // SAFETY: the page is mapped, and nothing writes to it during the call, as callers hold the lock of the context.
        let region = unsafe { std::slice::from_raw_parts(self.0.as_ptr(), size()) };
        set_virtual_memory_region_name(region, Some(MAPPING_NAME)).is_ok()
    }

    /// Unmaps a page that was not [set](CurrentPage::set).
    pub(super) fn discard(self) {
        // SAFETY: it was mapped by `new`, and this value, which ends here, is the only one with its address.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), size()) };
    }

    /// The address of `size` bytes at offset `at`.
    ///
    /// # Panics
    /// Never: all offsets are those of `protocol`, within [`USED`]. Another one is replaced by 0.
    fn at(&self, at: usize, size: usize) -> *mut u8 {
        let is_inside =
            at.checked_add(size).is_some_and(|end| end <= USED) && at.is_multiple_of(size);
        let at = if is_inside { at } else { 0 };
        // SAFETY: within the page, which has at least 4096 bytes.
        unsafe { self.0.as_ptr().add(at) }
    }
}

impl Store for Page {
    fn address(&self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    fn byte(&self, at: usize, value: u8) {
        // SAFETY: a byte within the page, which is mapped while callers hold the lock, and only accessed atomically.
        unsafe { AtomicU8::from_ptr(self.at(at, 1)) }.store(value, Relaxed);
    }

    fn half(&self, at: usize, value: u32) {
        // SAFETY: as above; the offset is a multiple of the size, and the page is aligned.
        unsafe { AtomicU32::from_ptr(self.at(at, 4).cast()) }.store(value, Relaxed);
    }

    fn word(&self, at: usize, value: u64) {
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(self.at(at, 8).cast()) }.store(value, Relaxed);
    }

    fn load_word(&self, at: usize) -> u64 {
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(self.at(at, 8).cast()) }.load(Relaxed)
    }

    fn barrier(&self) {
        fence(SeqCst);
    }
}

/// A page has at least 4096 bytes on all machines.
const _: () = assert!(USED <= 4096);

fn size() -> usize {
    rustix::param::page_size()
}

/// A memfd of one page with the name of a context; `None` if it is not available, or if its size would exceed the limit on file
/// sizes, which would raise a signal.
fn file() -> Option<OwnedFd> {
    if file_size_limit().is_some_and(|limit| limit < size() as u64) {
        return None;
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create(MAPPING_NAME, flags | MemfdFlags::NOEXEC_SEAL)
        .or_else(|_| memfd_create(MAPPING_NAME, flags))
        .ok()?;
    retry(|| ftruncate(&file, size() as u64)).ok()?;
    Some(file)
}

/// Allocates the page of the file. Where that is not possible, it is allocated when it is touched.
fn allocate(file: &OwnedFd) -> Result<(), Errno> {
    match retry(|| fallocate(file, FallocateFlags::empty(), 0, size() as u64)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::ACCESS) => Ok(()),
        done => done,
    }
}
