//! Lanes: spaces in which threads write concurrently.

use std::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::spin_lock::{FailedWait, Patience};
use crate::thread;

/// Number of threads that can announce at the same time without waiting. A thread that is preempted during an announcement
/// holds a lane, so there must be more lanes than processors.
pub(crate) const LANES: usize = 32;

/// Space in the log to which one thread at a time writes.
///
/// In a cache line of its own (on some processors, a pair of them).
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Lane {
    /// 0, or the thread that holds it.
    busy: AtomicU32,
    at: AtomicUsize,
    end: AtomicUsize,
    next_index: AtomicU64,
    /// While a code larger than a chunk is written, the offset of its space, else 0.
    run: AtomicUsize,
}

#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: [Lane; LANES],
    failed_wait: FailedWait,
}

/// A lane that is held by a thread.
#[derive(Debug)]
pub(crate) struct HeldLane<'l> {
    lane: &'l Lane,
    number: usize,
}

impl Lanes {
    /// Takes the lane that this thread used last, or the next free one.
    ///
    /// All threads start at the first lane, so that a process with few threads fills few chunks. A signal handler that
    /// interrupts a thread with a lane takes another one. `None` if all are taken for too long.
    #[inline]
    pub(crate) fn enter(&self, thread: u32) -> Option<HeldLane<'_>> {
        let number = thread::lane();
        self.try_lane(number, thread).or_else(|| self.find_lane(number, thread))
    }

    #[inline]
    fn try_lane(&self, number: usize, thread: u32) -> Option<HeldLane<'_>> {
        let lane = self.lanes.get(number)?;
        let is_ours = lane.busy.compare_exchange(0, thread, Acquire, Relaxed).is_ok();
        // Not `then_some`: dropping a `HeldLane` releases the lane, even if another thread holds it.
        is_ours.then(|| HeldLane { lane, number })
    }

    #[cold]
    #[inline(never)]
    fn find_lane(&self, mut number: usize, thread: u32) -> Option<HeldLane<'_>> {
        let mut patience = Patience::default();
        loop {
            for _ in 0..LANES {
                number = (number + 1) % LANES;
                if let Some(held) = self.try_lane(number, thread) {
                    thread::set_lane(number);
                    self.failed_wait.forget();
                    return Some(held);
                }
            }
            // 32 threads are announcing at this moment, most of them preempted. A thread that already holds a lane, in an
            // announcement that a signal handler interrupted, does not wait: all lanes might be held in this way.
            let has_one = self.lanes.iter().any(|lane| lane.busy.load(Relaxed) == thread);
            // Nor does a thread wait again if a lane was not released in time: a thread that ended, or left a handler with
            // `siglongjmp`, holds its lane for ever.
            if has_one || self.failed_wait.was_recent() {
                return None;
            }
            if !patience.wait() {
                self.failed_wait.note();
                return None;
            }
        }
    }

    /// In the child of a fork: takes all lanes from threads that do not exist there. The thread that forked had the id
    /// `forked` in the parent. If it holds a lane, in an announcement that a signal handler interrupted to fork, it releases
    /// that lane itself.
    ///
    /// Such an announcement may continue to write to its space. Returns the offsets in the chunks that no other thread may get.
    pub(crate) fn reset(&self, forked: u32) -> [usize; 2 * LANES] {
        self.failed_wait.forget();
        let us = thread::id();
        let mut kept = [0; 2 * LANES];
        for (lane, kept) in self.lanes.iter().zip(kept.as_chunks_mut().0) {
            let end = lane.end.swap(0, Relaxed);
            lane.at.store(0, Relaxed);
            let run = lane.run.swap(0, Relaxed);
            if lane.busy.load(Relaxed) == forked {
                // This identifies it if this process forks, too.
                lane.busy.store(us, Relaxed);
                *kept = [end.saturating_sub(1), run];
            } else {
                lane.busy.store(0, Release);
            }
        }
        kept
    }
}

impl HeldLane<'_> {
    /// The start and end of its space.
    #[inline]
    pub(crate) fn space(&self) -> (usize, usize) {
        (self.lane.at.load(Relaxed), self.lane.end.load(Relaxed))
    }

    #[inline]
    pub(crate) fn set_space(&self, at: usize, end: usize) {
        self.lane.at.store(at, Relaxed);
        self.lane.end.store(end, Relaxed);
    }

    #[inline]
    pub(crate) fn advance(&self, at: usize) {
        self.lane.at.store(at, Relaxed);
    }

    /// Sets the offset of a code larger than a chunk while it is written; 0: done.
    pub(crate) fn set_run(&self, at: usize) {
        self.lane.run.store(at, Relaxed);
    }

    /// An index that no other code of the log has.
    #[inline]
    pub(crate) fn next_index(&self) -> u64 {
        let count = self.lane.next_index.load(Relaxed);
        self.lane.next_index.store(count + 1, Relaxed);
        count * LANES as u64 + self.number as u64
    }
}

impl Drop for HeldLane<'_> {
    fn drop(&mut self) {
        self.lane.busy.store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::{LANES, Lanes};

    #[test]
    fn lost_lanes_are_waited_for_once() {
        let lanes = Lanes::default();
        let held: Vec<_> = (0..LANES).map(|_| lanes.enter(1).unwrap()).collect();
        let began = std::time::Instant::now();
        for _ in 0..100 {
            assert!(lanes.enter(2).is_none());
        }
        assert!(began.elapsed().as_secs() < 3);
        drop(held);
        assert!(lanes.enter(2).is_some());
    }
}
