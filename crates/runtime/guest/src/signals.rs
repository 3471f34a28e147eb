//! Holding signals back, and protecting a thread from side effects of the C library's system calls.
#![allow(unsafe_code)]

use std::marker::PhantomData;

/// While this value exists, no signal handler runs on this thread, except for faults of the thread itself.
///
/// A handler that interrupts a thread which holds a lock, and takes the same lock, waits for ever. Faults (SIGSEGV and the like)
/// are not held back: the kernel ends a process that blocks a fault that it causes.
///
/// The thread cannot be cancelled meanwhile, and its `errno` is restored afterwards: see [`WithoutCancellation`].
#[derive(Debug)]
#[must_use = "signals are held until it is dropped"]
pub struct SignalsHeld {
    #[cfg(unix)]
    before: Option<libc::sigset_t>,
    // Dropped last: setting the mask may change `errno`.
    _thread: WithoutCancellation,
}

/// While this value exists, the thread cannot be cancelled (`pthread_cancel`). When it is dropped, `errno` is restored.
///
/// `read`, `write`, `nanosleep` and others are cancellation points: a thread that ends there keeps its locks for ever, and is
/// unwound through Rust frames. A handler that changes `errno` confuses the code that it interrupted.
#[derive(Debug)]
#[must_use = "the thread can be cancelled as soon as it is dropped"]
pub struct WithoutCancellation {
    #[cfg(target_os = "linux")]
    errno: libc::c_int,
    /// The previous state, if it could be set.
    #[cfg(target_os = "linux")]
    cancel_state: Option<libc::c_int>,
    /// Both belong to the thread.
    thread: PhantomData<*const ()>,
}

/// Signals that a thread raises by its own instructions.
#[cfg(unix)]
pub(crate) const FAULTS: [libc::c_int; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
];

/// Holds signals back from this thread. If the system refuses, they are not held back.
#[cfg(unix)]
pub fn hold_signals() -> SignalsHeld {
    use std::mem::MaybeUninit;
    let thread = without_cancellation();
    let mut held = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: the first set is filled by the first call, the second by the last one, if that succeeds.
    let before = unsafe {
        libc::sigfillset(held.as_mut_ptr());
        for fault in FAULTS {
            libc::sigdelset(held.as_mut_ptr(), fault);
        }
        let done = libc::pthread_sigmask(libc::SIG_BLOCK, held.as_ptr(), before.as_mut_ptr());
        (done == 0).then(|| before.assume_init())
    };
    SignalsHeld { before, _thread: thread }
}

/// There are no signals.
#[cfg(not(unix))]
pub fn hold_signals() -> SignalsHeld {
    SignalsHeld { _thread: without_cancellation() }
}

impl Drop for SignalsHeld {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(before) = &self.before {
            // SAFETY: the system filled the set.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
        }
    }
}

/// Protects this thread from being cancelled, and its `errno`.
#[cfg(target_os = "linux")]
pub fn without_cancellation() -> WithoutCancellation {
    // SAFETY: `errno` of this thread, which lives as long as the thread.
    let errno = unsafe { *errno_place() };
    WithoutCancellation {
        errno,
        cancel_state: set_cancel_state(CANCEL_DISABLE),
        thread: PhantomData,
    }
}

/// Does nothing on other systems.
#[cfg(not(target_os = "linux"))]
pub fn without_cancellation() -> WithoutCancellation {
    WithoutCancellation { thread: PhantomData }
}

impl Drop for WithoutCancellation {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        {
            if let Some(before) = self.cancel_state {
                set_cancel_state(before);
            }
            // SAFETY: as above. The value is not sent to another thread.
            unsafe { *errno_place() = self.errno };
        }
    }
}

/// `PTHREAD_CANCEL_DISABLE` and `PTHREAD_CANCEL_ENABLE` of glibc and musl.
#[cfg(target_os = "linux")]
const CANCEL_DISABLE: libc::c_int = 1;
#[cfg(all(test, target_os = "linux"))]
const CANCEL_ENABLE: libc::c_int = 0;

/// Sets whether the thread may be cancelled, and returns the previous state. It is not a cancellation point itself, and takes no
/// lock.
#[cfg(target_os = "linux")]
fn set_cancel_state(state: libc::c_int) -> Option<libc::c_int> {
    // The crate `libc` does not declare it.
    unsafe extern "C" {
        fn pthread_setcancelstate(state: libc::c_int, before: *mut libc::c_int) -> libc::c_int;
    }
    let mut before = 0;
    // SAFETY: this is POSIX's declaration. It writes to the given place, and only affects the calling thread.
    let failed = unsafe { pthread_setcancelstate(state, &raw mut before) };
    (failed == 0).then_some(before)
}

#[cfg(target_os = "linux")]
fn errno_place() -> *mut libc::c_int {
    // SAFETY: it has no arguments, and cannot fail.
    unsafe { libc::__errno_location() }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{CANCEL_DISABLE, CANCEL_ENABLE, errno_place, hold_signals, set_cancel_state};

    #[test]
    fn a_thread_that_holds_signals_is_not_cancelled_and_keeps_its_errno() {
        let set_errno = |errno| {
            // SAFETY: `errno` of this thread.
            unsafe { *errno_place() = errno };
        };
        set_errno(libc::ENOTTY);
        let held = hold_signals();
        let inner = hold_signals();
        set_errno(libc::EINTR);
        drop(inner);
        // As it was when `inner` was created; and cancellation is still off.
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(set_cancel_state(CANCEL_DISABLE), Some(CANCEL_DISABLE));
        set_errno(libc::EINTR);
        drop(held);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(set_cancel_state(CANCEL_ENABLE), Some(CANCEL_ENABLE));
    }
}
