//! What a forked child has not copied from its parent's log.
//!
//! The copy takes time in proportion to the parent's live codes, and most children end without touching any of these. So the child
//! first keeps its parent's log mapped a second time. Its own log has a filler at the positions of these codes, and the address of
//! the parent's log, which readers read as of the fork: codes that were announced later are not the child's, and codes that
//! the parent unloaded later are alive in the child.
//!
//! The child copies all of them once it unloads, moves or lists one of them, gives its log to someone, or forks a child that announces.
//! The parent reuses the space of dead codes only when its log is full, once a child has shared it; children that still announce
//! code copy before that.

use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use guest::Holder;
use jitdump::RecordId;
use jitdump::extension::log::{INHERITED_UNIT, IS_SHARED};
use jitdump::extension::tail::MAGIC as TAIL_MAGIC;

use super::Log;
use super::chunk_copy::ChunkCopy;
use super::commit;
use super::layout::{
    CHUNK, FILLER_MIN, FIRST_CHUNK, FIRST_ITEM, HEAD_SIZE, TAIL, chunk, code, control, pair,
    record_word, unpair,
};
use super::lookup::LogView;
use super::mapping::Mapping;
use super::memory::{Backing, Errno};
use crate::spin_lock::Guard;

/// Once the parent's log has this many quarters of its limit, its codes are copied.
const QUARTERS: usize = 3;

impl Log {
    /// Whether a child has read this log in place.
    pub(crate) fn is_shared(&self) -> bool {
        self.mapping.half(control::INHERITED).load(Relaxed) & IS_SHARED != 0
    }

    /// In the child of a fork, which has one thread: leaves all codes in the log of the parent, of which this is a second mapping,
    /// with so many chunks. Returns it if this is not possible.
    pub(crate) fn share(
        &self,
        parents: Mapping,
        in_use: usize,
        lock: &Guard<'_>,
    ) -> Result<(), Mapping> {
        let last = self.chunks.last_change();
        let place = u32::try_from(parents.address() / INHERITED_UNIT).unwrap_or(0);
        let length = in_use * CHUNK;
        let is_possible = matches!(self.backing, Backing::Memory(_))
            && last != 0
            && place != 0
            && parents.address().is_multiple_of(CHUNK as u64)
            && u32::try_from(length).is_ok()
            && !is_nearly_full(&parents)
            && self.mapping.have(&self.backing, FIRST_CHUNK, rustix::param::page_size()).is_ok();
        if !is_possible {
            return Err(parents);
        }
        parents.half(control::INHERITED).fetch_or(IS_SHARED, Relaxed);
        self.fill(FIRST_CHUNK + HEAD_SIZE, length - HEAD_SIZE);
        self.write_head(0, in_use);
        self.chunks.hold_first(in_use, true);
        self.inherited.parents.put(lock, parents);
        self.inherited.end.store(FIRST_CHUNK + length, Release);
        self.mapping.word(control::FORKED).store(last, Relaxed);
        self.mapping.half(control::INHERITED).store(place, Release);
        self.mapping.half(control::CHUNKS).store(in_use as u32, Release);
        Ok(())
    }

    /// Ensures that the log itself has the code at this offset, if there is one. `false` if that failed.
    #[inline]
    pub(crate) fn has_own_copy(&self, at: usize) -> bool {
        at >= self.inherited.end.load(Acquire) || self.copy_inherited()
    }

