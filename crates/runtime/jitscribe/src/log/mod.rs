//! The code log: a jitdump in shared memory that many threads write without waiting for each other.
//!
//! `docs/format.md` specifies it, and explains why it is a valid dump at every instant.

#![cfg_attr(
    not(all(feature = "perf-map", target_os = "linux")),
    allow(dead_code, reason = "a fork's child and perf maps want more of it")
)]

mod alive;
mod breakpoints;
#[cfg(target_os = "linux")]
mod chunk_copy;
mod chunks;
#[cfg(target_os = "linux")]
mod crash_stream;
mod description;
#[cfg(target_os = "linux")]
mod fork;
mod group;
#[cfg(target_os = "linux")]
mod inheritance;
#[cfg(target_os = "linux")]
mod inherited;
mod lanes;
mod layout;
mod lookup;
mod machine;
mod mapping;
mod memory;
mod moved;
#[cfg(all(test, target_os = "linux"))]
mod observed;
#[cfg(test)]
mod plain;
mod put;
mod records;
mod symbolize;
#[cfg(all(test, target_os = "linux"))]
mod symbolize_tests;
mod table;
#[cfg(all(test, target_os = "linux"))]
mod tests;
mod usual;

use std::num::NonZeroU32;
#[cfg(target_os = "linux")]
use std::os::fd::BorrowedFd;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU32, AtomicU64,
    Ordering::{Relaxed, Release, SeqCst},
    compiler_fence,
};

use fallible::{PathText, Vec};
use jitdump::RecordId;
use jitdump::extension::tail::MAGIC as TAIL_MAGIC;
use jitdump::extension::{code as code_item, log as log_item, tag};

#[cfg(feature = "gdb")]
pub(crate) use self::breakpoints::{BREAKPOINTS_ROOM, has_breakpoint};
use self::chunks::Chunks;
use self::group::{Plan, Stamp, Tables};
use self::lanes::{HeldLane, Lanes};
use self::layout::{
    CHUNK, FILLER_MIN, FIRST_CHUNK, FIRST_ITEM, TAIL, code, control, item_word, pair, record_word,
    unpair,
};
pub(crate) use self::machine::MACHINE;
use self::mapping::{Mapping, Words};
#[cfg(target_os = "linux")]
pub(crate) use self::memory::retry;
use self::memory::{Backing, Errno};
pub(crate) use self::memory::{Failure, ForkPage};
use crate::clock::Clock;
use jit_code::Code;

/// The kind of memory of a log, and its limits.
#[derive(Clone, Debug)]
pub(crate) struct LogOptions {
    /// The file to create; `None`: memory.
    pub(crate) file: Option<PathText>,
    /// Maximum size in bytes.
    pub(crate) limit: usize,
    /// The initial value of [`control`](Log::control).
    pub(crate) control: u32,
    /// Whether the space of dead codes is reused. Not in a file, which is read afterwards.
    pub(crate) reuse: bool,
    /// The clock for timestamps.
    pub(crate) clock: Clock,
}

impl LogOptions {
    /// The same options, for when the file cannot be created.
    fn in_memory(self) -> Self {
        Self { file: None, limit: self.limit.min(MEMORY_LIMIT), reuse: true, ..self }
    }
}

/// 64 MiB: about 400,000 functions with names of 40 bytes.
pub(crate) const MEMORY_LIMIT: usize = 64 << 20;
/// The range of [`Position`].
const LARGEST: usize = match 32_usize.checked_mul(1 << 30) {
    Some(size) => size,
    None => 1 << 30,
};

/// The place of a code in the log: the offset of its group, in units of 8 bytes.
pub(crate) type Position = NonZeroU32;

/// The place of a code, and the low half of its index, which distinguishes it from a later code at the same place.
pub(crate) type LogEntry = (Position, u32);

/// The words of a group up to the end of its first item.
type GroupWords<'m> = Words<'m, { code::END / 8 }>;

/// A code in the log that was alive when it was looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveCode<'m> {
    at: usize,
    group: GroupWords<'m>,
}

