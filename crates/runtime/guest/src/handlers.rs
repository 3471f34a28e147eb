//! Whether any handler of the host could interrupt a thread.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use rustix::time::{ClockId, clock_gettime};

use crate::signals::{FAULTS, without_cancellation};

/// The last answer, and when it was found, by a clock with ticks of 1 to 10 milliseconds; 0: never. Asking takes 5 µs: a system
/// call for each signal.
static HANDLERS: AtomicBool = AtomicBool::new(true);
static ASKED: AtomicU64 = AtomicU64::new(0);

/// Whether a signal may interrupt this thread for a handler, such as a garbage collector's for stopping threads, or a timer's.
/// Handlers for faults of the thread itself do not count.
///
/// A handler that was installed in this tick of the clock may not be known yet. So the answer may decide about speed, but not
/// about whether a thread waits for itself or for ever.
#[must_use]
pub fn handlers_may_run() -> bool {
    let now = now();
    if ASKED.load(Acquire) != now {
        let _thread = without_cancellation();
        HANDLERS.store(are_there(), Relaxed);
        ASKED.store(now, Release);
    }
    HANDLERS.load(Relaxed)
}

fn are_there() -> bool {
    /// glibc and musl have handlers of their own for the first ones of the real-time signals, which no program can hold back.
    const RESERVED: std::ops::RangeInclusive<libc::c_int> = 32..=34;
    const LAST: libc::c_int = 64;
    let mut signals = (1..=LAST).filter(|signal| {
        let has_none = [libc::SIGKILL, libc::SIGSTOP].contains(signal);
        !has_none && !RESERVED.contains(signal) && !FAULTS.contains(signal)
    });
    signals.any(has_handler)
}

fn has_handler(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: none to read, and one to write, which this call does unless it fails.
    let handler = unsafe {
        if libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) != 0 {
            return true;
        }
        action.assume_init().sa_sigaction
    };
    handler != libc::SIG_DFL && handler != libc::SIG_IGN
}

fn now() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds).max(1)
}

#[cfg(test)]
mod tests {
    use super::{handlers_may_run, has_handler};

    extern "C" fn handle(_: libc::c_int) {}

    #[test]
    fn a_handler_is_found() {
        let set = |handler| {
            // SAFETY: the handler does nothing, and is the one that the signal needs.
            unsafe { libc::signal(libc::SIGURG, handler) };
        };
        assert!(!has_handler(libc::SIGURG));
        set(handle as extern "C" fn(libc::c_int) as libc::sighandler_t);
        assert!(has_handler(libc::SIGURG));
        // Longer than a tick of the clock.
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(handlers_may_run());
        set(libc::SIG_IGN);
        assert!(!has_handler(libc::SIGURG));
        set(libc::SIG_DFL);
        assert!(!has_handler(libc::SIGURG));
    }
}
