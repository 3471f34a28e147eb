//! Each description by itself: for unwinders that find it in a tree, or take no more than one at a time.

use std::collections::BTreeMap;

use crate::entries::{Entry, Frames};
use crate::found::Found;
use crate::section::{Description, Single};

/// By the first byte of the code: where it ends, and what is registered.
#[derive(Debug, Default)]
pub(crate) struct Singles(BTreeMap<u64, (u64, Single)>);

impl Singles {
    pub(crate) fn add(&mut self, found: Found, entry: &Entry) {
        // New descriptions take the place of those of code that was there: two at one place are an error.
        self.forget(entry.code.start, entry.code.end);
        if let Some(description) = Description::new(entry) {
            let single = Single::register(found, description);
            self.0.insert(entry.code.start, (entry.code.end, single));
        }
    }

    /// All that is known.
    pub(crate) fn all(&self) -> impl Iterator<Item = Frames<'_>> {
        self.0.iter().map(|(&start, (end, single))| single.description().frames(start, *end))
    }

    /// Forgets what lies here, wholly or not.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        while let Some((&first, &(last, _))) = self.0.range(..end).next_back()
            && last > start
        {
            self.0.remove(&first);
        }
    }
}