/// A process's log.
#[derive(Debug)]
pub(crate) struct Log {
    mapping: Mapping,
    backing: Backing,
    chunks: Chunks,
    lanes: Lanes,
    #[cfg(target_os = "linux")]
    inherited: inheritance::Inheritance,
    pid: AtomicU32,
    /// The timestamp in the file's header, which all records have that describe no code.
    began: AtomicU64,
    /// Number of announcements that will not search for space, after a search found none.
    retry_after: AtomicU32,
    /// The reason for the last code that was left out.
    left_out_reason: AtomicLeftOutReason,
    /// Whether unwind info was refused, or all descriptions are checked.
    is_suspicious: AtomicBool,
    options: LogOptions,
}

/// Prefetch distance behind a group, and maximum length: far enough that the memory arrives in time, and less than a processor
/// fetches at once.
const AHEAD: usize = 2048;
const MOST_AHEAD: usize = 2048;

/// Why a code was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftOutReason {
    /// The log has reached its limit.
    Full,
    /// The code needs more than the whole log may have, or than a record can hold.
    TooLarge,
    /// Other threads held the log for too long, or this thread holds it itself and was interrupted by a signal handler.
    Busy,
    /// The log is below its limit, but the system did not provide more memory.
    Refused(Errno),
    /// There was no memory for building the unwind tables.
    Memory,
}

/// A [`LeftOutReason`] that threads share: its number, or the negated error number of the system.
#[derive(Debug, Default)]
pub(crate) struct AtomicLeftOutReason(AtomicI32);

impl AtomicLeftOutReason {
    fn set(&self, left_out_reason: LeftOutReason) {
        let number = match left_out_reason {
            LeftOutReason::Full => 0,
            LeftOutReason::TooLarge => 1,
            LeftOutReason::Busy => 2,
            LeftOutReason::Memory => 3,
            LeftOutReason::Refused(cause) => cause.raw_os_error().saturating_neg().min(-1),
        };
        self.0.store(number, Relaxed);
    }

    fn get(&self) -> LeftOutReason {
        match self.0.load(Relaxed) {
            1 => LeftOutReason::TooLarge,
            2 => LeftOutReason::Busy,
            3 => LeftOutReason::Memory,
            cause if cause < 0 => {
                LeftOutReason::Refused(Errno::from_raw_os_error(cause.saturating_neg()))
            }
            _ => LeftOutReason::Full,
        }
    }
}

/// The name of a process's dump, which perf requires.
pub(crate) fn dump_name(pid: u32) -> Result<fallible::Text, fallible::Refused> {
    fallible::attempt(|| fallible::text!("jit-{pid}.dump"))
}

impl Log {
    /// The version of the format.
    pub(crate) const VERSION: u32 = log_item::VERSION;

    /// Creates a log in a file, else in a memfd, else in anonymous memory. Calls `complain` for each alternative that is not
    /// available.
    pub(crate) fn create(
        mut options: LogOptions,
        mut complain: impl FnMut(Failure, &str),
    ) -> Result<Self, Failure> {
        if let Some(path) = options.file.take() {
            match Backing::new_file(&path) {
                Ok((backing, path)) => match Self::begin_in(backing, options.clone()) {
                    Ok(log) => return Ok(log),
                    Err(failure) => {
                        // It has no records, so it is not needed.
                        self::memory::remove(&path);
                        complain(failure, "the code log stays in memory");
                    }
                },
                Err(failure) => complain(failure, "the code log stays in memory"),
            }
            options = options.in_memory();
        }
        let memory = Backing::memory().and_then(|backing| Self::begin_in(backing, options.clone()));
        memory.or_else(|failure| {
            let Some(backing) = Backing::instead() else { return Err(failure) };
            complain(failure, "the code log lies in anonymous memory");
            Self::begin_in(backing, options)
        })
    }

