//! A lock for what is done rarely, that the child of a fork can open.
//!
//! Signals of the thread that holds it wait, so that no handler finds it held by the thread that it interrupted, and a thread that
//! a handler stops (a garbage collector's, say) has no lock. Nobody waits for ever: not for itself, and for another thread
//! [at most so long](PATIENCE). A thread that waits sleeps, since the one that holds the lock may be of a lower priority and need
//! the processor.

use std::hint::spin_loop;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::Duration;

use guest::{SignalsHeld, hold_signals};

use crate::{system, thread};

/// How long another thread is waited for. What holds a latch takes milliseconds at most, unless it gets no processor.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often is looked before the first sleep.
const SPINS: u32 = 100;
/// How long a sleep is: about what the kernel adds to it.
const NAP: Duration = Duration::from_micros(50);

/// Held for some system calls at most, never while calling out. 0, or the thread that holds it.
#[derive(Debug, Default)]
pub(crate) struct Latch(AtomicU32);

/// Opens the latch when dropped, and lets signals come then.
#[derive(Debug)]
pub(crate) struct Closed<'l> {
    latch: &'l Latch,
    _signals: SignalsHeld,
}

impl Latch {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    #[cfg(test)]
    fn close(&self) -> Option<Closed<'_>> {
        self.close_or_wait().0
    }

    /// `None` if this very thread holds it, or another for too long: then it was waited for in vain, which is said beside.
    pub(crate) fn close_or_wait(&self) -> (Option<Closed<'_>>, bool) {
        let me = thread::id();
        let mut patience = Patience::default();
        loop {
            if let Some(closed) = self.try_close() {
                return (Some(closed), false);
            }
            if self.0.load(Relaxed) == me {
                return (None, false);
            }
            if !patience.wait() {
                return (None, true);
            }
        }
    }

    pub(crate) fn try_close(&self) -> Option<Closed<'_>> {
        if self.0.load(Relaxed) != 0 {
            return None;
        }
        let signals = hold_signals();
        let is_ours = self.0.compare_exchange(0, thread::id(), Acquire, Relaxed).is_ok();
        is_ours.then(|| Closed { latch: self, _signals: signals })
    }

    /// For the child of a fork: whoever held it is in the parent.
    pub(crate) fn reset(&self) {
        self.0.store(0, Release);
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.latch.0.store(0, Release);
    }
}

/// Waiting for another thread.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    tries: u32,
    /// By the system's clock, when the first sleep began.
    since: Option<u64>,
}

impl Patience {
    /// Waits a little. False when it was long enough.
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

/// When a thread waited in vain last, by the system's clock; 0: never, or there was no need to wait since. For a while nobody waits
/// there again: what was waited for may be lost for ever, and each announcement would take as long.
#[derive(Debug, Default)]
pub(crate) struct InVain(AtomicU64);

impl InVain {
    /// How often the time that was waited nobody waits.
    const TIMES: u128 = 10;

    pub(crate) fn was_lately(&self) -> bool {
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
    use super::Latch;

    #[test]
    fn a_thread_does_not_wait_for_itself() {
        let latch = Latch::new();
        let held = latch.close();
        assert!(held.is_some());
        assert!(latch.close().is_none());
        assert!(latch.try_close().is_none());
        drop(held);
        assert!(latch.close().is_some());
    }

    /// How often this thread gave its processor up to wait. To yield is not that: the thread goes on wanting it.
    #[cfg(target_os = "linux")]
    fn sleeps() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse().unwrap()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn who_waits_sleeps() {
        let latch = Latch::new();
        std::thread::scope(|scope| {
            let held = latch.close();
            let waits = scope.spawn(|| {
                let before = sleeps();
                assert!(latch.close().is_some());
                sleeps() - before
            });
            std::thread::sleep(std::time::Duration::from_millis(100));
            drop(held);
            assert!(waits.join().unwrap() > 10);
        });
    }

    #[test]
    fn another_thread_waits_and_then_gives_up() {
        let latch = Latch::new();
        std::thread::scope(|scope| {
            let held = latch.close();
            assert!(scope.spawn(|| latch.close().is_none()).join().unwrap());
            let waits = scope.spawn(|| latch.close().is_some());
            std::thread::sleep(std::time::Duration::from_millis(20));
            drop(held);
            assert!(waits.join().unwrap());
        });
    }
}
