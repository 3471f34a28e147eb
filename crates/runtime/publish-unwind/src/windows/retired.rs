//! Memory that other threads may still be reading.
//!
//! `RtlLookupFunctionEntry` returns a pointer into a table. Its caller reads the entry and the UNWIND_INFO after the
//! system's lock has been released. So what is unregistered is kept unchanged for longer than a thread needs for a frame.

use std::time::{Duration, Instant};

use fallible::{Vec, VecDeque};

use super::memory::Pages;
use super::table::Entry;

/// How long memory is kept unchanged.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// Unregistered memory, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct RetiredMemory(VecDeque<(Instant, Retired)>);

#[derive(Debug)]
#[expect(dead_code, reason = "it is kept, and not looked at")]
pub(crate) enum Retired {
    Entries(Vec<Entry>),
    Infos(Vec<Pages>),
}

impl RetiredMemory {
    /// Frees it after a second; never, if an allocation for the list fails.
    pub(crate) fn put(&mut self, retired: Retired) {
        while self.0.front().is_some_and(|(since, _)| since.elapsed() >= GRACE_PERIOD) {
            self.0.pop_front();
        }
        if self.0.try_reserve(1).is_ok() {
            self.0.push_back((Instant::now(), retired));
        } else {
            std::mem::forget(retired);
        }
    }
}