    fn begin_in(backing: Backing, options: LogOptions) -> Result<Self, Failure> {
        let count = (options.limit.min(LARGEST).saturating_sub(FIRST_CHUNK) / CHUNK).max(1);
        // Growing a file beyond its limit raises a signal.
        let count = count.min(backing.most().saturating_sub(FIRST_CHUNK) / CHUNK);
        if count == 0 {
            let what = "the limit on file sizes (ulimit -f) leaves no room for a code log";
            return Err(Failure::of(what, Errno::FBIG));
        }
        let mut size = FIRST_CHUNK + count * CHUNK;
        let map = |size: usize| {
            let mapping = Mapping::new(&backing, size)?;
            Ok((mapping, Chunks::new((size - FIRST_CHUNK) / CHUNK)?))
        };
        // An address space limit may leave less space than the log's limit.
        let (mapping, chunks) = loop {
            match map(size) {
                Ok(mapped) => break mapped,
                Err(cause) if size <= FIRST_CHUNK + CHUNK => {
                    return Err(Failure::of("mapping the code log", cause));
                }
                Err(_) => size = FIRST_CHUNK + ((size - FIRST_CHUNK) / CHUNK / 2).max(1) * CHUNK,
            }
        };
        backing.set_size(size).map_err(|cause| Failure::of("the size of the code log", cause))?;
        let pid = process_id();
        let log = Self {
            mapping,
            backing,
            chunks,
            lanes: Lanes::default(),
            #[cfg(target_os = "linux")]
            inherited: inheritance::Inheritance::default(),
            pid: AtomicU32::new(pid),
            began: AtomicU64::new(0),
            retry_after: AtomicU32::new(0),
            left_out_reason: AtomicLeftOutReason::default(),
            is_suspicious: AtomicBool::new(false),
            options,
        };
        log.begin(pid)?;
        Ok(log)
    }

    /// Writes what precedes the chunks.
    fn begin(&self, pid: u32) -> Result<(), Failure> {
        let failed = |cause| Failure::of("room for the code log", cause);
        self.mapping.have(&self.backing, 0, FIRST_CHUNK).map_err(failed)?;
        #[cfg(target_os = "linux")]
        if let Backing::File(file, path) = &self.backing {
            let failed = |cause| Failure::at(path.get().as_path(), cause);
            let file = file.get().ok_or(Errno::BADF);
            file.and_then(memory::map_marker).map_err(failed)?;
        }
        let mut header = [0; control::RECORD];
        // The child of a fork keeps the value: its fillers are copies of the parent's.
        let now = match self.began.load(Relaxed) {
            0 => self.options.clock.now(),
            began => began,
        };
        self.began.store(now, Relaxed);
        group::write_file_header(&mut header, MACHINE, pid, now, self.options.clock);
        for (at, word) in header.chunks_exact(8).enumerate().skip(1) {
            self.mapping
                .word(8 * at)
                .store(u64::from_ne_bytes(word.try_into().unwrap_or_default()), Relaxed);
        }
        let word = |at, value| self.mapping.word(at).store(value, Relaxed);
        word(control::VERSION, pair(log_item::VERSION, CHUNK as u32));
        word(control::CHUNKS, pair(0, self.options.control));
        word(control::LIMIT, self.mapping.size() as u64);
        word(control::RECORD + FIRST_ITEM, item_word(tag::LOG, 0, log_item::SIZE));
        word(control::BREAKPOINTS_ITEM, item_word(tag::BREAKPOINTS, 0, control::BREAKPOINTS_SIZE));
        let items = (FIRST_CHUNK - control::RECORD - FIRST_ITEM) as u32;
        word(control::RECORD + TAIL, pair(TAIL_MAGIC, items));
        word(control::RECORD + code::TIME, now);
        let record = record_word(RecordId::DEBUG_INFO.0, FIRST_CHUNK - control::RECORD);
        self.mapping.word(control::RECORD).store(record, Release);
        // The magic comes last: a reader that searches memory for logs finds only complete ones.
        let magic = u64::from_ne_bytes(header.first_chunk().copied().unwrap_or_default());
        self.mapping.word(0).store(magic, Release);
        Ok(())
    }

