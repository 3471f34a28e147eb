//! Which thread holds a lock: the core of locks that the child of a fork can release.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// No thread holds it: the kernel gives no thread this id.
const FREE: u32 = 0;

/// The thread that holds a lock, by the kernel's id. So a signal handler, or code that the holder called, detects that its own
/// thread holds the lock, and does not wait for itself.
#[derive(Debug, Default)]
pub struct LockOwner(AtomicU32);

/// Who else holds the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// This thread.
    ThisThread,
    /// Another one.
    OtherThread,
}

impl LockOwner {
    /// No owner.
    pub const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// Takes the lock for the thread with the id `me`.
    ///
    /// # Errors
    /// If a thread holds it.
    pub fn take(&self, me: u32) -> Result<(), Holder> {
        match self.0.compare_exchange(FREE, me, Acquire, Relaxed) {
            Ok(_) => Ok(()),
            Err(holder) if holder == me => Err(Holder::ThisThread),
            Err(_) => Err(Holder::OtherThread),
        }
    }

    /// Whether the thread with the id `me` holds the lock. For that thread itself, the answer stays true until it releases the
    /// lock.
    pub fn is(&self, me: u32) -> bool {
        self.0.load(Relaxed) == me
    }

    /// Whether no thread holds the lock.
    pub fn is_free(&self) -> bool {
        self.0.load(Relaxed) == FREE
    }

    /// Releases the lock: called by its holder, or in the child of a fork, where the holder may not exist.
    pub fn release(&self) {
        self.0.store(FREE, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::{Holder, LockOwner};

    #[test]
    fn one_thread_at_a_time_owns_it() {
        let owner = LockOwner::new();
        assert!(owner.is_free());
        assert_eq!(owner.take(7), Ok(()));
        assert!(owner.is(7) && !owner.is(8) && !owner.is_free());
        assert_eq!(owner.take(7), Err(Holder::ThisThread));
        assert_eq!(owner.take(8), Err(Holder::OtherThread));
        owner.release();
        assert_eq!(owner.take(8), Ok(()));
    }
}
