//! Whether the process was forked.
#![allow(unsafe_code)]

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static FORKS: AtomicU64 = AtomicU64::new(0);

/// How often this process was forked since it was asked for the first time, with the C library's knowledge.
pub(crate) fn forks() -> u64 {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function does nothing that may not be done between a fork and what follows it.
        unsafe { libc::pthread_atfork(None, Some(count), None) };
    });
    FORKS.load(Relaxed)
}

/// Called in the parent.
extern "C" fn count() {
    FORKS.fetch_add(1, Relaxed);
}

/// This process's id.
pub(crate) fn process_id() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}