    /// The control word, which contains requests. Other processes may write it.
    #[inline]
    pub(crate) fn control(&self) -> &AtomicU32 {
        self.mapping.half(control::CONTROL)
    }

    #[inline(never)]
    fn load_in_full(&self, code: &Code<'_>, with_bytes: bool, tid: u32) -> Option<LogEntry> {
        let mut space = Vec::new();
        let Ok(frames) = group::unwind_tables(code, with_bytes, &mut space, || self.suspect(true))
        else {
            self.refused();
            return None;
        };
        let (eh_frame, eh_frame_hdr) = space.split_at_checked(frames).unwrap_or_default();
        let tables = Tables { eh_frame, eh_frame_hdr };
        let mut plan = Plan::default();
        plan.measure(code, tables, with_bytes);
        if !plan.fits() {
            self.left_out_reason.set(LeftOutReason::TooLarge);
            self.left_out(1);
            return None;
        }
        let (items, behind) = (plan.items(), plan.behind());
        self.write_group(plan.size, behind, items, code.address, tid, |space, stamp| {
            plan.write(space, code, tables, stamp);
        })
    }

    /// Whether unwind info was refused since the last [`suspect(false)`](Self::suspect).
    #[inline]
    pub(crate) fn is_suspicious(&self) -> bool {
        self.is_suspicious.load(Relaxed)
    }

    /// Has the descriptions of codes checked from now on, or only those that are refused.
    #[cold]
    pub(crate) fn suspect(&self, all: bool) {
        self.is_suspicious.store(all, Relaxed);
    }

    /// Counts a code that was left out because an allocation failed.
    #[cold]
    pub(crate) fn refused(&self) {
        self.left_out_reason.set(LeftOutReason::Memory);
        self.left_out(1);
    }

    /// Allocates space for a group of `size` bytes, calls `write` to fill it from its first item on, and commits it. `behind` is
    /// the size of the records behind the first, whose tail has `items` bytes.
    #[inline]
    fn write_group(
        &self,
        size: usize,
        behind: usize,
        items: usize,
        address: u64,
        tid: u32,
        write: impl FnOnce(&mut [u8], Stamp),
    ) -> Option<LogEntry> {
        let pid = self.pid.load(Relaxed);
        let Some(lane) = self.lanes.enter(tid) else {
            self.left_out_reason.set(LeftOutReason::Busy);
            self.left_out(1);
            return None;
        };
        let Some((at, size)) = self.reserve(&lane, size) else {
            self.is_lost(&lane, pid);
            drop(lane);
            self.left_out(1);
            return None;
        };
        if self.is_lost(&lane, pid) {
            return None;
        }
        let stamp = Stamp { time: self.options.clock.now(), pid, tid, index: lane.next_index() };
        // The same size as this group: the next ones are probably as large, and find it in the cache.
        self.mapping.prefetch(at + AHEAD, size.min(MOST_AHEAD));
        // SAFETY: the lane is ours, and the space was cut from it or from a run that is ours. Others in this process read these
        // bytes only once the group is committed, which is not before the stores below. Every chunk in use has memory behind it.
        #[allow(unsafe_code)]
        let (group, space) = unsafe { self.mapping.exclusive_bytes(at, size) }?;
        write(space, stamp);
        if self.is_lost(&lane, pid) {
            return None;
        }
        let first = record_word(RecordId::DEBUG_INFO.0, size - behind);
        commit(group, first, pair(TAIL_MAGIC, items as u32), stamp.time, address);
        if self.is_lost(&lane, pid) {
            self.uncommit(at, size);
            return None;
        }
        self.chunks.count_load(at, stamp.time);
        if size > chunks::CAPACITY {
            lane.set_run(0);
        }
        drop(lane);
        Some((position(at)?, stamp.index as u32))
    }

