//! Lanes: the rooms in which threads write side by side.

use std::hint::spin_loop;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::thread;

/// As many threads as can announce at the very same moment without waiting. A thread that lost its
/// processor in the middle holds a lane, so there must be more than processors.
pub(crate) const LANES: usize = 32;

/// Room in the log that one thread at a time writes to.
///
/// In a cache line (on some processors, a pair of them) of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Lane {
    busy: AtomicBool,
    at: AtomicUsize,
    end: AtomicUsize,
    next_index: AtomicU64,
}

#[derive(Debug, Default)]
pub(crate) struct Lanes([Lane; LANES]);

/// A lane while a thread has it for itself.
#[derive(Debug)]
pub(crate) struct Held<'l> {
    lane: &'l Lane,
    number: usize,
}

impl Lanes {
    /// Takes the lane this thread used last, or the next that is free.
    ///
    /// All lanes start from the first one, so that a process of few threads fills few chunks.
    #[inline]
    pub(crate) fn enter(&self) -> Held<'_> {
        let number = thread::lane();
        self.try_lane(number).unwrap_or_else(|| self.find_lane(number))
    }

    #[inline]
    fn try_lane(&self, number: usize) -> Option<Held<'_>> {
        let lane = self.0.get(number)?;
        let is_ours = lane.busy.compare_exchange(false, true, Acquire, Relaxed).is_ok();
        // Not `then_some`: a `Held` that is made and dropped gives up the lane, whosever it is.
        is_ours.then(|| Held { lane, number })
    }

    #[cold]
    fn find_lane(&self, mut number: usize) -> Held<'_> {
        let mut tries = 0_usize;
        loop {
            number = (number + 1) % LANES;
            if let Some(held) = self.try_lane(number) {
                thread::set_lane(number);
                return held;
            }
            tries += 1;
            if tries.is_multiple_of(LANES) {
                // 32 threads are announcing at this moment, most of them without a processor.
                std::thread::yield_now();
            } else {
                spin_loop();
            }
        }
    }

    /// Takes all rooms from all threads: in the child of a fork, where those threads are not.
    pub(crate) fn reset(&self) {
        for lane in &self.0 {
            lane.at.store(0, Relaxed);
            lane.end.store(0, Relaxed);
            lane.busy.store(false, Release);
        }
    }
}

impl Held<'_> {
    /// Where the room begins and ends.
    #[inline]
    pub(crate) fn room(&self) -> (usize, usize) {
        (self.lane.at.load(Relaxed), self.lane.end.load(Relaxed))
    }

    #[inline]
    pub(crate) fn set_room(&self, at: usize, end: usize) {
        self.lane.at.store(at, Relaxed);
        self.lane.end.store(end, Relaxed);
    }

    #[inline]
    pub(crate) fn advance(&self, at: usize) {
        self.lane.at.store(at, Relaxed);
    }

    /// A number that no other code of the log has.
    #[inline]
    pub(crate) fn next_index(&self) -> u64 {
        let count = self.lane.next_index.load(Relaxed);
        self.lane.next_index.store(count + 1, Relaxed);
        count * LANES as u64 + self.number as u64
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.lane.busy.store(false, Release);
    }
}
