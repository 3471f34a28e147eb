//! A lock that the child of a fork can release.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Relaxed, SeqCst},
};

/// Guards a value. Usually it is tried, not waited for.
#[derive(Debug, Default)]
pub(crate) struct TryLock<T> {
    is_locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `value` is accessed only through a guard, of which there is one at a time, or through `&mut self`.
unsafe impl<T: Send> Sync for TryLock<T> {}

/// Releases the lock when dropped.
#[derive(Debug)]
pub(crate) struct Guard<'l, T>(&'l TryLock<T>);

impl<T> TryLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { is_locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        // Sequentially consistent: a thread that finds it locked relies on the holder to see what it deferred after
        // releasing it.
        self.is_locked.compare_exchange(false, true, SeqCst, Relaxed).ok().map(|_| Guard(self))
    }

    /// Waits; for work that takes no longer than appending to a list.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        // The holder may have a lower priority, and need this processor: then yielding is not enough.
        let mut tries = 0_u32;
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            tries = tries.saturating_add(1);
            if tries > 100 {
                std::thread::sleep(std::time::Duration::from_micros(50));
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// For the only thread in the child of a fork: the holder exists only in the parent, and has left the value in
    /// an unknown state. The old value is leaked.
    ///
    /// # Safety
    /// No other thread of this process has a guard or waits for one.
    pub(crate) unsafe fn replace(&self, value: T) {
        // SAFETY: the caller guarantees exclusive access. The old value is not dropped: it may be half written.
        unsafe { self.value.get().write(value) };
        self.is_locked.store(false, SeqCst);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: there is only one guard at a time, which is borrowed.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is only one guard at a time, which is borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0.is_locked.store(false, SeqCst);
    }
}
