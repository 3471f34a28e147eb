//! The signals that a thread blocks, which a thread that it makes inherits.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ptr;

/// Does `action` with all signals blocked in this thread, and unblocks those that were not.
pub(crate) fn with_all_blocked<T>(action: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: both sets are filled by the calls, the first before it is read.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let done = action();
    // SAFETY: `before` was filled.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    done
}
