//! The log of the parent, in the child of a fork.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::mapping::{Mapping, MappingSlot};
use crate::spin_lock::Guard;

/// The parent's log, as far as its codes are not in the child's own.
#[derive(Debug, Default)]
pub(crate) struct Inheritance {
    /// The parent's log. The lock is that of the chunks.
    pub(crate) parents: MappingSlot,
    /// Codes before this offset are in the parent's log; 0: none.
    pub(crate) end: AtomicUsize,
}

impl Inheritance {
    /// In the child of a fork, which has one thread: what its parent had left in the log of its own parent.
    pub(crate) fn take(&self, lock: &Guard<'_>) -> Option<Mapping> {
        let is_shared = self.end.swap(0, Relaxed) != 0;
        self.parents.take(lock).filter(|_| is_shared)
    }
}
