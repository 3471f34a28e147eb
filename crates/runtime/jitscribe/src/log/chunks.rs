//! Chunks: which are in use, and whose space is reused.

mod space;

use std::ops::Range;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

#[cfg(target_os = "linux")]
use guest::Holder;

use super::layout::{CHUNK, FIRST_CHUNK, HEAD_SIZE};
use super::memory::Errno;
use super::table::{Table, Zeroable};
use crate::spin_lock::{FailedWait, Guard, SpinLock};

/// Space for groups in a chunk.
pub(crate) const CAPACITY: usize = CHUNK - HEAD_SIZE;

/// This process's private state of the chunks. Readers do not see it, and the child of a fork has a copy.
#[derive(Debug)]
pub(crate) struct Chunks {
    table: Table<Chunk>,
    in_use: AtomicUsize,
    /// The chunk at which the next search for dead space begins.
    cursor: AtomicUsize,
    /// Held while chunks change owners.
    owner_lock: SpinLock,
    failed_wait: FailedWait,
}

/// In a cache line of its own, because each chunk belongs to another thread.
#[derive(Debug)]
#[repr(align(64))]
struct Chunk {
    /// Whether a lane has it.
    held: AtomicBool,
    /// Number of codes loaded into it. Only the holder of the chunk changes this.
    loads: AtomicU32,
    /// Number of codes that were unloaded in it and their bytes, plus the space that was left unused: see [`Freed`].
    freed: AtomicU64,
    /// Number of chunks from here on that were allocated together: 1, or more at the head of a run, or 0 within a run.
    run: AtomicU32,
    /// Changes before and after its space is reused: odd in between.
    epoch: AtomicU64,
    /// Time of the last load of a code, and of the last unload. The child of a fork has a copy from the time of the
    /// fork, and so detects what its parent did since.
    last_load: AtomicU64,
    last_unload: AtomicU64,
}

// SAFETY: atomics for which 0 is a valid value, aligned to 64 bytes.
#[allow(unsafe_code)]
unsafe impl Zeroable for Chunk {}

/// Count and bytes in one word, so that one addition updates both.
#[derive(Clone, Copy, Debug, Default)]
struct Freed(u64);

impl Freed {
    const ONE: u64 = 1 << 40;

    fn codes(self) -> u32 {
        (self.0 / Self::ONE) as u32
    }

    fn bytes(self) -> u64 {
        self.0 % Self::ONE
    }
}

impl Chunk {
    /// No thread accesses the words of the counted codes any more.
    fn freed(&self) -> Freed {
        Freed(self.freed.load(Acquire))
    }

    /// Whether all of its codes have died, and there was at least one.
    fn is_dead(&self) -> bool {
        let freed = self.freed();
        freed.bytes() > 0 && freed.codes() >= self.loads.load(Relaxed) && !self.held.load(Acquire)
    }

    fn next_even_epoch(&self) -> u64 {
        let epoch = (self.epoch.load(Relaxed) + 2) & !1;
        self.epoch.store(epoch, Relaxed);
        epoch
    }

    /// Sets the number of live codes, and of free bytes.
    fn settle(&self, live: u32, dead: usize) {
        self.loads.store(live, Relaxed);
        self.freed.store(dead as u64, Relaxed);
    }
}

impl Chunks {
    pub(crate) fn new(count: usize) -> Result<Self, Errno> {
        Ok(Self {
            table: Table::new(count)?,
            in_use: AtomicUsize::new(0),
            cursor: AtomicUsize::new(0),
            owner_lock: SpinLock::default(),
            failed_wait: FailedWait::default(),
        })
    }

    #[inline]
    fn of(&self, at: usize) -> Option<&Chunk> {
        self.table.get(at.checked_sub(FIRST_CHUNK)? / CHUNK)
    }

    /// Counts a code written at `at`, by the holder of the chunk.
    #[inline]
    pub(crate) fn count_load(&self, at: usize, time: u64) {
        if let Some(chunk) = self.of(at) {
            chunk.loads.store(chunk.loads.load(Relaxed).wrapping_add(1), Relaxed);
            chunk.last_load.store(time, Relaxed);
        }
    }

    /// Records that the code at `at` is about to be unloaded.
    pub(crate) fn note_unload(&self, at: usize, time: u64) {
        if let Some(chunk) = self.of(at) {
            chunk.last_unload.fetch_max(time, Relaxed);
        }
    }

    pub(crate) fn count_unload(&self, at: usize, size: u32) {
        if let Some(chunk) = self.of(at) {
            chunk.freed.fetch_add(Freed::ONE + u64::from(size), Release);
        }
    }

