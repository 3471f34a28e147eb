//! Whether the log belongs to this process, or to the one that it was forked from.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use crate::log::{ForkPage, process_id};

/// One of the states below, for each process.
pub(crate) struct ForkState {
    /// The kernel clears it in the child of a fork.
    page: Option<ForkPage>,
    /// Used without that page: the process id (upper half) and its state. In another process, the value means [`UNKNOWN`].
    word: AtomicU64,
}

/// The child of a fork, before it has created its log.
pub(crate) const UNKNOWN: u32 = 0;
/// This process has its own log.
pub(crate) const OWN: u32 = 1;
/// The process has no log.
pub(crate) const ORPHAN: u32 = 3;

/// The state while this thread creates the child's log.
pub(crate) fn adopting(thread: u32) -> u32 {
    // Thread ids have 22 bits on Linux.
    thread << 2 | 2
}

impl ForkState {
    /// The state of a scribe without a log.
    pub(crate) const fn none() -> Self {
        Self { page: None, word: AtomicU64::new(0) }
    }

    /// The state of the process that creates the log.
    pub(crate) fn new(page: Option<ForkPage>) -> Self {
        let state = Self { page, word: AtomicU64::new(0) };
        state.set(OWN);
        state
    }

    /// The page.
    pub(crate) fn page(&self) -> Option<&ForkPage> {
        self.page.as_ref()
    }

    /// The state of this process.
    #[inline]
    pub(crate) fn get(&self) -> u32 {
        match &self.page {
            Some(page) => page.word().load(Acquire),
            None => Self::of(self.word.load(Acquire)),
        }
    }

    /// The state of this process, where one load is enough to get it.
    #[inline]
    pub(crate) fn get_from_page(&self) -> Option<u32> {
        self.page.as_ref().map(|page| page.word().load(Acquire))
    }

    /// Changes [`UNKNOWN`] to `adopting`. False if another thread was first.
    pub(crate) fn begin(&self, adopting: u32) -> bool {
        if let Some(page) = &self.page {
            return page.word().compare_exchange(UNKNOWN, adopting, AcqRel, Relaxed).is_ok();
        }
        let seen = self.word.load(Relaxed);
        Self::of(seen) == UNKNOWN
            && self.word.compare_exchange(seen, Self::word(adopting), AcqRel, Relaxed).is_ok()
    }

    /// Stores the state of this process.
    pub(crate) fn set(&self, state: u32) {
        match &self.page {
            Some(page) => page.word().store(state, Release),
            None => self.word.store(Self::word(state), Release),
        }
    }

    /// The state in a word, for this process.
    fn of(word: u64) -> u32 {
        if word >> 32 == u64::from(process_id()) { word as u32 } else { UNKNOWN }
    }

    fn word(state: u32) -> u64 {
        u64::from(process_id()) << 32 | u64::from(state)
    }
}
