//! Method ids: each is used once in the process.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
};

/// The ids that are not used yet.
#[derive(Debug)]
pub(crate) struct Ids(AtomicU32);

/// Those of the process, which all publishers share.
pub(crate) static IDS: Ids = Ids::new();

/// Other engines in the process may report their code to the same collector. Each counts from 1, as `iJIT_GetNewMethodID` does.
const FIRST: u32 = 1 << 30;
/// So many ids are apart the first ones of two copies of this library.
const DISTANCE: u32 = 1 << 20;

impl Ids {
    const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Three ids.
    #[cfg(test)]
    pub(crate) const fn with_few() -> Self {
        Self(AtomicU32::new(u32::MAX - 3))
    }

    /// Takes `count` ids in a row, and returns the first. `None` if there are not that many: an id that was used before would
    /// give its code the name of the other one.
    pub(crate) fn take(&self, count: u32) -> Option<u32> {
        if self.0.load(Relaxed) == 0 {
            // Another copy of this library, in another shared object, has this at another page.
            let page = (&raw const *self).addr() >> 12;
            let first = FIRST + (page % 1024) as u32 * DISTANCE;
            let _ = self.0.compare_exchange(0, first, SeqCst, SeqCst);
        }
        self.0.fetch_update(SeqCst, SeqCst, |next| next.checked_add(count)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_is_given_twice() {
        let ids = Ids::new();
        let first = ids.take(1).unwrap();
        assert!((FIRST..u32::MAX / 2).contains(&first), "{first:x}");
        assert_eq!([ids.take(3), ids.take(1)], [Some(first + 1), Some(first + 4)]);
    }

    #[test]
    fn ids_do_not_begin_again() {
        let ids = Ids::with_few();
        assert_eq!(ids.take(4), None);
        assert_eq!(ids.take(2), Some(u32::MAX - 3));
        assert_eq!([ids.take(2), ids.take(1), ids.take(1)], [None, Some(u32::MAX - 1), None]);
    }
}
