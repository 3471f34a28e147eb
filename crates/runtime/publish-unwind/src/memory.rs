//! Memory from the kernel.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

/// New memory that reads as zeros; `None` on failure.
pub(crate) fn map(size: usize) -> Option<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
    let base = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast()) }
}
