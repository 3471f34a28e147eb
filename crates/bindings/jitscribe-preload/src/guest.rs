//! Runs our code inside a call of the program, without side effects for the program.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::disabled::disable;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE` of glibc and musl.
const CANCEL_DISABLE: c_int = 1;

/// Runs `work` and preserves `errno`. The thread cannot be cancelled during the call. If `work` panics, the library stops
/// watching, and this returns the default.
pub(crate) fn isolated<R: Default>(work: impl FnOnce() -> R) -> R {
    // First and last: what is outside of it is in callgrind's profile. It preserves `errno` itself.
    let uncounted = ::guest::uncounted();
    let done = isolated_and_counted(work);
    drop(uncounted);
    done
}

/// Does the rest of [`isolated`]. A function of its own, because the registers that it saves would be saved before the thread is uncounted.
#[inline(never)]
fn isolated_and_counted<R: Default>(work: impl FnOnce() -> R) -> R {
    let errno = errno();
    let mut cancel = 0;
    // SAFETY: the state is one of the two, and the old state is written to a valid place.
    unsafe { pthread_setcancelstate(CANCEL_DISABLE, &raw mut cancel) };
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| {
        disable();
        // Its destructor could panic again.
        std::mem::forget(cause);
        R::default()
    });
    // SAFETY: restores the old state.
    unsafe { pthread_setcancelstate(cancel, std::ptr::null_mut()) };
    set_errno(errno);
    done
}

/// Runs `work` and preserves `errno`, where nothing else needs to be preserved.
pub(crate) fn with_errno_preserved<R>(work: impl FnOnce() -> R) -> R {
    let errno = errno();
    let done = work();
    set_errno(errno);
    done
}

fn errno() -> c_int {
    // SAFETY: `errno` of this thread, which exists as long as the thread.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
