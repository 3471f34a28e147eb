//! Chunks: which are in use, and whose room is used anew.

use std::ops::Range;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

use jitdump::RecordId;
use jitdump::extension::tail::MAGIC as TAIL_MAGIC;
use jitdump::extension::{chunk as chunk_item, tag};

use super::lanes::Held;
use super::layout::{
    CHUNK, FILLER_MIN, FIRST_CHUNK, FIRST_ITEM, HEAD_SIZE, PAYLOAD, TAIL, chunk, code, control,
    item_word, pair, record_word, unpair,
};
use super::memory::Errno;
use super::records::{State, pieces};
use super::table::{Table, Zeroable};
use super::{Log, STARVE};
use crate::latch::{Closed, Latch};

/// Room for groups in a chunk.
pub(crate) const ROOM: usize = CHUNK - HEAD_SIZE;
/// How much of a chunk must be dead for its room to be used anew: each search for room yields as much.
const WORTHWHILE: u64 = CHUNK as u64 / 8;

/// How many chunks are searched for room before a code is left out.
const SEARCHES: usize = 8;

/// While the log may still grow, room of the dead is used anew once the log has this share of its limit: until then
/// all that died is kept, for those who ask later.
const HISTORY: usize = 4;
/// How much of a chunk must be dead then: what lives has to be passed over one by one, which takes longer than new
/// memory if it is more than this.
const MOSTLY: u64 = CHUNK as u64 / 4 * 3;
/// How many chunks are looked at for that before the log grows.
const LOOKS: usize = 16;

/// What this process knows of the chunks. Readers outside do not see it, a fork's child has a copy.
#[derive(Debug)]
pub(crate) struct Chunks {
    table: Table<Chunk>,
    in_use: AtomicUsize,
    /// Where the next search for dead room begins.
    cursor: AtomicUsize,
    /// Held while chunks change hands.
    taking: Latch,
}

/// In a cache line of its own: each is another thread's.
#[derive(Debug)]
#[repr(align(64))]
struct Chunk {
    /// Whether a lane has it.
    held: AtomicBool,
    /// Codes written to it. Only who holds the chunk counts here.
    born: AtomicU32,
    /// Codes that died in it, and how many bytes they took, with the room that was left behind: see
    /// [`Deaths`].
    deaths: AtomicU64,
    /// Chunks from here on that were taken together: 1, or more at the head of a run, or 0 within one.
    run: AtomicU32,
    /// Changes when its room is about to be used anew, and when that is done: odd between the two.
    epoch: AtomicU64,
    /// When a code was written to it last, and when one died. The child of a fork tells by these, which are
    /// as they were then, what its parent did since.
    last_birth: AtomicU64,
    last_death: AtomicU64,
}

// SAFETY: atomics of which 0 is a value each, aligned to 64 bytes.
#[allow(unsafe_code)]
unsafe impl Zeroable for Chunk {}

/// Number and bytes in one word, so that one addition counts both.
#[derive(Clone, Copy, Debug, Default)]
struct Deaths(u64);

impl Deaths {
    const ONE: u64 = 1 << 40;

    fn codes(self) -> u32 {
        (self.0 / Self::ONE) as u32
    }

    fn bytes(self) -> u64 {
        self.0 % Self::ONE
    }
}

impl Chunk {
    /// Those that are counted have nobody any more who looks at their words.
    fn deaths(&self) -> Deaths {
        Deaths(self.deaths.load(Acquire))
    }

    /// Whether nothing lives in it, and something has.
    fn is_dead(&self) -> bool {
        let deaths = self.deaths();
        deaths.bytes() > 0 && deaths.codes() >= self.born.load(Relaxed) && !self.held.load(Acquire)
    }

    fn next_even_epoch(&self) -> u64 {
        let epoch = (self.epoch.load(Relaxed) + 2) & !1;
        self.epoch.store(epoch, Relaxed);
        epoch
    }

    /// So many codes live in it, and so many bytes are free.
    fn settle(&self, live: u32, dead: usize) {
        self.born.store(live, Relaxed);
        self.deaths.store(dead as u64, Relaxed);
    }
}

impl Chunks {
    pub(crate) fn new(count: usize) -> Result<Self, Errno> {
        Ok(Self {
            table: Table::new(count)?,
            in_use: AtomicUsize::new(0),
            cursor: AtomicUsize::new(0),
            taking: Latch::default(),
        })
    }

    #[inline]
    fn of(&self, at: usize) -> Option<&Chunk> {
        self.table.get(at.checked_sub(FIRST_CHUNK)? / CHUNK)
    }

