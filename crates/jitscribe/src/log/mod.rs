//! The code log: a jitdump in shared memory that many threads write without waiting.
//!
//! `docs/format.md` specifies it, and says why it is a valid dump at every instant.

#![cfg_attr(windows, allow(dead_code, reason = "a fork's child and perf maps want more of it"))]

mod alive;
mod chunks;
#[cfg(unix)]
mod fork;
mod group;
mod lanes;
mod layout;
mod mapping;
mod memory;
mod moved;
#[cfg(test)]
mod plain;
mod put;
mod records;
mod table;
#[cfg(all(test, unix))]
mod tests;
mod usual;

use std::num::NonZeroU32;
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, Release},
};

use jitdump::RecordId;
use jitdump::extension::tail::MAGIC as TAIL_MAGIC;
use jitdump::extension::{code as code_item, log as log_item, tag};

use self::chunks::Chunks;
use self::group::{Plan, Stamp, Tables};
use self::lanes::{Held, Lanes};
use self::layout::{
    CHUNK, FILLER_MIN, FIRST_CHUNK, FIRST_ITEM, PAYLOAD, TAIL, code, control, item_word, pair,
    record_word, unpair,
};
use self::mapping::{Mapping, Words};
use self::memory::Backing;
pub(crate) use self::memory::{Failure, ForkPage};
use crate::clock::Clock;
use crate::code::Code;

/// Where the log lies and how large it gets.
#[derive(Clone, Debug)]
pub(crate) struct LogOptions {
    /// The file to make; `None`: memory.
    pub(crate) file: Option<PathBuf>,
    /// Bytes; the log never takes more.
    pub(crate) limit: usize,
    /// What [`control`](Log::control) is at first.
    pub(crate) control: u32,
    /// Whether room of dead codes is used again. Not in a file that is read afterwards.
    pub(crate) reuse: bool,
    /// What times are told by.
    pub(crate) clock: Clock,
}

impl LogOptions {
    /// The same, where the file cannot be had.
    fn in_memory(self) -> Self {
        Self { file: None, limit: self.limit.min(MEMORY_LIMIT), reuse: true, ..self }
    }
}

/// 64 MiB: some 400,000 functions with names of 40 bytes.
pub(crate) const MEMORY_LIMIT: usize = 64 << 20;
/// As far as [`Position`] reaches.
const LARGEST: usize = match 32_usize.checked_mul(1 << 30) {
    Some(size) => size,
    None => 1 << 30,
};

/// Where a code stands in the log: offset of its group, in units of 8 bytes.
pub(crate) type Position = NonZeroU32;

/// Where a code stands, and the low half of its index, which tells it from one that stands there later.
pub(crate) type Announced = (Position, u32);

/// The words of a group up to the end of its first item.
type GroupWords<'m> = Words<'m, { code::END / 8 }>;

/// A code in the log that had not died when it was looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Living<'m> {
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
    pid: AtomicU32,
    /// Time in the file's header, which all records have that tell of no code.
    began: AtomicU64,
    /// Announcements for which no room is looked for, after none was found.
    starving: AtomicU32,
    options: LogOptions,
}

/// How far behind a group memory is fetched, and how much: so far that it is there when it is wanted, and less than a
/// processor fetches at once.
const AHEAD: usize = 2048;
const MOST_AHEAD: usize = 2048;

/// How many announcements pass between two searches for room when there is none.
const STARVE: u32 = 64;

/// The ELF `e_machine` of the code that runs here.
pub(crate) const MACHINE: u32 = if cfg!(target_arch = "x86_64") {
    62
} else if cfg!(target_arch = "aarch64") {
    183
} else if cfg!(target_arch = "x86") {
    3
} else if cfg!(target_arch = "arm") {
    40
} else if cfg!(target_arch = "s390x") {
    22
} else if cfg!(any(target_arch = "riscv64", target_arch = "riscv32")) {
    243
} else if cfg!(target_arch = "powerpc64") {
    21
} else if cfg!(target_arch = "loongarch64") {
    258
} else {
    0
};

