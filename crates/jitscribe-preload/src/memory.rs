//! Memory of this library alone.
//!
//! Not the program's `malloc`: a signal handler that writes a file may have interrupted it, and a profiler of the heap should
//! see the program's own. All of it is taken by the one thread that holds the latch, but for what a thread of the scribe's
//! takes when it begins, so that nobody waits here for long.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use dlmalloc::Dlmalloc;

use crate::{sys, watch};

/// What is left when the system has no more: enough to come to an end, after which nothing is watched any more.
const RESERVE: usize = 256 << 10;
/// How often the heap is asked for before it is taken for lost, as in the child of a fork that was made while another
/// thread had it.
const TRIES: u32 = 100_000;

struct Memory {
    is_taken: AtomicBool,
    heap: UnsafeCell<Dlmalloc>,
    reserve: UnsafeCell<Reserve>,
    spent: AtomicUsize,
}

#[repr(align(64))]
struct Reserve(#[expect(dead_code, reason = "room")] [u8; RESERVE]);

// SAFETY: the heap is reached through `with_heap` alone, by one thread at a time. Of the reserve, each piece is given to
// one caller.
unsafe impl Sync for Memory {}

#[global_allocator]
static MEMORY: Memory = Memory {
    is_taken: AtomicBool::new(false),
    heap: UnsafeCell::new(Dlmalloc::new()),
    reserve: UnsafeCell::new(Reserve([0; RESERVE])),
    spent: AtomicUsize::new(0),
};

impl Memory {
    fn with_heap<R>(&self, work: impl FnOnce(&mut Dlmalloc) -> R) -> Option<R> {
        let mut tries = 0;
        while self.is_taken.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            tries += 1;
            if tries > TRIES {
                return None;
            }
            if tries % 16 == 0 {
                sys::let_others_run();
            }
        }
        // SAFETY: nobody else is here until `is_taken` is false again.
        let done = work(unsafe { &mut *self.heap.get() });
        self.is_taken.store(false, Release);
        Some(done)
    }

    /// A piece of the reserve, and the end of all watching.
    fn last(&self, layout: Layout) -> *mut u8 {
        watch::give_up();
        let size = layout.size().saturating_add(layout.align());
        let start = self.spent.fetch_add(size, Relaxed);
        if start.saturating_add(size) > RESERVE {
            return std::ptr::null_mut();
        }
        let base = self.reserve.get().cast::<u8>();
        // SAFETY: `start` and what follows, up to its size, lies in the reserve, as was just seen.
        let piece = unsafe { base.add(start) };
        // SAFETY: that is less than an alignment more, which the size has room for.
        unsafe { piece.add(piece.align_offset(layout.align())) }
    }

    fn is_last(&self, piece: *mut u8) -> bool {
        let base = self.reserve.get().addr();
        (base..base + RESERVE).contains(&piece.addr())
    }
}

// SAFETY: each piece is of the heap, whose contract this is, or of the reserve: aligned, its own, never given again.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the heap takes any size and alignment that a layout has.
        let piece = self.with_heap(|heap| unsafe { heap.malloc(layout.size(), layout.align()) });
        match piece {
            Some(piece) if !piece.is_null() => piece,
            _ => self.last(layout),
        }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if !self.is_last(piece) {
            // Where the heap is lost the piece is, too.
            // SAFETY: the caller's promise: a piece of the heap with this layout.
            let _ =
                self.with_heap(|heap| unsafe { heap.free(piece, layout.size(), layout.align()) });
        }
    }
}
