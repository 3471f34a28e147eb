//! Doing something in the middle of a call of the program's, so that the program does not notice.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::watch;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE` of glibc and musl.
const CANCEL_DISABLE: c_int = 1;

/// Does it with `errno` as it was afterwards. A thread that is to be cancelled is not meanwhile, and if it panics nothing
/// is watched any more: then what is returned is the default.
pub(crate) fn quietly<R: Default>(work: impl FnOnce() -> R) -> R {
    let errno = errno();
    let mut cancel = 0;
    // SAFETY: the state is one of the two, and the old one is written to a place that is there.
    unsafe { pthread_setcancelstate(CANCEL_DISABLE, &raw mut cancel) };
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| {
        watch::give_up();
        // Its destructor could panic again.
        std::mem::forget(cause);
        R::default()
    });
    // SAFETY: the state is the one that it was.
    unsafe { pthread_setcancelstate(cancel, std::ptr::null_mut()) };
    set_errno(errno);
    done
}

/// Does it with `errno` as it was afterwards, where that is all there is to be kept.
pub(crate) fn with_errno_kept<R>(work: impl FnOnce() -> R) -> R {
    let errno = errno();
    let done = work();
    set_errno(errno);
    done
}

fn errno() -> c_int {
    // SAFETY: a thread's own number, which is there as long as the thread is.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
