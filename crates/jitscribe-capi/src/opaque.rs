//! What C gets to hold: a scribe, and a code that was announced.

use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use jitscribe::Scribe;

/// Takes announcements of code. It lives as long as the process, and is never freed; use it from any
/// thread.
#[derive(Debug)]
pub struct OpaqueScribe {
    pub(crate) scribe: Scribe,
    next: AtomicPtr<OpaqueScribe>,
}

/// A code that was announced, to say later that it moved or is gone. A plain number, to be kept wherever
/// the runtime keeps what it knows of the code; forgetting it costs nothing, then the code counts as
/// alive. 0 if nothing was written: such a handle may be passed on as any other.
///
/// One thread at a time may use a handle.
pub type Handle = u64;

/// All that were opened, so that checkers for leaks find them though they are never freed.
static OPENED: AtomicPtr<OpaqueScribe> = AtomicPtr::new(std::ptr::null_mut());

impl OpaqueScribe {
    pub(crate) fn new(scribe: Scribe) -> &'static Self {
        let new = Box::into_raw(Box::new(Self { scribe, next: AtomicPtr::default() }));
        // SAFETY: from a box that nobody else has, and which is never freed.
        #[allow(unsafe_code)]
        let opened = unsafe { &*new };
        opened.next.store(OPENED.swap(new, Relaxed), Relaxed);
        opened
    }
}