impl Log {
    /// Makes a log, and says what could not be had on the way to the one it made: a file, else a memfd, else
    /// anonymous memory.
    pub(crate) fn create(
        mut options: LogOptions,
        mut complain: impl FnMut(Failure, &str),
    ) -> Result<Self, Failure> {
        if let Some(path) = options.file.take() {
            match Backing::file(&path) {
                Ok(backing) => match Self::begin_in(backing, options.clone()) {
                    Ok(log) => return Ok(log),
                    Err(failure) => {
                        // Of no use to anyone: it has no records.
                        let _ = std::fs::remove_file(&path);
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
        let mut size = FIRST_CHUNK + count * CHUNK;
        let map = |size: usize| {
            let mapping = Mapping::new(&backing, size)?;
            Ok((mapping, Chunks::new((size - FIRST_CHUNK) / CHUNK)?))
        };
        // An address space limit may leave less room than the log's limit.
        let (mapping, chunks) = loop {
            match map(size) {
                Ok(mapped) => break mapped,
                Err(cause) if size <= FIRST_CHUNK + CHUNK => {
                    return Err(Failure { what: "mapping the code log".to_owned(), cause });
                }
                Err(_) => size = FIRST_CHUNK + ((size - FIRST_CHUNK) / CHUNK / 2).max(1) * CHUNK,
            }
        };
        let pid = process_id();
        let log = Self {
            mapping,
            backing,
            chunks,
            lanes: Lanes::default(),
            pid: AtomicU32::new(pid),
            began: AtomicU64::new(0),
            starving: AtomicU32::new(0),
            options,
        };
        log.begin(pid)?;
        Ok(log)
    }

    /// Writes what stands before the chunks.
    fn begin(&self, pid: u32) -> Result<(), Failure> {
        let failed = |cause| Failure { what: "room for the code log".to_owned(), cause };
        self.mapping.have(&self.backing, 0, FIRST_CHUNK).map_err(failed)?;
        #[cfg(unix)]
        if let Backing::File(file, path) = &self.backing {
            let failed = |cause| Failure { what: path.display().to_string(), cause };
            memory::map_marker(file).map_err(failed)?;
        }
        let mut header = [0; control::RECORD];
        // A fork's child keeps it: its fillers are copies of the parent's.
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
        let items = (PAYLOAD - FIRST_ITEM + log_item::SIZE) as u32;
        word(control::RECORD + TAIL, pair(TAIL_MAGIC, items));
        word(control::RECORD + code::TIME, now);
        let record = record_word(RecordId::DEBUG_INFO.0, FIRST_CHUNK - control::RECORD);
        self.mapping.word(control::RECORD).store(record, Release);
        // The magic comes last: whoever looks for logs in memory finds whole ones.
        let magic = u64::from_ne_bytes(header.first_chunk().copied().unwrap_or_default());
        self.mapping.word(0).store(magic, Release);
        Ok(())
    }

    /// The word that says what is to be done. Others may write it.
    #[inline]
    pub(crate) fn control(&self) -> &AtomicU32 {
        self.mapping.half(control::CONTROL)
    }

    /// Writes a code to the log. `None` if there was no room.
    #[inline]
    pub(crate) fn load(&self, code: &Code<'_>, with_bytes: bool, tid: u32) -> Option<Announced> {
        let bytes = code.bytes.filter(|_| with_bytes);
        let flags = group::flags(code, bytes.is_none());
        if !usual::is_usual(code, bytes, flags) {
            return self.load_in_full(code, with_bytes, tid);
        }
        match bytes {
            None => self.load_usual_lean(code, flags, tid),
            Some(bytes) => self.load_usual(code, bytes, flags, tid),
        }
    }

    #[inline(never)]
    fn load_in_full(&self, code: &Code<'_>, with_bytes: bool, tid: u32) -> Option<Announced> {
        let mut room = Vec::new();
        let frames = group::unwind_tables(code, with_bytes, &mut room);
        let (eh_frame, eh_frame_hdr) = room.split_at_checked(frames).unwrap_or_default();
        let tables = Tables { eh_frame, eh_frame_hdr };
        let mut plan = Plan::default();
        plan.measure(code, tables, with_bytes);
        if !plan.fits() {
            self.left_out(1);
            return None;
        }
        let (items, behind) = (plan.items(), plan.behind());
        self.write_group(plan.size, behind, items, code.address, tid, |room, stamp| {
            plan.write(room, code, tables, stamp);
        })
    }

    /// Takes room for a group of `size` bytes, has `write` fill it from its first item on, and makes it count.
    /// `behind` are the bytes of the records behind the first, whose tail has `items` bytes.
    #[inline]
    fn write_group(
        &self,
        size: usize,
        behind: usize,
        items: usize,
        address: u64,
        tid: u32,
        write: impl FnOnce(&mut [u8], Stamp),
    ) -> Option<Announced> {
        let lane = self.lanes.enter();
        let Some((at, size)) = self.take_room(&lane, size) else {
            drop(lane);
            self.left_out(1);
            return None;
        };
        let stamp = Stamp {
            time: self.options.clock.now(),
            pid: self.pid.load(Relaxed),
            tid,
            index: lane.next_index(),
        };
        // As much as this one takes, as the next ones may: they find it there.
        self.mapping.prefetch(at + AHEAD, size.min(MOST_AHEAD));
        // SAFETY: the lane is ours, and the room was cut from it or from a run that is ours. Others of this
        // process read these bytes only once the group counts, which it does not before the stores below.
        // Every chunk in use has memory behind it.
        #[allow(unsafe_code)]
        let (group, room) = unsafe { self.mapping.room(at, size) }?;
        write(room, stamp);
        let first = record_word(RecordId::DEBUG_INFO.0, size - behind);
        commit(group, first, pair(TAIL_MAGIC, items as u32), stamp.time, address);
        self.chunks.born(at, stamp.time);
        drop(lane);
        Some((position(at)?, stamp.index as u32))
    }

    /// The code is gone.
    #[inline]
    pub(crate) fn end(&self, Living { at, group }: Living<'_>) {
        // Read first: once dead, the room may be used anew.
        let size = unpair(group.at::<{ code::GROUP_SIZE }>().load(Relaxed)).0;
        let now = self.options.clock.now();
        // Noted first: what a fork's child finds dead and not noted, died after the fork.
        self.chunks.dies(at, now);
        // Each death is counted once, even if two threads have lost count of a code and unload it at the same
        // moment: by the counts the room of others is used anew.
        let died = group.at::<{ code::DIED }>();
        if died.compare_exchange(0, now, Release, Relaxed).is_ok() {
            self.chunks.died(at, size);
        }
    }

    /// The code of this index at `position`, if it has not died.
    #[inline]
    pub(crate) fn living(&self, position: Position, index: u32) -> Option<Living<'_>> {
        let (at, group) = self.code_at(position, index)?;
        (group.at::<{ code::DIED }>().load(Relaxed) == 0).then_some(Living { at, group })
    }

    /// Offset and words of the code of this index at `position`, alive or dead. `None` if there is no such code:
    /// handles may come from those who lost count. Where room was used anew, what stands there may be any part of
    /// another code, so more is looked at than the index.
    #[inline]
    fn code_at(&self, position: Position, index: u32) -> Option<(usize, GroupWords<'_>)> {
        let at = position.get() as usize * 8;
        if at + code::END > self.mapping.size() {
            return None;
        }
        let group = self.mapping.words::<{ code::END / 8 }>(at);
        let is_code = group.at::<{ code::INDEX }>().load(Relaxed) as u32 == index
            && group.at::<FIRST_ITEM>().load(Relaxed) == item_word(tag::CODE, 0, code_item::SIZE)
            && unpair(group.at::<TAIL>().load(Relaxed)).0 == TAIL_MAGIC;
        is_code.then_some((at, group))
    }

    /// There is no fork, and so no child to whom the log may belong.
    #[cfg(windows)]
    pub(crate) fn adopt(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// The descriptor of the log's file, if it has one.
    #[cfg(unix)]
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.backing.fd().map(AsFd::as_fd)
    }

    /// The path of the log's file, if it is one.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        #[cfg(unix)]
        match &self.backing {
            Backing::File(_, path) => {
                let pid = self.pid.load(Relaxed);
                Some(path.with_file_name(format!("jit-{pid}.dump")))
            }
            Backing::Memory(_) | Backing::Anonymous => None,
        }
        #[cfg(windows)]
        None
    }

    /// Cuts room for a group of `size` bytes: where it is, and its size, which may be somewhat more.
    #[inline]
    fn take_room(&self, lane: &Held<'_>, size: usize) -> Option<(usize, usize)> {
        let (at, end) = lane.room();
        match (end - at).checked_sub(size) {
            Some(rest) if rest >= FIRST_ITEM => {
                self.fill(at + size, rest);
                lane.advance(at + size);
                Some((at, size))
            }
            _ => self.take_other_room(lane, size),
        }
    }

    /// [`Self::take_room`] where the lane's room is nearly, or too far, used up.
    #[cold]
    #[inline(never)]
    fn take_other_room(&self, lane: &Held<'_>, size: usize) -> Option<(usize, usize)> {
        loop {
            let (at, end) = lane.room();
            if let Some(rest) = (end - at).checked_sub(size) {
                let size = if rest < FILLER_MIN { end - at } else { size };
                if rest >= FILLER_MIN {
                    self.fill(at + size, rest);
                }
                lane.advance(at + size);
                return Some((at, size));
            }
            if size > chunks::ROOM {
                return self.take_run(size);
            }
            self.next_room(lane, size)?;
        }
    }

    /// Makes a filler; nobody else writes there.
    #[inline]
    fn fill(&self, at: usize, size: usize) {
        records::fill(&self.mapping, at, size, self.began.load(Relaxed));
    }

    /// Bytes that the log takes, and bytes that it may take.
    pub(crate) fn extent(&self) -> (usize, usize) {
        (FIRST_CHUNK + self.chunks.in_use() * CHUNK, self.mapping.size())
    }

    /// Where the log lies in this process's memory, and how many bytes it may take there. It stays, also in a child.
    #[cfg(feature = "gdb")]
    pub(crate) fn mapped(&self) -> (u64, u64) {
        (self.mapping.address(), self.mapping.size() as u64)
    }

    /// So many codes are missing.
    #[cold]
    fn left_out(&self, count: u64) {
        let now = self.options.clock.now();
        let word = |at| self.mapping.word(at);
        word(control::LEFT_OUT).fetch_add(count, Relaxed);
        let _ = word(control::LEFT_OUT_FIRST).compare_exchange(0, now, Relaxed, Relaxed);
        word(control::LEFT_OUT_LAST).fetch_max(now, Relaxed);
    }

    /// The log was turned off, or on again: readers are to know that codes are missing.
    pub(crate) fn paused(&self, is_paused: bool) {
        let at = if is_paused { control::PAUSED } else { control::RESUMED };
        self.mapping.word(at).store(self.options.clock.now(), Relaxed);
    }
}

/// Makes a group count, of which these are the first words. At each step it is a filler, or counts.
#[inline]
fn commit(group: Words<'_, { FIRST_ITEM / 8 }>, first: u64, tail: u64, time: u64, address: u64) {
    group.at::<0>().store(first, Release);
    group.at::<{ code::TIME }>().store(time, Relaxed);
    group.at::<{ code::ADDRESS }>().store(address, Relaxed);
    group.at::<TAIL>().store(tail, Release);
}

pub(crate) fn process_id() -> u32 {
    std::process::id()
}

/// The position of the group at offset `at`.
fn position(at: usize) -> Option<Position> {
    NonZeroU32::new(u32::try_from(at / 8).ok()?)
}
