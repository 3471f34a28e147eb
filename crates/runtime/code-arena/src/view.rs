//! The writable mapping of a file.
#![allow(unsafe_code)]

use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::Release};

use rustix::io::{self, Errno};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A shared mapping of a file. Disk space is allocated before anything is written (see [`Area`](crate::area::Area)):
/// a store without it raises a signal.
///
/// Data that others may be reading, in this process or another, is written with atomic stores; other data is written
/// before anything refers to it.
#[derive(Debug)]
pub(crate) struct View {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: only this value owns the mapping. All access is through `&mut self`, atomic, or to text through `text`, of
// which each part has one owner.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl View {
    pub(crate) fn new(file: BorrowedFd<'_>, size: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
        let base = unsafe { mmap(ptr::null_mut(), size, protection, MapFlags::SHARED, file, 0) }?;
        NonNull::new(base.cast::<u8>()).map(|base| Self { base, size }).ok_or(Errno::NOMEM)
    }

    /// The address of a range of the file, if it is in the mapping.
    fn at(&self, at: usize, size: usize) -> Option<NonNull<u8>> {
        let end = at.checked_add(size)?;
        // SAFETY: within the mapping, as checked.
        (end <= self.size).then(|| unsafe { self.base.add(at) })
    }

    /// Writes bytes that no reader finds before something refers to them.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.at(at, bytes.len()) {
            // SAFETY: within the mapping, to which no slice refers.
            unsafe { place.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        }
    }

    /// Stores a number, after everything that was written before. Does nothing if it is not aligned.
    pub(crate) fn store_u32(&mut self, at: usize, value: u32) {
        if let Some(place) = self.at(at, 4).filter(|_| at.is_multiple_of(4)) {
            // SAFETY: within the mapping, which begins at a page, and aligned; others only read it.
            unsafe { AtomicU32::from_ptr(place.cast().as_ptr()) }.store(value.to_le(), Release);
        }
    }

    /// As [`Self::store_u32`].
    pub(crate) fn store_u64(&mut self, at: usize, value: u64) {
        if let Some(place) = self.word(at) {
            place.store(value.to_le(), Release);
        }
    }

    /// A number that was stored.
    pub(crate) fn load_u64(&self, at: usize) -> u64 {
        self.word(at).map_or(0, |place| u64::from_le(place.load(Relaxed)))
    }

    fn word(&self, at: usize) -> Option<&AtomicU64> {
        let place = self.at(at, 8).filter(|_| at.is_multiple_of(8))?;
        // SAFETY: as in `store_u32`; the mapping outlives the borrow.
        Some(unsafe { AtomicU64::from_ptr(place.cast().as_ptr()) })
    }

    /// A range of text, for its only owner.
    pub(crate) fn text(&self, at: usize, size: usize) -> Option<NonNull<u8>> {
        self.at(at, size)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and no part of it is in use any more: regions keep the arena alive.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.size) };
    }
}
