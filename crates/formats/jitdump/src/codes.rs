//! The unified level: one event per code, with everything that belongs to it.

use alloc::collections::VecDeque;
use core::iter::FusedIterator;

use crate::code_load::{CodeLoad, RecordsBefore};
use crate::debug_info::DebugInfo;
use crate::error::Error;
use crate::extension::{ItemBody, LeftOut, code};
use crate::lines::Addressing;
use crate::load::{Load, Move};
use crate::quirks::Quirks;
use crate::reader::{Dump, End, Records};
use crate::record::{Body, Record};
use crate::record_id::RecordId;
use crate::source_positions::SourcePositions;

/// How many records may be between a DEBUG_INFO and its LOAD. Some writers lock per record and not per code (the
/// JVMTI agent of perf). Their threads put records in between, a few for each thread. What is farther apart belongs
/// to another code at the same address.
const DEBUG_WINDOW: u64 = 256;

/// An event of a code.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all events are loads, and none is stored")]
pub enum CodeEvent<'a> {
    /// It was loaded, or replaced what was at its address.
    Load(CodeLoad<'a>),
    /// It was moved.
    Move(CodeMove),
    /// The writer closed the dump properly.
    Close {
        /// When, by the records' clock.
        timestamp: u64,
    },
}

/// A code that was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeMove {
    /// Offset of the MOVE record in the file.
    pub offset: u64,
    /// When the record was written, by the records' clock.
    pub timestamp: u64,
    /// Process id as the writer saw it.
    pub pid: u32,
    /// Id of the thread that moved it.
    pub tid: u32,
    /// Where it was.
    pub old_address: u64,
    /// Where it is now.
    pub new_address: u64,
    /// Its size in bytes, which the format does not allow to change.
    pub size: u64,
    /// The index of its load.
    pub index: u64,
}

/// The events of a dump, in the order of the file; see [`Dump::codes`](crate::Dump::codes).
///
/// Debug info is assigned to the next load of the same address, also if records of other threads are in between (at
/// most 256), or to the load directly behind it whose range contains it. It is never kept for a later load, nor
/// across damage. Unwind tables have no address and are assigned to the next load.
///
/// A code that a tail of this project describes is one event like any other: at its only record if it is without
/// bytes, else at its LOAD. A record with neither entries nor such a tail produces no event.
#[derive(Clone, Debug)]
pub struct Codes<'a> {
    records: Records<'a>,
    quirks: Quirks,
    addressing: Addressing,
    pending: Pending,
    left_out: LeftOut,
}

/// The records read so far that belong to codes whose LOAD has not come yet.
#[derive(Clone, Debug, Default)]
struct Pending {
    /// Number of records read.
    count: u64,
    /// Debug info, the oldest first.
    debug_infos: VecDeque<PendingRecord>,
    /// The latest source positions. Their only known writer, JavaScriptCore, locks per code.
    source_positions: Option<PendingRecord>,
    /// Offset of the latest unwind tables.
    unwinding_info: Option<u64>,
    /// Whether the last of `debug_infos` may belong to the next load by its position alone.
    adjacent: bool,
    /// The first record of the group whose LOAD has not come yet.
    group: Option<PendingRecord>,
}

/// A record of a code whose LOAD has not come yet.
#[derive(Clone, Copy, Debug)]
struct PendingRecord {
    /// The number of the record.
    count: u64,
    offset: u64,
    /// The code's address according to the record.
    code_addr: u64,
}

/// Where reading stopped at the end of a part of a file.
#[cfg(feature = "std")]
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    offset: u64,
    last_timestamp: Option<u64>,
    pending: Pending,
    left_out: LeftOut,
}

#[cfg(feature = "std")]
impl Checkpoint {
    /// At the first record of a file.
    pub(crate) fn at(offset: u64) -> Self {
        let (pending, left_out) = (Pending::default(), LeftOut::default());
        Self { offset, last_timestamp: None, pending, left_out }
    }

    /// Copies the state; `None` if the allocation is refused.
    pub(crate) fn try_clone(&self) -> Option<Self> {
        let mut debug_infos = VecDeque::new();
        debug_infos.try_reserve_exact(self.pending.debug_infos.len()).ok()?;
        debug_infos.extend(&self.pending.debug_infos);
        Some(Self { pending: Pending { debug_infos, ..self.pending }, ..*self })
    }

