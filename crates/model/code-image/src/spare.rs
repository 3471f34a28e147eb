//! Memory that is reused.

use std::sync::Mutex;

/// Maximum number of values kept: this many threads at a time find one.
const PLACES: usize = 8;

/// Values that were used before, kept for reuse.
///
/// They are not stored per thread: registering a thread-local destructor allocates memory, and the C library aborts
/// the process if the allocation is refused.
#[derive(Debug)]
pub(crate) struct Spare<T>([Mutex<Option<T>>; PLACES]);

impl<T> Spare<T> {
    pub(crate) const fn new() -> Self {
        Self([const { Mutex::new(None) }; PLACES])
    }

    /// Takes a value, if there is one that no other thread is taking at this moment.
    pub(crate) fn take(&self) -> Option<T> {
        // A lock that another thread held at a fork is never released in the child, so this must not wait.
        self.0.iter().find_map(|place| place.try_lock().ok()?.take())
    }

    /// Keeps a value, if there is a free place for it.
    pub(crate) fn keep(&self, value: T) {
        for place in &self.0 {
            if let Ok(mut place) = place.try_lock()
                && place.is_none()
            {
                *place = Some(value);
                return;
            }
        }
    }
}
