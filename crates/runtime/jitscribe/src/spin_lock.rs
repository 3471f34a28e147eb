//! A lock for rare operations, which the child of a fork can release.
//!
//! Signals are held while a thread has the lock. So no handler finds it held by the thread that it interrupted, and a thread that
//! a handler stops (a garbage collector's, for example) does not have it. No thread waits for ever: not for itself, and for
//! another thread at most [this long](PATIENCE). A waiting thread sleeps, because the holder may have a lower priority and need
//! the processor.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

#[cfg(target_os = "linux")]
use guest::Holder;
use guest::{LockOwner, SignalsHeld, hold_signals};

use crate::{system, thread};

/// Maximum time to wait for another thread. Operations under the lock take milliseconds at most, unless the thread gets no
/// processor.
const PATIENCE: Duration = Duration::from_secs(1);
/// Number of attempts before the first sleep.
const SPINS: u32 = 100;
/// Length of a sleep: about as much as the kernel adds to it.
const NAP: Duration = Duration::from_micros(50);

/// Held for a few system calls at most, never while calling code of others.
#[derive(Debug, Default)]
pub(crate) struct SpinLock(LockOwner);

/// Releases the lock and the signals when dropped.
#[derive(Debug)]
pub(crate) struct Guard<'l> {
    spin_lock: &'l SpinLock,
    _signals: SignalsHeld,
}

impl SpinLock {
    pub(crate) const fn new() -> Self {
        Self(LockOwner::new())
    }

    #[cfg(test)]
    fn lock(&self) -> Option<Guard<'_>> {
        self.lock_or_wait().0
    }

    /// `None` if this thread holds it, or if another thread held it for too long. The second value is true in the latter case.
    pub(crate) fn lock_or_wait(&self) -> (Option<Guard<'_>>, bool) {
        let me = thread::id();
        let mut patience = Patience::default();
        loop {
            if let Some(guard) = self.try_lock() {
                return (Some(guard), false);
            }
            if self.0.is(me) {
                return (None, false);
            }
            if !patience.wait() {
                return (None, true);
            }
        }
    }

    pub(crate) fn try_lock(&self) -> Option<Guard<'_>> {
        if !self.0.is_free() {
            return None;
        }
        let signals = hold_signals();
        let is_ours = self.0.take(thread::id()).is_ok();
        is_ours.then(|| Guard { spin_lock: self, _signals: signals })
    }

    /// Takes the lock for the thread with this id, without waiting.
    #[cfg(target_os = "linux")]
    pub(crate) fn try_lock_for(&self, thread: u32) -> Result<Guard<'_>, Holder> {
        let signals = hold_signals();
        self.0.take(thread)?;
        Ok(Guard { spin_lock: self, _signals: signals })
    }

    /// For the child of a fork: the holder exists only in the parent.
    pub(crate) fn reset(&self) {
        self.0.release();
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.spin_lock.0.release();
    }
}

/// Waiting for another thread.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    tries: u32,
    /// When the first sleep began, by the system's clock.
    since: Option<u64>,
}

impl Patience {
    /// Waits for a moment. False once the maximum time has passed.
    pub(crate) fn wait(&mut self) -> bool {
        self.tries = self.tries.saturating_add(1);
        if self.tries <= SPINS {
            spin_loop();
            return true;
        }
        let now = system::nanoseconds();
        let since = *self.since.get_or_insert(now);
        system::nap(NAP);
        u128::from(now.saturating_sub(since)) < PATIENCE.as_nanos()
    }
}

/// When a wait failed last, by the system's clock; 0: never, or a wait succeeded since. For some time after that, no thread waits
/// at this place: the lock may never be released, and each announcement would take as long.
#[derive(Debug, Default)]
pub(crate) struct FailedWait(AtomicU64);

impl FailedWait {
    /// For this many times the maximum wait, no thread waits again.
    const TIMES: u128 = 10;

    pub(crate) fn was_recent(&self) -> bool {
        let at = self.0.load(Relaxed);
        at != 0
            && u128::from(system::nanoseconds().saturating_sub(at))
                < Self::TIMES * PATIENCE.as_nanos()
    }

    pub(crate) fn note(&self) {
        self.0.store(system::nanoseconds(), Relaxed);
    }

    pub(crate) fn forget(&self) {
        self.0.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::SpinLock;

    #[test]
    fn a_thread_does_not_wait_for_itself() {
        let spin_lock = SpinLock::new();
        let held = spin_lock.lock();
        assert!(held.is_some());
        assert!(spin_lock.lock().is_none());
        assert!(spin_lock.try_lock().is_none());
        drop(held);
        assert!(spin_lock.lock().is_some());
    }

    /// How often this thread slept. Yielding does not count: the thread stays runnable.
    #[cfg(target_os = "linux")]
    fn sleeps() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse().unwrap()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_waiting_thread_sleeps() {
        let spin_lock = SpinLock::new();
        std::thread::scope(|scope| {
            let held = spin_lock.lock();
            let waits = scope.spawn(|| {
                let before = sleeps();
                assert!(spin_lock.lock().is_some());
                sleeps() - before
            });
            std::thread::sleep(std::time::Duration::from_millis(100));
            drop(held);
            assert!(waits.join().unwrap() > 10);
        });
    }

    #[test]
    fn a_thread_waits_for_another_one_and_then_gives_up() {
        let spin_lock = SpinLock::new();
        std::thread::scope(|scope| {
            let held = spin_lock.lock();
            assert!(scope.spawn(|| spin_lock.lock().is_none()).join().unwrap());
            let waits = scope.spawn(|| spin_lock.lock().is_some());
            std::thread::sleep(std::time::Duration::from_millis(20));
            drop(held);
            assert!(waits.join().unwrap());
        });
    }
}