    /// Where the next record is looked for.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Where the part that is read next must begin.
    pub(crate) fn needs(&self) -> u64 {
        let Pending { debug_infos, source_positions, unwinding_info, group, .. } = &self.pending;
        let oldest = debug_infos.front().map(|oldest| oldest.offset);
        let [positions, group] = [source_positions, group].map(|record| record.map(|it| it.offset));
        [oldest, positions, *unwinding_info, group]
            .into_iter()
            .flatten()
            .fold(self.offset, u64::min)
    }
}

impl<'a> Dump<'a> {
    /// Like [`codes`](Self::codes), with quirks known from elsewhere.
    #[must_use]
    pub fn codes_with(&self, quirks: Quirks) -> Codes<'a> {
        Codes::new(self.records(), quirks)
    }
}

impl<'a> Codes<'a> {
    pub(crate) fn new(records: Records<'a>, quirks: Quirks) -> Self {
        Self {
            records,
            quirks,
            addressing: Addressing::of(&quirks),
            pending: Pending::default(),
            left_out: LeftOut::default(),
        }
    }

    /// Continues in another part of the same file.
    #[cfg(feature = "std")]
    pub(crate) fn resume(dump: &Dump<'a>, quirks: Quirks, checkpoint: Checkpoint) -> Self {
        let Checkpoint { offset, last_timestamp, pending, left_out } = checkpoint;
        let records = dump.records_from(offset).after_timestamp(last_timestamp);
        Self { pending, left_out, ..Self::new(records, quirks) }
    }

    /// Where to continue, if the iterator ended because the part of the file ended.
    #[cfg(feature = "std")]
    pub(crate) fn pause(self) -> Option<Checkpoint> {
        let Self { records, mut pending, left_out, .. } = self;
        if records.skipped_filler() {
            pending.count = pending.count.saturating_add(1);
        }
        records.needs_more().then(|| Checkpoint {
            offset: records.offset(),
            last_timestamp: records.last_timestamp(),
            pending,
            left_out,
        })
    }

    /// Where to continue once the file has grown.
    #[cfg(feature = "std")]
    pub(crate) fn stop(self) -> Checkpoint {
        let Self { records, pending, left_out, .. } = self;
        Checkpoint {
            offset: records.offset(),
            last_timestamp: records.last_timestamp(),
            pending,
            left_out,
        }
    }

    /// The quirks that are corrected.
    #[must_use]
    pub fn quirks(&self) -> &Quirks {
        &self.quirks
    }

