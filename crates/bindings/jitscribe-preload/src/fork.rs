//! The handlers that run before and after a fork.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::{guest, owner, streams, watch};

/// Whether the process that is about to fork holds the lock for it.
static IS_HELD: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> std::ffi::c_int;
}

/// Registers fork handlers. Forks that bypass the C library are detected afterwards.
pub(crate) fn register_handlers() {
    // SAFETY: functions without arguments that exist as long as the process: the library is never unloaded.
    unsafe { pthread_atfork(Some(prepare), Some(parent), Some(child)) };
}

/// Takes the lock, so that no thread is in the middle of anything when the child's memory is copied.
extern "C" fn prepare() {
    // What another thread, which forks as well, has written there stays.
    if owner::is_known() && guest::isolated(watch::lock_for_fork) {
        IS_HELD.store(true, Relaxed);
    }
}

extern "C" fn parent() {
    if IS_HELD.swap(false, Relaxed) {
        guest::isolated(watch::unlock_after_fork);
    }
}

extern "C" fn child() {
    if !owner::is_known() {
        return;
    }
    // What the parent began to write is not the child's.
    streams::forget_records();
    if IS_HELD.swap(false, Relaxed) {
        watch::reset_lock();
    }
    guest::isolated(watch::adopt_after_fork);
}