    /// Restores the filler over whose beginning a group was written in the child of a fork, when the writing began in the parent.
    /// The child has zeros up to the next group, or the end of the chunk or the run.
    #[cold]
    #[inline(never)]
    fn uncommit(&self, at: usize, size: usize) {
        let limit = FIRST_CHUNK + (at + size - FIRST_CHUNK).next_multiple_of(CHUNK);
        let mut behind = (at + size..limit).step_by(8);
        let end = behind.find(|at| self.mapping.word(*at).load(Relaxed) != 0);
        self.fill(at, end.unwrap_or(limit) - at);
    }

    /// Whether this process is no longer `pid`, for which the lane was entered: a signal handler forked and announced in the
    /// child, and the announcement that it interrupted now continues there. The child's log is a different one, in which the
    /// space is not the lane's. No other thread [has its chunk](Lanes::reset), so what was written to it is within a filler.
    #[inline]
    fn is_lost(&self, lane: &HeldLane<'_>, pid: u32) -> bool {
        // The handler ran on this thread, so only the compiler could move the writes behind the check.
        compiler_fence(SeqCst);
        let is_lost = self.pid.load(Relaxed) != pid;
        if is_lost {
            lane.set_space(0, 0);
        }
        is_lost
    }

    /// Unloads a code.
    #[inline]
    pub(crate) fn end(&self, LiveCode { at, group }: LiveCode<'_>) {
        // Read it first: once the code is dead, the space may be reused.
        let size = unpair(group.at::<{ code::GROUP_SIZE }>().load(Relaxed)).0;
        let now = self.options.clock.now();
        // Record the time first: a code that the child of a fork finds dead without this record died after the fork.
        self.chunks.note_unload(at, now);
        // Count each death once, even if two threads unload the same code by mistake at the same time: the counts decide when
        // space is reused.
        let died = group.at::<{ code::DIED }>();
        if died.compare_exchange(0, now, Release, Relaxed).is_ok() {
            self.chunks.count_unload(at, size);
        }
    }

