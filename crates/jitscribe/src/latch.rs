//! A lock for what is done rarely, that the child of a fork can open.

use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};

/// Held for some system calls at most, never while calling out.
#[derive(Debug, Default)]
pub(crate) struct Latch(AtomicBool);

/// Opens the latch when dropped.
#[derive(Debug)]
pub(crate) struct Closed<'l>(&'l Latch);

impl Latch {
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    pub(crate) fn close(&self) -> Closed<'_> {
        while self.0.compare_exchange(false, true, Acquire, Relaxed).is_err() {
            std::thread::yield_now();
        }
        Closed(self)
    }

    pub(crate) fn try_close(&self) -> Option<Closed<'_>> {
        self.0.compare_exchange(false, true, Acquire, Relaxed).ok().map(|_| Closed(self))
    }

    /// For the child of a fork: whoever held it is in the parent.
    pub(crate) fn reset(&self) {
        self.0.store(false, Release);
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.0.store(false, Release);
    }
}
