//! Memory that other threads may still be reading.
//!
//! `RtlLookupFunctionEntry` returns a pointer into a table, and who has it reads there, and the UNWIND_INFO, when the
//! system's lock is long open. So what is no longer registered stays as it is for longer than a thread takes for a frame.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::memory::Pages;
use crate::table::Entry;

/// For so long.
const REST: Duration = Duration::from_secs(1);

/// What is over, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Resting(VecDeque<(Instant, Over)>);

#[derive(Debug)]
#[expect(dead_code, reason = "it is kept, and not looked at")]
pub(crate) enum Over {
    Entries(Box<[Entry]>),
    Infos(Vec<Pages>),
}

impl Resting {
    pub(crate) fn put(&mut self, over: Over) {
        while self.0.front().is_some_and(|(since, _)| since.elapsed() >= REST) {
            self.0.pop_front();
        }
        self.0.push_back((Instant::now(), over));
    }
}