    /// A code was written at `at`, by who holds the chunk.
    #[inline]
    pub(crate) fn born(&self, at: usize, time: u64) {
        if let Some(chunk) = self.of(at) {
            chunk.born.store(chunk.born.load(Relaxed).wrapping_add(1), Relaxed);
            chunk.last_birth.store(time, Relaxed);
        }
    }

    /// The code at `at` is about to die.
    pub(crate) fn dies(&self, at: usize, time: u64) {
        if let Some(chunk) = self.of(at) {
            chunk.last_death.fetch_max(time, Relaxed);
        }
    }

    pub(crate) fn died(&self, at: usize, size: u32) {
        if let Some(chunk) = self.of(at) {
            chunk.deaths.fetch_add(Deaths::ONE + u64::from(size), Release);
        }
    }

    pub(super) fn in_use(&self) -> usize {
        self.in_use.load(Acquire)
    }

    /// Until what is returned is dropped, no chunk changes hands.
    pub(super) fn taking(&self) -> Closed<'_> {
        self.taking.close()
    }

    pub(super) fn reset_latch(&self) {
        self.taking.reset();
    }

    /// When a code was written to the chunk last, and when one died, as this process knows.
    pub(super) fn last_times(&self, number: usize) -> (u64, u64) {
        self.table.get(number).map_or((0, 0), |chunk| {
            (chunk.last_birth.load(Relaxed), chunk.last_death.load(Relaxed))
        })
    }

    pub(super) fn live_in(&self, number: usize) -> u64 {
        self.table.get(number).map_or(0, |chunk| {
            chunk.born.load(Relaxed).saturating_sub(chunk.deaths().codes()).into()
        })
    }

    /// What is true of a chunk, or a run of them, in a fork's child.
    pub(super) fn settle(&self, number: usize, live: u32, dead: usize) {
        let Some(head) = self.table.get(number) else { return };
        head.settle(live, dead);
        let run = head.run.load(Relaxed) as usize;
        // A fork in the middle of splitting a run has left marks of single chunks within it.
        for chunk in self.table.iter().skip(number + 1).take(run.saturating_sub(1)) {
            chunk.run.store(0, Relaxed);
        }
    }

    /// No lane has any of the chunks, and nobody is changing one: in a fork's child.
    pub(super) fn let_go(&self) {
        for chunk in self.table.iter().take(self.in_use()) {
            chunk.held.store(false, Release);
            chunk.next_even_epoch();
        }
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

impl Log {
    /// Gives `lane` room for a group of `size` bytes: in its chunk, in a new one, or in one whose codes
    /// have died.
    #[cold]
    #[inline(never)]
    pub(crate) fn next_room(&self, lane: &Held<'_>, size: usize) -> Option<()> {
        let (at, end) = lane.room();
        if end != 0 {
            let number = (end - 1 - FIRST_CHUNK) / CHUNK;
            self.leave_behind(at, end);
            let chunk_end = start_of(number + 1);
            if self.next_gap(lane, end..chunk_end, size) {
                return Some(());
            }
            lane.set_room(0, 0);
            if let Some(chunk) = self.chunks.table.get(number) {
                chunk.held.store(false, Release);
            }
        }
        if self.starving.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            return None;
        }
        let taking = self.chunks.taking.close();
        // Room of the dead may lie in pieces that are too small for this code. Not all chunks are looked at
        // for one announcement: the search goes on from there the next time.
        for search in 0..SEARCHES {
            let early = if search == 0 { self.reuse_early(&taking) } else { None };
            let found = early
                .or_else(|| self.grow(1, &taking))
                .or_else(|| self.reuse(usize::MAX, WORTHWHILE, &taking));
            let Some(number) = found else { break };
            let start = start_of(number);
            if self.next_gap(lane, start + HEAD_SIZE..start + CHUNK, size) {
                return Some(());
            }
            // What is left of it is for smaller codes.
            if let Some(chunk) = self.chunks.table.get(number) {
                chunk.held.store(false, Release);
            }
        }
        self.starving.store(STARVE, Relaxed);
        None
    }

    /// The first filler in `range` with room for `size` bytes becomes the lane's.
    fn next_gap(&self, lane: &Held<'_>, range: Range<usize>, size: usize) -> bool {
        for piece in pieces(&self.mapping, range) {
            if piece.state != State::Filler {
                continue;
            }
            if piece.size >= size {
                lane.set_room(piece.at, piece.at + piece.size);
                return true;
            }
            self.leave_behind(piece.at, piece.at + piece.size);
        }
        false
    }

    /// Room that is not used now counts as dead: it may be joined with dead neighbours later.
    fn leave_behind(&self, at: usize, end: usize) {
        if let Some(chunk) = self.chunks.of(at).filter(|_| end > at) {
            chunk.deaths.fetch_add((end - at) as u64, Relaxed);
        }
    }

    /// Room for a group that is larger than a chunk, in chunks of its own.
    pub(crate) fn take_run(&self, size: usize) -> Option<(usize, usize)> {
        let count = (HEAD_SIZE + size).div_ceil(CHUNK);
        let taking = self.chunks.taking.close();
        let first = self.grow(count, &taking).or_else(|| self.join(count, &taking))?;
        let chunk = self.chunks.table.get(first)?;
        let at = start_of(first) + HEAD_SIZE;
        let end = start_of(first + count);
        let rest = end - at - size;
        let size = if rest < FILLER_MIN { end - at } else { size };
        if rest >= FILLER_MIN {
            self.fill(at + size, rest);
        }
        // Nothing is dead in it, so nobody takes it while the caller writes.
        chunk.held.store(false, Release);
        Some((at, size))
    }

    /// Takes `count` new chunks together.
    fn grow(&self, count: usize, _taking: &Closed<'_>) -> Option<usize> {
        let first = self.chunks.in_use.load(Relaxed);
        let new = self.chunks.table.get(first..first.checked_add(count)?)?;
        let (start, length) = (start_of(first), count * CHUNK);
        self.mapping.have(&self.backing, start, length).ok()?;
        self.mapping.populate(start, length).ok()?;
        for (number, chunk) in new.iter().enumerate() {
            chunk.run.store(if number == 0 { count as u32 } else { 0 }, Relaxed);
        }
        new.first()?.held.store(true, Relaxed);
        // One filler, whose word 0 comes first, so that there is no hole in front of it; then cut for the head.
        self.fill(start, length);
        self.fill(start + HEAD_SIZE, length - HEAD_SIZE);
        self.write_head(first, count);
        self.chunks.in_use.store(first + count, Release);
        let in_use = (first + count) as u32;
        self.mapping.half(control::CHUNKS).store(in_use, Release);
        Some(first)
    }

    /// Writes a chunk's first record; what follows it must be there already.
    pub(super) fn write_head(&self, number: usize, run: usize) {
        let start = start_of(number);
        let epoch = self.chunks.table.get(number).map_or(0, |chunk| chunk.epoch.load(Relaxed));
        let word = |at: usize, value| self.mapping.word(start + at).store(value, Relaxed);
        word(code::TIME, self.began.load(Relaxed));
        word(code::ADDRESS, 0);
        word(code::ENTRIES, 0);
        word(FIRST_ITEM, item_word(tag::CHUNK, 0, chunk_item::SIZE));
        word(chunk::EPOCH, epoch);
        word(chunk::SPAN, pair(run as u32, 0));
        let head = record_word(RecordId::DEBUG_INFO.0, HEAD_SIZE);
        self.mapping.word(start).store(head, Release);
        let tail = pair(TAIL_MAGIC, (PAYLOAD - FIRST_ITEM + chunk_item::SIZE) as u32);
        self.mapping.word(start + TAIL).store(tail, Release);
    }

    /// Tells readers that what they may have seen of the chunk is about to change.
    fn begin_change(&self, number: usize, chunk: &Chunk) {
        let epoch = (chunk.epoch.load(Relaxed) + 1) | 1;
        chunk.epoch.store(epoch, Relaxed);
        self.mapping.word(start_of(number) + chunk::EPOCH).store(epoch, Relaxed);
        fence(Release);
    }

    /// What of the chunk was to be used anew is room.
    fn end_change(&self, number: usize, chunk: &Chunk) {
        let epoch = chunk.next_even_epoch();
        self.mapping.word(start_of(number) + chunk::EPOCH).store(epoch, Release);
    }

    /// The chunk's epoch by the log, which readers see; `None` if it belongs to a run.
    pub(super) fn epoch(&self, number: usize) -> Option<u64> {
        let word = |at: usize| self.mapping.word(start_of(number) + at).load(Acquire);
        let is_head = unpair(word(TAIL)).0 == TAIL_MAGIC
            && word(FIRST_ITEM) == item_word(tag::CHUNK, 0, chunk_item::SIZE);
        is_head.then(|| word(chunk::EPOCH))
    }

    /// [`Self::reuse`] while the log may still grow: less memory is taken, and more of it is in the processor's cache.
    fn reuse_early(&self, taking: &Closed<'_>) -> Option<usize> {
        let (taken, limit) = self.extent();
        if taken < limit / HISTORY {
            return None;
        }
        self.reuse(LOOKS, MOSTLY, taking)
    }

    /// Takes a chunk of which so many bytes are dead, and makes room of that; it looks at so many chunks.
    fn reuse(&self, looks: usize, least: u64, _taking: &Closed<'_>) -> Option<usize> {
        if !self.options.reuse {
            return None;
        }
        let in_use = self.chunks.in_use.load(Relaxed);
        let cursor = self.chunks.cursor.load(Relaxed).min(in_use);
        let is_worthwhile = |number: &usize| {
            self.chunks.table.get(*number).is_some_and(|chunk| match chunk.run.load(Relaxed) {
                0 => false,
                1 => chunk.deaths().bytes() >= least && !chunk.held.load(Acquire),
                // Large codes want them whole, as long as there is other room.
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
            // Those that die from now on are counted again from nothing; the others are reclaimed, or found
            // alive here and counted as one of those.
            let deaths = Deaths(chunk.deaths.swap(0, Acquire));
            let live = chunk.born.load(Relaxed).saturating_sub(deaths.codes());
            chunk.born.store(live, Relaxed);
            if live == 0 {
                // To look at each would be to wait for memory, again and again.
                self.fill(start + HEAD_SIZE, ROOM);
            } else {
                self.reclaim(start + HEAD_SIZE..start + CHUNK);
            }
        }
        self.end_change(number, chunk);
        chunk.held.store(true, Relaxed);
        Some(number)
    }

    /// Joins dead groups and fillers in `range` to fillers.
    fn reclaim(&self, range: Range<usize>) {
        let mut room: Option<Range<usize>> = None;
        let close = |room: Option<Range<usize>>| {
            if let Some(room) = room {
                self.fill(room.start, room.len());
            }
        };
        // The words of a piece are read before the piece in front of it grows over them.
        for piece in pieces(&self.mapping, range) {
            if piece.state == State::Alive {
                close(room.take());
            } else {
                let end = piece.at + piece.size;
                room = Some(room.map_or(piece.at, |room| room.start)..end);
            }
        }
        close(room);
    }

    /// Whether nothing lives in the chunk or run, of which the counts say so: they are wrong where a runtime
    /// has unloaded a code twice.
    fn is_dead(&self, number: usize, chunk: &Chunk) -> bool {
        let end = start_of(number + chunk.run.load(Relaxed).max(1) as usize);
        let range = start_of(number) + HEAD_SIZE..end;
        chunk.is_dead() && pieces(&self.mapping, range).all(|piece| piece.state != State::Alive)
    }

    /// Makes single chunks of a run whose code has died, all of them empty.
    ///
    /// From its last chunk on, so that the log is valid at every step: all is behind one filler until the
    /// last step cuts it.
    fn split_run(&self, first: usize) {
        let Some(head) = self.chunks.table.get(first) else { return };
        let run = head.run.load(Relaxed) as usize;
        let start = start_of(first);
        self.fill(start + HEAD_SIZE, run * CHUNK - HEAD_SIZE);
        for number in (first + 1..first + run).rev() {
            let Some(chunk) = self.chunks.table.get(number) else { continue };
            chunk.next_even_epoch();
            self.fill(start_of(number) + HEAD_SIZE, ROOM);
            self.write_head(number, 1);
            chunk.settle(0, ROOM);
            chunk.run.store(1, Relaxed);
        }
        self.fill(start + HEAD_SIZE, ROOM);
        self.mapping.word(start + chunk::SPAN).store(pair(1, 0), Release);
        head.settle(0, 0);
        head.run.store(1, Relaxed);
    }

    /// Makes a run of neighbours in which nothing lives.
    fn join(&self, count: usize, _taking: &Closed<'_>) -> Option<usize> {
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
        // Runs among them become single chunks first: what is behind the new run stays of use.
        for number in first..end {
            let chunk = self.chunks.table.get(number)?;
            self.begin_change(number, chunk);
            if chunk.run.load(Relaxed) > 1 {
                self.split_run(number);
                chunk.settle(0, ROOM);
            }
        }
        let start = start_of(first);
        for (number, chunk) in self.chunks.table.get(first..first + count)?.iter().enumerate() {
            chunk.run.store(if number == 0 { count as u32 } else { 0 }, Relaxed);
            chunk.settle(0, 0);
        }
        self.mapping.word(start + chunk::SPAN).store(pair(count as u32, 0), Release);
        self.fill(start + HEAD_SIZE, count * CHUNK - HEAD_SIZE);
        // The run's code will be written over their heads, and over what a fork's child may be reading behind these.
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
