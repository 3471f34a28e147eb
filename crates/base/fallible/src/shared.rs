//! Values with several owners.
#![allow(unsafe_code)]

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

use crate::{Refused, boxed};

/// A value that lives as long as any of its owners, like [`std::sync::Arc`]. An `Arc` cannot be created without
/// aborting when the allocation is refused.
pub struct Shared<T>(NonNull<Counted<T>>);

struct Counted<T> {
    owners: AtomicUsize,
    value: T,
}

// SAFETY: owners in several threads share the value, and the last one, in any of these threads, drops it. `T: Send +
// Sync` permits both.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Creates a value with one owner.
    ///
    /// # Errors
    /// The allocation was refused.
    pub fn new(value: T) -> Result<Self, Refused> {
        let counted = boxed(Counted { owners: AtomicUsize::new(1), value })?;
        Ok(Self(NonNull::from(Box::leak(counted))))
    }

    fn counted(&self) -> &Counted<T> {
        // SAFETY: the value is freed with its last owner, and `self` is an owner.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        // No memory can hold this many owners, unless some were forgotten. In that case the value is never freed.
        let _ = self.counted().owners.fetch_update(Relaxed, Relaxed, |owners| {
            if owners > usize::MAX / 2 { None } else { Some(owners + 1) }
        });
        Self(self.0)
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let owners = &self.counted().owners;
        if owners.load(Relaxed) > usize::MAX / 2 || owners.fetch_sub(1, Release) != 1 {
            return;
        }
        // All accesses by other owners happen before the drop.
        fence(Acquire);
        // SAFETY: the pointer comes from a box, and this was the last owner.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.counted().value
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Shared;

    #[test]
    fn the_last_owner_drops_the_value() {
        let held = Arc::new(());
        let shared = Shared::new(Arc::clone(&held)).unwrap();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let shared = shared.clone();
                std::thread::spawn(move || assert!(Arc::strong_count(&shared.clone()) == 2))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(Arc::strong_count(&held), 2);
        drop(shared);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
