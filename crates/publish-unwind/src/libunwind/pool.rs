//! Room for the descriptions of a stretch. Rows tell where one is by a distance of 32 bits, so they lie together.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ptr::{self, NonNull};

/// Address space, of which pages are used as need be.
const ROOM: usize = 8 << 20;

/// New memory that reads as zeros; `None` if there is none.
pub(super) fn map(size: usize) -> Option<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice replaces nothing.
    let base = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast()) }
}

/// Where a description is: its first byte, and the bytes that are its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    at: usize,
    size: usize,
}

/// The memory, which is never given back, as a walk may be reading it.
#[derive(Debug)]
pub(super) struct Pool {
    base: NonNull<u8>,
    next: usize,
    /// By size.
    free: BTreeMap<usize, Vec<usize>>,
}

// SAFETY: memory that only `&mut self` writes to.
unsafe impl Send for Pool {}

impl Pool {
    pub(super) fn new() -> Option<Self> {
        // Eight zeros first: what is found there ends the search.
        Some(Self { base: map(ROOM)?, next: 8, free: BTreeMap::new() })
    }

    pub(super) fn address(&self) -> u64 {
        self.base.as_ptr().expose_provenance() as u64
    }

    /// Puts a description where no row leads to.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Option<Place> {
        let size = bytes.len().checked_next_multiple_of(8)?;
        let used = self.free.get_mut(&size).and_then(Vec::pop);
        let at = match used {
            Some(at) => at,
            None => {
                let end = self.next.checked_add(size).filter(|end| *end <= ROOM)?;
                std::mem::replace(&mut self.next, end)
            }
        };
        // SAFETY: `at..at + size` lies in the mapping, and no other description has a part of it.
        unsafe {
            self.base.add(at).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len())
        };
        Some(Place { at, size })
    }

    /// No row leads there any more, and no walk stands in the code.
    pub(super) fn take_back(&mut self, place: Place) {
        self.free.entry(place.size).or_default().push(place.at);
    }
}

impl Place {
    /// The distance of the byte at `within` from the beginning.
    pub(super) fn offset(self, within: usize) -> i32 {
        self.at.saturating_add(within) as i32
    }
}
