//! The library's own heap.
//!
//! It does not use the program's `malloc`: a signal handler that writes a file may have interrupted it, and heap profilers
//! should see only the program's own allocations. Only the thread that holds the lock allocates, except for what a thread of
//! the scribe allocates when it starts, so no thread waits here for long.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use dlmalloc::Dlmalloc;

use crate::disabled::disable;
use crate::sys;

/// Used when the system has no more memory, for allocations that must not fail: enough to come to an end, after which the
/// library stops watching. Reading files can handle failures: see [`fallible::attempt`].
const RESERVE: usize = 256 << 10;
/// Number of attempts to get the heap before it is considered lost, as in the child of a fork that happened while another
/// thread had it.
const TRIES: u32 = 100_000;

struct Memory {
    is_locked: AtomicBool,
    heap: UnsafeCell<Dlmalloc>,
    reserve: UnsafeCell<Reserve>,
    spent: AtomicUsize,
}

#[repr(align(64))]
struct Reserve(#[expect(dead_code, reason = "space")] [u8; RESERVE]);

// SAFETY: only `with_heap` accesses the heap, by one thread at a time. Each block of the reserve is given to only one caller.
unsafe impl Sync for Memory {}

#[global_allocator]
static MEMORY: Memory = Memory {
    is_locked: AtomicBool::new(false),
    heap: UnsafeCell::new(Dlmalloc::new()),
    reserve: UnsafeCell::new(Reserve([0; RESERVE])),
    spent: AtomicUsize::new(0),
};

impl Memory {
    fn with_heap<R>(&self, work: impl FnOnce(&mut Dlmalloc) -> R) -> Option<R> {
        let mut tries = 0;
        while self.is_locked.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            tries += 1;
            if tries > TRIES {
                return None;
            }
            if tries % 16 == 0 {
                sys::yield_now();
            }
        }
        // SAFETY: no other thread gets here until `is_locked` is false again.
        let done = work(unsafe { &mut *self.heap.get() });
        self.is_locked.store(false, Release);
        Some(done)
    }

    /// Returns a block of the reserve, and stops watching.
    fn reserve_block(&self, layout: Layout) -> *mut u8 {
        disable();
        let size = layout.size().saturating_add(layout.align());
        let start = self.spent.fetch_add(size, Relaxed);
        if start.saturating_add(size) > RESERVE {
            return std::ptr::null_mut();
        }
        let base = self.reserve.get().cast::<u8>();
        // SAFETY: `start` and the `size` bytes behind it are inside the reserve, as just checked.
        let piece = unsafe { base.add(start) };
        // SAFETY: this advances by less than the alignment, for which `size` has space.
        unsafe { piece.add(piece.align_offset(layout.align())) }
    }

    fn is_of_reserve(&self, piece: *mut u8) -> bool {
        let base = self.reserve.get().addr();
        (base..base + RESERVE).contains(&piece.addr())
    }
}

// SAFETY: each block is from the heap, which fulfils this contract, or from the reserve: aligned, exclusive, never reused.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the heap accepts any size and alignment of a layout.
        let piece = self.with_heap(|heap| unsafe { heap.malloc(layout.size(), layout.align()) });
        match piece {
            Some(piece) if !piece.is_null() => piece,
            Some(refused) if fallible::is_attempting() => refused,
            _ => self.reserve_block(layout),
        }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if !self.is_of_reserve(piece) {
            // Where the heap is lost the piece is, too.
            // SAFETY: guaranteed by the caller: a piece of the heap with this layout.
            let _ =
                self.with_heap(|heap| unsafe { heap.free(piece, layout.size(), layout.align()) });
        }
    }
}
