//! An allocator that refuses, and the other unsafe parts.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// So many allocations of this thread are granted, and none behind them.
    static GRANTED: Cell<u32> = const { Cell::new(u32::MAX) };
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

struct Refusing;

fn grants() -> bool {
    let left = GRANTED.get();
    if left == 0 {
        REFUSED.set(true);
    } else if left < u32::MAX {
        GRANTED.set(left - 1);
    }
    left > 0
}

// SAFETY: the system's allocator, which may refuse.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        if grants() { unsafe { System.alloc(layout) } } else { std::ptr::null_mut() }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        if grants() { unsafe { System.realloc(at, layout, size) } } else { std::ptr::null_mut() }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Does something with `granted` allocations. Returns whether one more was asked for.
pub fn with_allocations(granted: u32, work: impl FnOnce()) -> bool {
    REFUSED.set(false);
    GRANTED.set(granted);
    work();
    GRANTED.set(u32::MAX);
    REFUSED.get()
}

/// Forks, and waits for the child, in which `child` runs. Other threads of the parent are not in the child.
pub fn in_a_fork(child: impl FnOnce()) {
    // SAFETY: the child only does what the child of a process with several threads may: it calls the publisher, which is under
    // test, and the C library, whose allocator works there.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        child();
        // SAFETY: ends the process without the parent's `atexit` functions.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: `status` is a valid place for the answer.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(status, 0);
}