    /// How the dump ended; `None` until the iterator has ended.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.records.end()
    }

    /// The codes that the writer left out for lack of space, as far as the dump was read.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    fn load(&mut self, record: &Record<'a>, load: &Load<'a>) -> CodeLoad<'a> {
        let mut code = self.addressing.load(record, load);
        let addressing = self.addressing;
        let same = |group: &PendingRecord| addressing.code(group.code_addr) == code.address;
        let group = self.pending.group.take().filter(same);
        if let Some(group) = group {
            // What came before the group belongs to another code.
            self.pending.debug_infos.retain(|info| info.count > group.count);
            self.pending.source_positions.take_if(|positions| positions.count < group.count);
        }
        let positions = self.pending.source_positions.take().filter(same);
        let debug_info = self.debug_info_of(code.address, code.size);
        let unwinding_info = self.pending.unwinding_info.take();
        self.pending.adjacent = false;
        let records =
            RecordsBefore { group: group.map(|group| group.offset), debug_info, unwinding_info };
        code.attach_positions(self.records.dump(), positions.map(|positions| positions.offset));
        code.attach(self.records.dump(), records);
        code
    }

    /// Removes the debug info of the code at `address`, and everything that can no longer belong to any code. Returns
    /// its offset.
    fn debug_info_of(&mut self, address: u64, size: u64) -> Option<u64> {
        let Pending { count, debug_infos, adjacent, .. } = &mut self.pending;
        let oldest = count.saturating_sub(DEBUG_WINDOW);
        while debug_infos.front().is_some_and(|info| info.count < oldest) {
            debug_infos.pop_front();
        }
        let range = address..address.saturating_add(size);
        let addressing = self.addressing;
        let same = |info: &PendingRecord| addressing.code(info.code_addr) == address;
        let last = debug_infos.back()?;
        // The usual case: one record, that of this code.
        let found = if same(last) || (*adjacent && range.contains(&last.code_addr)) {
            Some(*last)
        } else {
            debug_infos.iter().rev().copied().find(same)
        };
        debug_infos.retain(|info| !same(info) && !range.contains(&info.code_addr));
        found.map(|found| found.offset)
    }

    /// Handles a record that has no entries. For a code without bytes, it is the only record.
    fn tail(&mut self, record: &Record<'a>, info: &DebugInfo<'a>) -> Option<CodeLoad<'a>> {
        let tail = info.tail()?;
        if let Some(item) = tail.code() {
            self.pending.group = None;
            self.pending.unwinding_info = None;
            if item.is_without_bytes() {
                if item.code_size > code::LARGEST_WITHOUT_BYTES {
                    return None;
                }
                let pid = self.records.header().pid;
                return Some(self.addressing.load_without_bytes(
                    record,
                    info.code_addr,
                    pid,
                    tail,
                    &item,
                ));
            }
            let (count, offset) = (self.pending.count, record.offset);
            self.pending.group = Some(PendingRecord { count, offset, code_addr: info.code_addr });
            return None;
        }
        for item in tail.items() {
            match item.body() {
                Some(ItemBody::LeftOut(left_out)) => self.left_out.add(left_out),
                Some(ItemBody::Log(log)) => self.left_out.add(log.left_out),
                _ => {}
            }
        }
        None
    }

    fn code_move(&self, record: &Record<'a>, moved: &Move) -> CodeMove {
        CodeMove {
            offset: record.offset,
            timestamp: record.timestamp,
            pid: moved.pid,
            tid: moved.tid,
            old_address: self.addressing.code(moved.old_code_addr),
            new_address: self.addressing.code(moved.new_code_addr),
            size: moved.code_size,
            index: moved.code_index,
        }
    }
}

impl<'a> Iterator for Codes<'a> {
    type Item = Result<CodeEvent<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let record = match self.records.next()? {
                Ok(record) => record,
                Err(error) => {
                    self.pending.forget();
                    return Some(Err(error));
                }
            };
            let offset = record.offset;
            self.pending.count = self.pending.count.saturating_add(1);
            match &record.body {
                Body::Load(load) => return Some(Ok(CodeEvent::Load(self.load(&record, load)))),
                Body::Move(moved) => {
                    return Some(Ok(CodeEvent::Move(self.code_move(&record, moved))));
                }
                Body::Close => {
                    self.pending.forget();
                    return Some(Ok(CodeEvent::Close { timestamp: record.timestamp }));
                }
                Body::DebugInfo(info) if info.nr_entry == 0 => {
                    if let Some(code) = self.tail(&record, info) {
                        return Some(Ok(CodeEvent::Load(code)));
                    }
                }
                Body::DebugInfo(info) => self.pending.debug_info(offset, info.code_addr),
                Body::UnwindingInfo(_) => self.pending.unwinding_info = Some(offset),
                Body::Unknown { id, bytes } if RecordId(*id) == RecordId::SOURCE_POSITIONS => {
                    let endian = self.records.dump().header().endian;
                    if let Some(positions) = SourcePositions::parse(bytes, endian) {
                        let (count, code_addr) = (self.pending.count, positions.code_addr);
                        self.pending.source_positions =
                            Some(PendingRecord { count, offset, code_addr });
                    }
                }
                Body::Unknown { .. } => {}
            }
        }
    }
}

impl Pending {
    fn forget(&mut self) {
        self.group = None;
        self.debug_infos.clear();
        self.source_positions = None;
        self.unwinding_info = None;
        self.adjacent = false;
    }

    fn debug_info(&mut self, offset: u64, code_addr: u64) {
        if self.debug_infos.len() >= to_capacity(DEBUG_WINDOW) {
            self.debug_infos.pop_front();
        }
        // A library that reads its own log must not abort its process when memory is exhausted. The code has no lines
        // then.
        if self.debug_infos.try_reserve(1).is_err() {
            return;
        }
        self.debug_infos.push_back(PendingRecord { count: self.count, offset, code_addr });
        self.adjacent = true;
    }
}

impl FusedIterator for Codes<'_> {}

fn to_capacity(count: u64) -> usize {
    crate::endian::to_usize(count)
}
