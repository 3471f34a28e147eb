//! The types that C holds: a scribe, and the handle of an announced code.
#![allow(unsafe_code)]

use std::sync::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use jitscribe::Scribe;

/// Receives announcements of code. It lives as long as the process, is never freed, and may be used from any thread.
#[derive(Debug)]
pub struct OpaqueScribe {
    pub(crate) scribe: Scribe,
    next: AtomicPtr<OpaqueScribe>,
}

/// The handle of an announced code, for announcing its move or unload. It is a plain number, to be kept with what the
/// runtime knows about the code. Dropping it costs nothing: the code then counts as alive. 0 if nothing was written; 0 may
/// be passed like any other handle.
///
/// Only one thread at a time may use a handle.
pub type Handle = u64;

/// All scribes that were opened. They are never freed; this list keeps leak checkers from reporting them.
static OPENED: AtomicPtr<OpaqueScribe> = AtomicPtr::new(std::ptr::null_mut());

/// The scribe that writes nothing.
static OFF: OpaqueScribe =
    OpaqueScribe { scribe: Scribe::off(), next: AtomicPtr::new(std::ptr::null_mut()) };

impl OpaqueScribe {
    /// The scribe that writes nothing, if the allocation fails.
    pub(crate) fn new(scribe: Scribe) -> &'static Self {
        if scribe == Scribe::off() {
            return &OFF;
        }
        let Ok(new) = fallible::leaked(Self { scribe, next: AtomicPtr::default() }) else {
            return &OFF;
        };
        let opened: *mut Self = new;
        new.next.store(OPENED.swap(opened, Relaxed), Relaxed);
        new
    }

    /// The scribe that writes nothing.
    pub(crate) fn off() -> &'static Self {
        &OFF
    }

    /// The scribe of [`Scribe::global`]: the same reference each time.
    pub(crate) fn global() -> &'static Self {
        static MADE: AtomicPtr<OpaqueScribe> = AtomicPtr::new(std::ptr::null_mut());
        // SAFETY: it is null, or was stored below from a reference that is valid for ever and that nothing writes through.
        let made = |made: *mut Self| unsafe { made.as_ref() };
        if let Some(made) = made(MADE.load(Acquire)) {
            return made;
        }
        let new = Self::new(Scribe::global());
        // A later call may succeed: memory may be available by then, or this thread may have finished creating the scribe.
        if std::ptr::eq(new, &raw const OFF) {
            return new;
        }
        let ours = std::ptr::from_ref(new).cast_mut();
        match MADE.compare_exchange(std::ptr::null_mut(), ours, AcqRel, Acquire) {
            Ok(_) => new,
            // Another thread was first. It is the same scribe.
            Err(first) => made(first).unwrap_or(new),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OpaqueScribe;

    #[test]
    fn all_threads_get_the_same_pointer_to_the_global_scribe() {
        let threads = std::array::from_fn::<_, 8, _>(|_| std::thread::spawn(OpaqueScribe::global));
        let first = OpaqueScribe::global();
        for thread in threads {
            assert!(std::ptr::eq(thread.join().unwrap(), first));
        }
        assert_eq!(first.scribe, jitscribe::Scribe::global());
        assert!(!std::ptr::eq(OpaqueScribe::new(first.scribe), first));
    }

    #[test]
    fn a_scribe_that_is_off_allocates_nothing() {
        let off = jitscribe::Scribe::off();
        assert!(std::ptr::eq(OpaqueScribe::new(off), OpaqueScribe::new(off)));
    }
}