    /// The code with this index at `position`, if it is alive.
    #[inline]
    pub(crate) fn living(&self, position: Position, index: u32) -> Option<LiveCode<'_>> {
        let (at, group) = self.code_at(position, index)?;
        (group.at::<{ code::DIED }>().load(Relaxed) == 0).then_some(LiveCode { at, group })
    }

    /// Offset and words of the code with this index at `position`, alive or dead. `None` if there is no such code: the handle may
    /// be stale. Where space was reused, any part of another code may be there, so this checks more than the index.
    #[inline]
    fn code_at(&self, position: Position, index: u32) -> Option<(usize, GroupWords<'_>)> {
        let at = position.get() as usize * 8;
        // Any number may be given for a handle. Behind the chunks in use, the mapping may have no memory.
        if at + code::END > self.chunks.end() || !self.has_own_copy(at) {
            return None;
        }
        let group = self.mapping.words::<{ code::END / 8 }>(at);
        let is_code = group.at::<{ code::INDEX }>().load(Relaxed) as u32 == index
            && group.at::<FIRST_ITEM>().load(Relaxed) == item_word(tag::CODE, 0, code_item::SIZE)
            && unpair(group.at::<TAIL>().load(Relaxed)).0 == TAIL_MAGIC;
        is_code.then_some((at, group))
    }

    /// There is no fork, and so no child that could adopt the log.
    #[cfg(windows)]
    pub(crate) fn adopt(&self, _: u32, _: bool) -> Result<(), Failure> {
        Ok(())
    }

    /// The child of a fork has no log there. macOS' own libraries do not support children that do not execute a program either.
    #[cfg(target_os = "macos")]
    pub(crate) fn adopt(&self, _: u32, _: bool) -> Result<(), Failure> {
        Err(Failure::of("a code log in the child of a fork", Errno::NOTSUP))
    }

    #[cfg(not(target_os = "linux"))]
    #[inline]
    fn has_own_copy(&self, _: usize) -> bool {
        true
    }

    #[cfg(not(target_os = "linux"))]
    fn copy_inherited_in_time(&self) {}

    #[cfg(not(target_os = "linux"))]
    fn is_shared(&self) -> bool {
        false
    }

    /// The descriptor of the log's file, if it has one, and the host has not closed it.
    #[cfg(target_os = "linux")]
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.backing.fd()
    }

    /// The reason for the last code that was left out.
    pub(crate) fn left_out_reason(&self) -> LeftOutReason {
        self.left_out_reason.get()
    }

    /// The path of the log's file, if it is in one.
    pub(crate) fn path(&self) -> Option<PathText> {
        #[cfg(target_os = "linux")]
        match &self.backing {
            Backing::File(_, path) => PathText::new(path.get()),
            Backing::Memory(_) | Backing::Anonymous => None,
        }
        #[cfg(target_os = "macos")]
        return self.backing.path();
        #[cfg(windows)]
        None
    }

    /// Cuts space for a group of `size` bytes from the lane. Returns its offset and size, which may be a little larger.
    #[inline]
    fn reserve(&self, lane: &HeldLane<'_>, size: usize) -> Option<(usize, usize)> {
        let (at, end) = lane.space();
        match end.checked_sub(at).and_then(|space| space.checked_sub(size)) {
            Some(rest) if rest >= FIRST_ITEM => {
                self.fill(at + size, rest);
                lane.advance(at + size);
                Some((at, size))
            }
            _ => self.reserve_elsewhere(lane, size),
        }
    }

    /// Like [`Self::reserve`], when the lane has little or not enough space left.
    #[cold]
    #[inline(never)]
    fn reserve_elsewhere(&self, lane: &HeldLane<'_>, size: usize) -> Option<(usize, usize)> {
        loop {
            let (at, end) = lane.space();
            if let Some(rest) = end.checked_sub(at).and_then(|space| space.checked_sub(size)) {
                let size = if rest < FILLER_MIN { end - at } else { size };
                if rest >= FILLER_MIN {
                    self.fill(at + size, rest);
                }
                lane.advance(at + size);
                return Some((at, size));
            }
            if size > chunks::CAPACITY {
                return self.take_run(lane, size);
            }
            self.next_space(lane, size)?;
        }
    }

    /// Writes a filler, at a place that no other thread writes to.
    #[inline]
    fn fill(&self, at: usize, size: usize) {
        records::fill(&self.mapping, at, size, self.began.load(Relaxed));
    }

    /// The current size of the log, and its limit, in bytes.
    pub(crate) fn extent(&self) -> (usize, usize) {
        (self.chunks.end(), self.mapping.size())
    }

    /// Address and maximum size of the log in this process's memory. The mapping stays, also in a child.
    pub(crate) fn mapped(&self) -> (u64, u64) {
        (self.mapping.address(), self.mapping.size() as u64)
    }

    /// Records that `count` codes were left out.
    #[cold]
    fn left_out(&self, count: u64) {
        let now = self.options.clock.now();
        let word = |at| self.mapping.word(at);
        word(control::LEFT_OUT).fetch_add(count, Relaxed);
        let _ = word(control::LEFT_OUT_FIRST).compare_exchange(0, now, Relaxed, Relaxed);
        word(control::LEFT_OUT_LAST).fetch_max(now, Relaxed);
    }

    /// Records that the log was turned off or on: readers must know that codes are missing.
    pub(crate) fn paused(&self, is_paused: bool) {
        let at = if is_paused { control::PAUSED } else { control::RESUMED };
        self.mapping.word(at).store(self.options.clock.now(), Relaxed);
    }
}

/// Commits a group, of which these are the first words. At each step it is either a filler or committed.
#[inline]
fn commit(group: Words<'_, { FIRST_ITEM / 8 }>, first: u64, tail: u64, time: u64, address: u64) {
    group.at::<0>().store(first, Release);
    group.at::<{ code::TIME }>().store(time, Relaxed);
    group.at::<{ code::ADDRESS }>().store(address, Relaxed);
    group.at::<TAIL>().store(tail, Release);
}

pub(crate) fn process_id() -> u32 {
    crate::system::process_id()
}

/// The position of the group at offset `at`.
fn position(at: usize) -> Option<Position> {
    NonZeroU32::new(u32::try_from(at / 8).ok()?)
}
