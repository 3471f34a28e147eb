//! What all targets share: an allocator that stops at the first huge allocation.
//!
//! A reader that reserves by a count it read costs no memory until it writes there, so
//! libFuzzer's limit on resident memory never sees it. Here it is a crash.

pub mod made;
pub mod readers;

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::abort;

/// The largest allocation allowed. Inputs have at most 64 KiB.
const LARGEST: usize = 64 << 20;

/// The system's allocator, aborting on any single allocation above 64 MiB.
pub struct Limited;

fn limit(size: usize) {
    if size > LARGEST {
        eprintln!("an allocation of {size} bytes");
        abort();
    }
}

// SAFETY: every call goes to the system's allocator unchanged, or does not return.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        limit(layout.size());
        // SAFETY: the caller keeps what `alloc` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        limit(layout.size());
        // SAFETY: the caller keeps what `alloc_zeroed` asks for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        limit(size);
        // SAFETY: the caller keeps what `realloc` asks for.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps what `dealloc` asks for.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;
