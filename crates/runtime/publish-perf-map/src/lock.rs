//! The lock of a map, for which no thread waits for ever.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use rustix::thread::nanosleep;
use rustix::time::Timespec;

use crate::file::now;

/// Nanoseconds that a thread waits for another one. That may have been stopped by a signal handler
/// of the host, and go on only after the waiting one. Or it waits for the disk.
const PATIENCE: u64 = 5_000_000_000;
/// Length of a sleep: about as much as the kernel adds to it.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000 };
/// Number of attempts before the first sleep: about as long as two writes take.
const SPINS: u32 = 200;

thread_local! {
    // Its address identifies the thread. The type has no destructor, so that this works in any
    // handler.
    static THREAD: Cell<u8> = const { Cell::new(0) };
}

/// A mutex that knows its thread.
#[derive(Debug)]
pub(crate) struct Lock<T> {
    content: Mutex<T>,
    /// The thread that has it; 0: none.
    owner: AtomicUsize,
}

/// Why a thread did not get the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// It has it already: a signal handler interrupted it.
    Own,
    /// Another thread has it, and seems to have been stopped.
    Stopped,
}

/// Releases the lock when it is dropped.
#[derive(Debug)]
pub(crate) struct Guard<'l, T> {
    content: MutexGuard<'l, T>,
    owner: &'l AtomicUsize,
}

impl<T> Lock<T> {
    pub fn new(content: T) -> Self {
        Lock { content: Mutex::new(content), owner: AtomicUsize::new(0) }
    }

    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        let content = match self.content.try_lock() {
            Ok(content) => content,
            Err(TryLockError::Poisoned(content)) => content.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.owner.store(this_thread(), Ordering::Relaxed);
        Some(Guard { content, owner: &self.owner })
    }

    pub fn lock(&self) -> Result<Guard<'_, T>, Denied> {
        let mut tries = 0;
        let mut since = None;
        loop {
            if let Some(guard) = self.try_lock() {
                return Ok(guard);
            }
            if self.owner.load(Ordering::Relaxed) == this_thread() {
                return Err(Denied::Own);
            }
            tries += 1;
            if tries <= SPINS {
                std::hint::spin_loop();
                continue;
            }
            let now = now();
            if now.wrapping_sub(*since.get_or_insert(now)) >= PATIENCE {
                return Err(Denied::Stopped);
            }
            let _ = nanosleep(&NAP);
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.content
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.content
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.owner.store(0, Ordering::Relaxed);
    }
}

fn this_thread() -> usize {
    // A thread that is ending may have no thread-local memory any more.
    THREAD.try_with(|thread| std::ptr::from_ref(thread).addr()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::{Denied, Lock};

    #[test]
    fn a_thread_does_not_wait_for_itself_and_waits_for_others() {
        let lock = Lock::new(7);
        let held = lock.lock().unwrap();
        assert_eq!(lock.lock().err(), Some(Denied::Own));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| lock.lock().map(|guard| *guard).ok());
            std::thread::sleep(std::time::Duration::from_millis(50));
            drop(held);
            assert_eq!(waits.join().unwrap(), Some(7));
        });
        // A thread that was stopped.
        let held = lock.lock().unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| lock.lock().err());
            assert_eq!(waits.join().unwrap(), Some(Denied::Stopped));
        });
        drop(held);
        assert!(lock.lock().is_ok());
    }
}
