//! Queries and reserves memory.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ops::Range;
use std::ptr::{self, NonNull};

use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_FREE, MEM_RELEASE, MEM_RESERVE, MEMORY_BASIC_INFORMATION, PAGE_READWRITE,
    VirtualAlloc, VirtualFree, VirtualQuery,
};

/// Reservations begin at multiples of this.
const GRANULE: u64 = 64 << 10;
/// Number of memory ranges that a search checks before it gives up.
const LOOKS: usize = 1 << 16;

/// Pages at an address that was free.
#[derive(Debug)]
pub(crate) struct Pages {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: only this value owns the memory.
unsafe impl Send for Pages {}

fn query(address: u64) -> Option<MEMORY_BASIC_INFORMATION> {
    let mut found = MEMORY_BASIC_INFORMATION::default();
    let size = size_of::<MEMORY_BASIC_INFORMATION>();
    let address = ptr::without_provenance::<c_void>(usize::try_from(address).ok()?);
    // SAFETY: the structure has the given size. The address is not dereferenced.
    let written = unsafe { VirtualQuery(address, &raw mut found, size) };
    (written == size).then_some(found)
}

/// The reservation that contains the address.
pub(crate) fn reservation(address: u64) -> Option<Range<u64>> {
    let first = query(address).filter(|found| found.State != MEM_FREE)?;
    let base = first.AllocationBase;
    let mut end = address;
    for _ in 0..LOOKS {
        match query(end) {
            Some(piece) if piece.State != MEM_FREE && piece.AllocationBase == base => {
                end = end_of(&piece)?;
            }
            _ => break,
        }
    }
    Some(base.addr() as u64..end)
}

fn end_of(piece: &MEMORY_BASIC_INFORMATION) -> Option<u64> {
    (piece.BaseAddress.addr() as u64).checked_add(piece.RegionSize as u64)
}

impl Pages {
    /// Reserves pages in this address range, as low as possible.
    pub(crate) fn within(range: Range<u64>, size: usize) -> Option<Self> {
        let length = size as u64;
        let mut at = range.start.checked_next_multiple_of(GRANULE)?;
        for _ in 0..LOOKS {
            if at.checked_add(length)? > range.end {
                return None;
            }
            let piece = query(at)?;
            let end = end_of(&piece)?;
            if piece.State == MEM_FREE
                && at.checked_add(length)? <= end
                && let Some(pages) = Self::at(at, size)
            {
                return Some(pages);
            }
            at = end.checked_next_multiple_of(GRANULE)?;
        }
        None
    }

    /// `None` if another thread was faster.
    fn at(address: u64, size: usize) -> Option<Self> {
        let address = ptr::without_provenance::<c_void>(usize::try_from(address).ok()?);
        // SAFETY: if the address is in use by now, the call fails.
        let base = unsafe { VirtualAlloc(address, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) };
        NonNull::new(base.cast::<u8>()).map(|base| Self { base, size })
    }

    pub(crate) fn address(&self) -> u64 {
        self.base.addr().get() as u64
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Writes to a place that has not been published; `None` if it is not entirely in the pages.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) -> Option<()> {
        let end = at.checked_add(bytes.len()).filter(|end| *end <= self.size)?;
        // SAFETY: within the pages, as just checked. Others only read what has been published, and this has
        // not been.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.add(at).as_ptr(), bytes.len());
        }
        debug_assert!(end <= self.size);
        Some(())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: ours, exactly as they were reserved; nothing refers to them any more.
        unsafe { VirtualFree(self.base.as_ptr().cast::<c_void>(), 0, MEM_RELEASE) };
    }
}