    pub(super) fn in_use(&self) -> usize {
        self.in_use.load(Acquire)
    }

    /// Where the last chunk in use ends. All before it has memory behind it.
    #[inline]
    pub(super) fn end(&self) -> usize {
        FIRST_CHUNK + self.in_use() * CHUNK
    }

    /// Prevents chunks from changing owners until the result is dropped.
    ///
    /// `None` if another thread holds them for too long: one that a crash or a debugger stopped.
    pub(super) fn lock_owners(&self) -> Option<Guard<'_>> {
        if self.failed_wait.was_recent() {
            return self.owner_lock.try_lock().inspect(|_| self.failed_wait.forget());
        }
        let (guard, has_failed) = self.owner_lock.lock_or_wait();
        if has_failed {
            self.failed_wait.note();
        }
        guard
    }

    /// [`Self::lock_owners`] for a signal handler on the thread with this id: it does not wait, and needs no memory of the thread.
    #[cfg(target_os = "linux")]
    pub(super) fn try_lock_owners(&self, thread: u32) -> Result<Guard<'_>, Holder> {
        self.owner_lock.try_lock_for(thread)
    }

    pub(super) fn reset_lock(&self) {
        self.failed_wait.forget();
        self.owner_lock.reset();
    }

    /// Time of the last load of a code into the chunk, and of the last unload, as this process knows.
    pub(super) fn last_times(&self, number: usize) -> (u64, u64) {
        self.table.get(number).map_or((0, 0), |chunk| {
            (chunk.last_load.load(Relaxed), chunk.last_unload.load(Relaxed))
        })
    }

    /// The time of the last change of any chunk, as this process knows.
    #[cfg(target_os = "linux")]
    pub(super) fn last_change(&self) -> u64 {
        let chunks = self.table.iter().take(self.in_use());
        let last =
            |chunk: &Chunk| chunk.last_load.load(Relaxed).max(chunk.last_unload.load(Relaxed));
        chunks.map(last).max().unwrap_or(0)
    }

    /// Makes the first `count` chunks unavailable to lanes, or available.
    #[cfg(target_os = "linux")]
    pub(super) fn hold_first(&self, count: usize, is_held: bool) {
        for chunk in self.table.iter().take(count) {
            chunk.held.store(is_held, Release);
        }
    }

    pub(super) fn live_in(&self, number: usize) -> u64 {
        self.table.get(number).map_or(0, |chunk| {
            chunk.loads.load(Relaxed).saturating_sub(chunk.freed().codes()).into()
        })
    }

    /// In the child of a fork: sets the state of a chunk, or of a run of chunks.
    pub(super) fn settle(&self, number: usize, live: u32, dead: usize) {
        let Some(head) = self.table.get(number) else { return };
        head.settle(live, dead);
        let run = head.run.load(Relaxed) as usize;
        // A fork while a run was being split has left marks of single chunks within it.
        for chunk in self.table.iter().skip(number + 1).take(run.saturating_sub(1)) {
            chunk.run.store(0, Relaxed);
        }
    }

    /// In the child of a fork: releases all chunks except those with the offsets `kept`. No thread is changing any chunk.
    pub(super) fn release_all_except(&self, kept: &[usize]) {
        for chunk in self.table.iter().take(self.in_use()) {
            chunk.held.store(false, Release);
            chunk.next_even_epoch();
        }
        for chunk in kept.iter().filter_map(|at| self.of(*at)) {
            chunk.held.store(true, Release);
        }
    }

    /// The range of the chunk or run that is in use at `number` or behind, without its head, and the number of the next
    /// chunk. Chunks in the middle of a run are skipped: the run was created after the chunk in front was checked.
    pub(super) fn range_from(&self, number: usize) -> Option<(Range<usize>, usize)> {
        let in_use = self.in_use.load(Acquire);
        let run = |number: usize| self.table.get(number).map_or(0, |chunk| chunk.run.load(Relaxed));
        let number = (number..in_use).find(|number| run(*number) > 0)?;
        let next = in_use.min(number + run(number) as usize);
        Some((start_of(number) + HEAD_SIZE..start_of(next), next))
    }

    /// The ranges of chunks in use, each run as one, without their heads.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let in_use = self.in_use.load(Acquire);
        let mut next = 0;
        std::iter::from_fn(move || {
            let number = next;
            let chunk = self.table.get(number).filter(|_| number < in_use)?;
            next = in_use.min(number + chunk.run.load(Relaxed).max(1) as usize);
            Some((number, start_of(number) + HEAD_SIZE..start_of(next)))
        })
    }
}

fn start_of(chunk: usize) -> usize {
    FIRST_CHUNK + chunk * CHUNK
}
