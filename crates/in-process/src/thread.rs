//! Threads.
#![allow(unsafe_code)]

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread of this name (of which Linux keeps 15 bytes) that does `work`, and to which no signal goes.
///
/// A signal that is sent to a process is handled by any thread that does not block it (signal(7)). The handlers of a runtime
/// count on their own threads: on another they miss what these keep for themselves, and maybe the alternate stack. A fault of
/// the thread's own ends the process, with no handler asked.
///
/// # Errors
/// If the system gives no thread.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    with_signals_blocked(|| Builder::new().name(name.to_owned()).spawn(work))
}

/// Does `action` with all signals blocked in this thread, which a thread that it makes inherits.
#[cfg(unix)]
fn with_signals_blocked<T>(action: impl FnOnce() -> T) -> T {
    use std::mem::MaybeUninit;
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: both sets are filled by the calls, the first before it is read.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let done = action();
    // SAFETY: `before` was filled.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    done
}

/// There are none.
#[cfg(not(unix))]
fn with_signals_blocked<T>(action: impl FnOnce() -> T) -> T {
    action()
}