    /// Calls `look` with the parent's log, if codes are still there, and with our own. It takes no lock that another thread holds, and
    /// leaves the parent's log out in that case.
    pub(crate) fn each_view(&self, look: impl FnMut(LogView<'_>)) {
        self.each_view_with(self.own_view(), look);
    }

    /// The same with another view of our own log.
    pub(crate) fn each_view_with<'m>(
        &'m self,
        own: LogView<'m>,
        mut look: impl FnMut(LogView<'_>),
    ) {
        if self.inherited.end.load(Acquire) != 0 {
            let forked = self.mapping.word(control::FORKED).load(Relaxed);
            let mut with =
                |parents: &Mapping| look(LogView { mapping: parents, until: Some(forked) });
            let thread = crate::system::thread_id();
            // The mapping is unmapped under this lock. If it is held by the thread that a signal handler interrupted, it stays.
            match self.chunks.try_lock_owners(thread) {
                Ok(guard) => _ = self.inherited.parents.with(&guard, &mut with),
                Err(Holder::ThisThread) => _ = self.inherited.parents.with_own_lock(&mut with),
                Err(Holder::OtherThread) => {}
            }
        }
        look(own);
    }

    /// Copies the parent's codes before the parent may reuse their space.
    pub(crate) fn copy_inherited_in_time(&self) {
        if self.inherited.end.load(Acquire) == 0 {
            return;
        }
        let Some(guard) = self.chunks.lock_owners() else { return };
        let is_late = self.inherited.parents.with(&guard, is_nearly_full) == Some(true);
        drop(guard);
        if is_late {
            self.copy_inherited();
        }
    }

    /// Copies what is still in the parent's log. `false` if that failed.
    pub(crate) fn copy_inherited(&self) -> bool {
        self.inherited.end.load(Acquire) == 0 || self.copy_all_inherited()
    }

    #[cold]
    #[inline(never)]
    fn copy_all_inherited(&self) -> bool {
        let Some(guard) = self.chunks.lock_owners() else { return false };
        let end = self.inherited.end.load(Relaxed);
        if end == 0 {
            // Another thread has done it.
            return true;
        }
        let copied = self.inherited.parents.with(&guard, |parents| self.copy_from(parents, end));
        let Some(Ok(lost)) = copied else { return false };
        // Until here, readers find the codes in both logs.
        self.mapping.half(control::INHERITED).fetch_and(IS_SHARED, Release);
        self.chunks.hold_first((end - FIRST_CHUNK) / CHUNK, false);
        self.inherited.end.store(0, Release);
        drop(self.inherited.parents.take(&guard));
        if lost > 0 {
            self.left_out(lost);
        }
        true
    }

    /// Copies all codes before `end`. The first chunk comes last: until then, everything is behind its filler. Returns the number
    /// of codes that are lost.
    fn copy_from(&self, parents: &Mapping, end: usize) -> Result<u64, Errno> {
        let mut copy = ChunkCopy::new(&self.chunks)?;
        let shared = || self.chunks.ranges().take_while(|(_, range)| range.end <= end);
        for (number, range) in shared().skip(1) {
            copy.read(self, parents, number, range.clone());
            self.mapping.put(&self.backing, range.start - HEAD_SIZE, &copy.bytes)?;
            self.chunks.settle(number, copy.live, copy.space);
        }
        if let Some((number, range)) = shared().next() {
            self.mapping.have(&self.backing, range.start - HEAD_SIZE, range.len() + HEAD_SIZE)?;
            copy.read(self, parents, number, range.clone());
            self.begin_change_of(number);
            self.reveal(range, &copy.bytes);
            self.chunks.settle(number, copy.live, copy.space);
            self.end_change_of(number);
        }
        Ok(copy.lost)
    }

    /// Writes the content of the first chunk, and cuts the filler that covers all chunks.
    fn reveal(&self, range: Range<usize>, bytes: &[u8]) {
        let words: &[[u8; 8]] = bytes.as_chunks().0;
        let word_at = |at: usize| words.get(at / 8).map_or(0, |word| u64::from_ne_bytes(*word));
        let first = range.start;
        let start = first - HEAD_SIZE;
        let is_code = unpair(word_at(HEAD_SIZE + TAIL)).0 == TAIL_MAGIC;
        let behind = HEAD_SIZE + if is_code { FIRST_ITEM } else { FILLER_MIN };
        for at in (behind..bytes.len()).step_by(8) {
            self.mapping.word(start + at).store(word_at(at), Relaxed);
        }
        let words = |at: usize| word_at(HEAD_SIZE + at);
        if is_code {
            let group = self.mapping.words::<{ FIRST_ITEM / 8 }>(first);
            commit(group, words(0), words(TAIL), words(code::TIME), words(code::ADDRESS));
        } else {
            let size = unpair(words(0)).1 as usize;
            self.mapping.word(first).store(record_word(RecordId::DEBUG_INFO.0, size), Release);
        }
        let span = (range.len() + HEAD_SIZE).div_ceil(CHUNK) as u32;
        self.mapping.word(start + chunk::SPAN).store(pair(span, 0), Release);
    }
}

/// Whether the log at this mapping may be full soon.
fn is_nearly_full(log: &Mapping) -> bool {
    let chunks = log.half(control::CHUNKS).load(Relaxed) as u64 * CHUNK as u64;
    chunks.saturating_mul(4)
        >= log.word(control::LIMIT).load(Relaxed).saturating_mul(QUARTERS as u64)
}
