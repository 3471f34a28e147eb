//! Registers each FDE by itself: for unwinders that keep them in a tree, or accept only one at a time.

use fallible::{Map, Refused};

use crate::entries::{Entry, Frames};
use crate::functions::Functions;
use crate::section::{Description, Single};

/// By the first byte of the code: its end, and the registration.
#[derive(Debug, Default)]
pub(crate) struct Singles(Map<u64, (u64, Single)>);

impl Singles {
    pub(crate) fn add(&mut self, functions: Functions, entry: &Entry) -> Result<(), Refused> {
        // New FDEs replace those of earlier code at the same addresses: two at one address are an error.
        self.forget(entry.code.start, entry.code.end);
        if let Some(description) = Description::new(entry)? {
            let single = Single::register(functions, description);
            // An entry that cannot be stored is dropped, which deregisters it.
            self.0
                .try_insert(entry.code.start, (entry.code.end, single))
                .map_err(|(refused, _)| refused)?;
        }
        Ok(())
    }

    /// All registered frames.
    pub(crate) fn all(&self) -> impl Iterator<Item = Frames<'_>> {
        self.0.iter().map(|(&start, (end, single))| single.description().frames(start, *end))
    }

    /// Removes all codes that overlap with this range.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        while let Some((&first, &(last, _))) = self.0.last_below(&end)
            && last > start
        {
            self.0.remove(&first);
        }
    }
}
