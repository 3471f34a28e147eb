//! The latch: only one thread at a time reads the files.
#![forbid(unsafe_code)]

use std::sync::atomic::{
    AtomicI32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// Not held.
const FREE: i32 = 0;

/// The kernel's id of the thread that holds it. So a signal handler, or a call from the scribe, detects that its own
/// thread holds it.
#[derive(Debug)]
pub(crate) struct Latch(AtomicI32);

/// Who else holds the latch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// This thread.
    ThisThread,
    /// Another one.
    OtherThread,
}

impl Latch {
    pub(crate) const fn new() -> Self {
        Self(AtomicI32::new(FREE))
    }

    /// Takes it for the thread `me`.
    pub(crate) fn take(&self, me: i32) -> Result<(), Holder> {
        match self.0.compare_exchange(FREE, me, AcqRel, Acquire) {
            Ok(_) => Ok(()),
            Err(holder) if holder == me => Err(Holder::ThisThread),
            Err(_) => Err(Holder::OtherThread),
        }
    }

    pub(crate) fn is_held_by(&self, me: i32) -> bool {
        self.0.load(Relaxed) == me
    }

    pub(crate) fn is_free(&self) -> bool {
        self.0.load(Relaxed) == FREE
    }

    /// Releases the latch: by its holder, or in the child of a fork, regardless of its holder in the parent.
    pub(crate) fn release(&self) {
        self.0.store(FREE, Release);
    }
}
