//! Detects forks of the process.
#![allow(unsafe_code)]

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static FORKS: AtomicU64 = AtomicU64::new(0);

/// Number of forks of this process through the C library, since the first call.
pub(crate) fn forks() -> u64 {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler does nothing that is not allowed between a fork and what follows it.
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
    // Not rustix's function, which panics if a filter of system calls forbids it.
    std::process::id().cast_signed()
}
