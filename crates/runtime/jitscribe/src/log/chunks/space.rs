//! Finds space for groups: in chunks of a lane, in new ones, or where codes have died.

use std::ops::Range;
use std::sync::atomic::{
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

use jitdump::RecordId;
use jitdump::extension::tail::MAGIC as TAIL_MAGIC;
use jitdump::extension::{chunk as chunk_item, tag};

use super::{CAPACITY, Chunk, Freed, start_of};

use crate::log::lanes::HeldLane;
use crate::log::layout::{
    CHUNK, FILLER_MIN, FIRST_CHUNK, FIRST_ITEM, HEAD_SIZE, PAYLOAD, TAIL, chunk, code, control,
    item_word, pair, record_word,
};
use crate::log::records::{State, pieces};
use crate::log::{LeftOutReason, Log};
use crate::spin_lock::Guard;

/// How much of a chunk must be dead for its space to be reused: each search for space gains at least this much.
const WORTHWHILE: u64 = CHUNK as u64 / 8;

/// How many chunks are searched for space before a code is left out.
const SEARCHES: usize = 8;

/// While the log may still grow, the space of dead codes is reused once the log has reached 1/HISTORY of its limit.
/// Until then, all dead codes are kept for later readers.
const HISTORY: usize = 4;
/// How much of a chunk must be dead then: live codes have to be skipped one by one, which takes longer than getting new
/// memory if there are many.
const MOSTLY: u64 = CHUNK as u64 / 4 * 3;
/// How many chunks are checked for that before the log grows.
const LOOKS: usize = 16;

/// Number of announcements between two searches for space when there is none.
const RETRY_AFTER: u32 = 64;

impl Log {
    /// Whether this announcement should not search for space; counts down.
    fn skips_search(&self) -> bool {
        let mut left = self.retry_after.load(Relaxed);
        // Instead of `fetch_update`, which is called `try_update` in Rust 1.99.
        while let Some(less) = left.checked_sub(1) {
            match self.retry_after.compare_exchange_weak(left, less, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => left = now,
            }
        }
        false
    }

    /// Gives `lane` space for a group of `size` bytes: in its chunk, in a new one, or in one whose codes have died.
    #[cold]
    #[inline(never)]
    pub(crate) fn next_space(&self, lane: &HeldLane<'_>, size: usize) -> Option<()> {
        let (at, end) = lane.space();
        if end != 0 {
            let number = (end - 1 - FIRST_CHUNK) / CHUNK;
            self.count_unused(at, end);
            let chunk_end = start_of(number + 1);
            if self.next_gap(lane, end..chunk_end, size) {
                return Some(());
            }
            lane.set_space(0, 0);
            if let Some(chunk) = self.chunks.table.get(number) {
                chunk.held.store(false, Release);
            }
        }
        if self.skips_search() {
            return None;
        }
        self.copy_inherited_in_time();
        crate::code_context::make_way();
        let Some(guard) = self.chunks.lock_owners() else {
            // There may be space: let the next announcement search for it.
            self.left_out_reason.set(LeftOutReason::Busy);
            return None;
        };
        // The space of dead codes may be in pieces that are too small for this code. One announcement does not check all
        // chunks; the next one continues the search.
        for search in 0..SEARCHES {
            let early = if search == 0 { self.reuse_early(&guard) } else { None };
            let found = early
                .or_else(|| self.grow(1, &guard))
                .or_else(|| self.reuse(usize::MAX, WORTHWHILE, &guard));
            let Some(number) = found else { break };
            let start = start_of(number);
            if self.next_gap(lane, start + HEAD_SIZE..start + CHUNK, size) {
                return Some(());
            }
            // The rest of it is for smaller codes.
            if let Some(chunk) = self.chunks.table.get(number) {
                chunk.held.store(false, Release);
            }
        }
        self.retry_after.store(RETRY_AFTER, Relaxed);
        None
    }

    /// Gives the lane the first filler in `range` with at least `size` bytes.
    fn next_gap(&self, lane: &HeldLane<'_>, range: Range<usize>, size: usize) -> bool {
        for piece in pieces(&self.mapping, range) {
            if piece.state != State::Filler {
                continue;
            }
            if piece.size >= size {
                lane.set_space(piece.at, piece.at + piece.size);
                return true;
            }
            self.count_unused(piece.at, piece.at + piece.size);
        }
        false
    }

    /// Counts unused space as dead: it may be joined with dead neighbours later.
    fn count_unused(&self, at: usize, end: usize) {
        if let Some(chunk) = self.chunks.of(at).filter(|_| end > at) {
            chunk.freed.fetch_add((end - at) as u64, Relaxed);
        }
    }

    /// Allocates space for a group that is larger than a chunk, in chunks of its own.
    pub(crate) fn take_run(&self, lane: &HeldLane<'_>, size: usize) -> Option<(usize, usize)> {
        let count = (HEAD_SIZE + size).div_ceil(CHUNK);
        if count > self.chunks.table.len() {
            self.left_out_reason.set(LeftOutReason::TooLarge);
            return None;
        }
        let Some(guard) = self.chunks.lock_owners() else {
            self.left_out_reason.set(LeftOutReason::Busy);
            return None;
        };
        let first = self.grow(count, &guard).or_else(|| self.join(count, &guard))?;
        let chunk = self.chunks.table.get(first)?;
        let at = start_of(first) + HEAD_SIZE;
        let end = start_of(first + count);
        let rest = end - at - size;
        let size = if rest < FILLER_MIN { end - at } else { size };
        if rest >= FILLER_MIN {
            self.fill(at + size, rest);
        }
        lane.set_run(at);
        // Nothing in it is dead, so no other thread takes it while the caller writes.
        chunk.held.store(false, Release);
        Some((at, size))
    }

    /// Allocates `count` new adjacent chunks.
    fn grow(&self, count: usize, _guard: &Guard<'_>) -> Option<usize> {
        let first = self.chunks.in_use.load(Relaxed);
        let Some(new) = self.chunks.table.get(first..first.checked_add(count)?) else {
            self.left_out_reason.set(LeftOutReason::Full);
            return None;
        };
        let (start, length) = (start_of(first), count * CHUNK);
        if let Err(cause) = self.mapping.have(&self.backing, start, length) {
            self.left_out_reason.set(LeftOutReason::Refused(cause));
            return None;
        }
        for (number, chunk) in new.iter().enumerate() {
            chunk.run.store(if number == 0 { count as u32 } else { 0 }, Relaxed);
        }
        new.first()?.held.store(true, Relaxed);
        // One filler, whose word 0 comes first, so that there is no hole in front of it; then split off the head.
        self.fill(start, length);
        self.fill(start + HEAD_SIZE, length - HEAD_SIZE);
        self.write_head(first, count);
        self.chunks.in_use.store(first + count, Release);
        let in_use = (first + count) as u32;
        self.mapping.half(control::CHUNKS).store(in_use, Release);
        Some(first)
    }

    /// Writes a chunk's first record. What follows it must already be written.
    pub(in crate::log) fn write_head(&self, number: usize, run: usize) {
        let start = start_of(number);
        let words = self.head_words(number, run);
        for at in (0..HEAD_SIZE).step_by(8).filter(|at| *at != 0 && *at != TAIL) {
            let word = words.get(at / 8).copied().unwrap_or_default();
            self.mapping.word(start + at).store(word, Relaxed);
        }
        self.mapping.word(start).store(words[0], Release);
        self.mapping.word(start + TAIL).store(words[TAIL / 8], Release);
    }

    /// The words of a chunk's first record.
    pub(in crate::log) fn head_words(&self, number: usize, run: usize) -> [u64; HEAD_SIZE / 8] {
        let mut words = [0; HEAD_SIZE / 8];
        words[0] = record_word(RecordId::DEBUG_INFO.0, HEAD_SIZE);
        words[code::TIME / 8] = self.began.load(Relaxed);
        words[TAIL / 8] = pair(TAIL_MAGIC, (PAYLOAD - FIRST_ITEM + chunk_item::SIZE) as u32);
        words[FIRST_ITEM / 8] = item_word(tag::CHUNK, 0, chunk_item::SIZE);
        words[chunk::EPOCH / 8] =
            self.chunks.table.get(number).map_or(0, |chunk| chunk.epoch.load(Relaxed));
        words[chunk::SPAN / 8] = pair(run as u32, 0);
        words
    }

    /// Tells readers that the content of the chunk is about to change.
    pub(in crate::log) fn begin_change_of(&self, number: usize) {
        if let Some(chunk) = self.chunks.table.get(number) {
            self.begin_change(number, chunk);
        }
    }

    /// Tells readers that the content of the chunk has changed.
    pub(in crate::log) fn end_change_of(&self, number: usize) {
        if let Some(chunk) = self.chunks.table.get(number) {
            self.end_change(number, chunk);
        }
    }

    fn begin_change(&self, number: usize, chunk: &Chunk) {
        let epoch = (chunk.epoch.load(Relaxed) + 1) | 1;
        chunk.epoch.store(epoch, Relaxed);
        self.mapping.word(start_of(number) + chunk::EPOCH).store(epoch, Relaxed);
        fence(Release);
    }

    /// Tells readers that the reused parts of the chunk are free space now.
    fn end_change(&self, number: usize, chunk: &Chunk) {
        let epoch = chunk.next_even_epoch();
        self.mapping.word(start_of(number) + chunk::EPOCH).store(epoch, Release);
    }

    /// Like [`Self::reuse`], while the log may still grow: this saves memory, and uses the processor's cache better.
    fn reuse_early(&self, guard: &Guard<'_>) -> Option<usize> {
        let (taken, limit) = self.extent();
        // Children of forks find the codes that were alive at the fork in this log, also those that have died since.
        if taken < limit / HISTORY || self.is_shared() {
            return None;
        }
        self.reuse(LOOKS, MOSTLY, guard)
    }

    /// Takes a chunk with at least `least` dead bytes, and frees them; checks `looks` chunks.
    fn reuse(&self, looks: usize, least: u64, _guard: &Guard<'_>) -> Option<usize> {
        if !self.options.reuse {
            return None;
        }
        let in_use = self.chunks.in_use.load(Relaxed);
        let cursor = self.chunks.cursor.load(Relaxed).min(in_use);
        let is_worthwhile = |number: &usize| {
            self.chunks.table.get(*number).is_some_and(|chunk| match chunk.run.load(Relaxed) {
                0 => false,
                1 => chunk.freed().bytes() >= least && !chunk.held.load(Acquire),
                // Large codes need them whole, as long as there is other space.
                _ => least <= WORTHWHILE && self.is_dead(*number, chunk),
            })
        };
        let mut searched = (cursor..in_use).chain(0..cursor).take(looks).inspect(|number| {
            self.chunks.cursor.store(number + 1, Relaxed);
        });
        let number = searched.find(is_worthwhile)?;
        let chunk = self.chunks.table.get(number)?;
        self.begin_change(number, chunk);
        if chunk.run.load(Relaxed) > 1 {
            self.split_run(number);
        } else {
            let start = start_of(number);
            // Deaths from now on are counted from zero. Those counted before are reclaimed, or the code is found alive here
            // and counted later.
            let freed = Freed(chunk.freed.swap(0, Acquire));
            let live = chunk.loads.load(Relaxed).saturating_sub(freed.codes());
            chunk.loads.store(live, Relaxed);
            if live == 0 {
                // Checking each group would wait for memory again and again.
                self.fill(start + HEAD_SIZE, CAPACITY);
            } else {
                self.reclaim(start + HEAD_SIZE..start + CHUNK);
            }
        }
        self.end_change(number, chunk);
        chunk.held.store(true, Relaxed);
        Some(number)
    }

    /// Joins dead groups and fillers in `range` into fillers.
    fn reclaim(&self, range: Range<usize>) {
        let mut space: Option<Range<usize>> = None;
        let fill_gap = |space: Option<Range<usize>>| {
            if let Some(space) = space {
                self.fill(space.start, space.len());
            }
        };
        // The words of a piece are read before the piece in front of it grows over them.
        for piece in pieces(&self.mapping, range) {
            if piece.state == State::Alive {
                fill_gap(space.take());
            } else {
                let end = piece.at + piece.size;
                space = Some(space.map_or(piece.at, |space| space.start)..end);
            }
        }
        fill_gap(space);
    }

    /// Checks that nothing is alive in a chunk or run whose counts say so: they are wrong if a runtime has unloaded a code
    /// twice.
    fn is_dead(&self, number: usize, chunk: &Chunk) -> bool {
        let end = start_of(number + chunk.run.load(Relaxed).max(1) as usize);
        let range = start_of(number) + HEAD_SIZE..end;
        chunk.is_dead() && pieces(&self.mapping, range).all(|piece| piece.state != State::Alive)
    }

    /// Splits a run whose code has died into single, empty chunks.
    ///
    /// It works backwards from the last chunk, so that the log is valid at every step: everything is behind one filler until
    /// the last step cuts it.
    fn split_run(&self, first: usize) {
        let Some(head) = self.chunks.table.get(first) else { return };
        let run = head.run.load(Relaxed) as usize;
        let start = start_of(first);
        self.fill(start + HEAD_SIZE, run * CHUNK - HEAD_SIZE);
        for number in (first + 1..first + run).rev() {
            let Some(chunk) = self.chunks.table.get(number) else { continue };
            chunk.next_even_epoch();
            self.fill(start_of(number) + HEAD_SIZE, CAPACITY);
            self.write_head(number, 1);
            chunk.settle(0, CAPACITY);
            chunk.run.store(1, Relaxed);
        }
        self.fill(start + HEAD_SIZE, CAPACITY);
        self.mapping.word(start + chunk::SPAN).store(pair(1, 0), Release);
        head.settle(0, 0);
        head.run.store(1, Relaxed);
    }

    /// Makes a run of adjacent chunks in which nothing is alive.
    fn join(&self, count: usize, _guard: &Guard<'_>) -> Option<usize> {
        if !self.options.reuse {
            return None;
        }
        let in_use = self.chunks.in_use.load(Relaxed);
        let table = self.chunks.table.get(..in_use)?;
        let mut first = 0;
        let mut number = 0;
        while let Some(chunk) = table.get(number) {
            let run = chunk.run.load(Relaxed).max(1) as usize;
            number += run;
            if !self.is_dead(number - run, chunk) {
                first = number;
            } else if number - first >= count {
                return self.join_range(first, number, count);
            }
        }
        None
    }

    fn join_range(&self, first: usize, end: usize, count: usize) -> Option<usize> {
        // Split runs among them first: the chunks behind the new run stay usable.
        for number in first..end {
            let chunk = self.chunks.table.get(number)?;
            self.begin_change(number, chunk);
            if chunk.run.load(Relaxed) > 1 {
                self.split_run(number);
                chunk.settle(0, CAPACITY);
            }
        }
        let start = start_of(first);
        for (number, chunk) in self.chunks.table.get(first..first + count)?.iter().enumerate() {
            chunk.run.store(if number == 0 { count as u32 } else { 0 }, Relaxed);
            chunk.settle(0, 0);
        }
        self.mapping.word(start + chunk::SPAN).store(pair(count as u32, 0), Release);
        self.fill(start + HEAD_SIZE, count * CHUNK - HEAD_SIZE);
        // The run's code will overwrite their heads, and what the child of a fork may be reading behind these.
        for number in first + 1..first + count {
            self.mapping.word(start_of(number) + TAIL).store(0, Relaxed);
        }
        fence(Release);
        for number in std::iter::once(first).chain(first + count..end) {
            self.end_change(number, self.chunks.table.get(number)?);
        }
        Some(first)
    }
}
