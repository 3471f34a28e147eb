//! Large tables in large pages.
//!
//! The tables of hundreds of thousands of codes take tens of megabytes for some tenths of a second:
//! to be given them in pages of 4 KiB took a tenth of the time. Systems that hand out larger pages
//! only to who asks for them (`madvise` in `/sys/kernel/mm/transparent_hugepage/enabled`) are asked.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

use rustix::mm::{Advice, madvise};

/// The size of huge pages on most machines: in less, there is none.
const HUGE_PAGE: usize = 1 << 21;
/// What memory is given out in, or a part of it.
const PAGE: usize = 1 << 12;

#[global_allocator]
static ALLOCATOR: Huge = Huge;

/// The system's allocator, which asks for huge pages where much is wanted at once.
struct Huge;

// SAFETY: all is done by the system's allocator, on the same conditions; advice changes neither
// what is in memory nor whose it is.
unsafe impl GlobalAlloc for Huge {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        advised(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        advised(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        advised(unsafe { System.realloc(start, layout, size) }, size)
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(start, layout) }
    }
}

/// Asks for huge pages for what was allocated, if it is large; `start` may be null.
fn advised(start: *mut u8, size: usize) -> *mut u8 {
    if size >= HUGE_PAGE && !start.is_null() {
        // The system has none in parts of a page: so all pages that anything of it lies in.
        let before = start.addr() % PAGE;
        let pages = start.wrapping_sub(before).cast();
        // SAFETY: the allocator has memory at all of these pages, and the advice keeps what is in
        // them. A system that does not follow it says so, which changes nothing.
        let _ = unsafe { madvise(pages, size.saturating_add(before), Advice::LinuxHugepage) };
    }
    start
}
