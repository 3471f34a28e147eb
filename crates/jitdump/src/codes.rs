//! The unified level: one event per code, with all that belongs to it.

use alloc::collections::VecDeque;
use core::iter::FusedIterator;

use crate::code_load::{At, CodeLoad};
use crate::debug_info::DebugInfo;
use crate::error::Error;
use crate::extension::{ItemBody, LeftOut, Tail, code};
use crate::lines::Addressing;
use crate::load::{Load, Move};
use crate::quirks::Quirks;
use crate::reader::{End, Records};
use crate::record::{Body, Record};
use crate::unwinding::UnwindingInfo;

/// How many records may lie between a DEBUG_INFO and its LOAD. Threads that take a lock per record
/// and not per code (the JVMTI agent of perf) bring records of one another in between, a few for
/// each thread; what is farther apart belongs to another code at the same address.
const DEBUG_WINDOW: u64 = 256;

/// Something happened to a code.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all events are loads, and none is stored")]
pub enum CodeEvent<'a> {
    /// It was made, or replaced what was at its address.
    Load(CodeLoad<'a>),
    /// It was moved.
    Move(CodeMove),
    /// The writer ended in good order.
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
    /// Its size in bytes, which the format does not let change.
    pub size: u64,
    /// The index its load had.
    pub index: u64,
}

/// The events of a dump, in the order of the file; see [`Dump::codes`](crate::Dump::codes).
///
/// Debug info is given to the next load of the same address, also if records of other threads lie
/// between (at most 256), or to the load right behind it whose range it lies in. It is never kept
/// for a later load, nor across damage. Unwind tables carry no address and go to the next load.
///
/// A code of which a tail tells, in the way of this project, is one event like any other: a lean
/// one at its only record, another at its LOAD. Records without entries and without such a tail say
/// nothing and are passed over.
#[derive(Clone, Debug)]
pub struct Codes<'a> {
    records: Records<'a>,
    quirks: Quirks,
    addressing: Addressing,
    /// Number of records read.
    count: u64,
    /// Debug info whose load has not come, with the number of its record.
    debug_infos: VecDeque<(u64, At<DebugInfo<'a>>)>,
    unwinding_info: Option<At<UnwindingInfo<'a>>>,
    /// Whether the last of `debug_infos` may belong to the next load by its place alone.
    adjacent: bool,
    /// The group whose load has not come.
    group: Option<Group<'a>>,
    left_out: LeftOut,
}

/// The first record of a group that has a LOAD.
#[derive(Clone, Copy, Debug)]
struct Group<'a> {
    /// Number of the record.
    count: u64,
    address: u64,
    tail: At<Tail<'a>>,
}

impl<'a> Codes<'a> {
    pub(crate) fn new(records: Records<'a>, quirks: Quirks) -> Self {
        Self {
            records,
            quirks,
            addressing: Addressing::of(&quirks),
            count: 0,
            debug_infos: VecDeque::new(),
            unwinding_info: None,
            adjacent: false,
            group: None,
            left_out: LeftOut::default(),
        }
    }

    /// The quirks that are taken out.
    #[must_use]
    pub fn quirks(&self) -> &Quirks {
        &self.quirks
    }

    /// How the dump ended; `None` until the iterator has.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.records.end()
    }

    /// The codes that the writer left out for want of room, as far as was read.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    fn forget(&mut self) {
        self.group = None;
        self.debug_infos.clear();
        self.unwinding_info = None;
        self.adjacent = false;
    }

    fn load(&mut self, record: &Record<'a>, load: &Load<'a>) -> CodeLoad<'a> {
        let mut code = self.addressing.load(record, load);
        if let Some(group) = self.group.take().filter(|group| group.address == code.address) {
            code.group = Some(group.tail);
            code.addressing.bias = 0;
            // What was announced before belongs to another code.
            self.debug_infos.retain(|(count, _)| *count > group.count);
        }
        code.debug_info = self.debug_info_of(code.address, code.size);
        code.unwinding_info = self.unwinding_info.take();
        self.adjacent = false;
        code
    }

    /// Takes out the debug info of the code at `address`, and all that can belong to no code any
    /// more.
    fn debug_info_of(&mut self, address: u64, size: u64) -> Option<At<DebugInfo<'a>>> {
        let oldest = self.count.saturating_sub(DEBUG_WINDOW);
        while self.debug_infos.front().is_some_and(|(count, _)| *count < oldest) {
            self.debug_infos.pop_front();
        }
        let range = address..address.saturating_add(size);
        let addressing = self.addressing;
        let same = |info: &At<DebugInfo<'_>>| addressing.code(info.body.code_addr) == address;
        let (_, last) = self.debug_infos.back()?;
        // The usual case: one record, that of this code.
        let found = if same(last) || (self.adjacent && range.contains(&last.body.code_addr)) {
            Some(*last)
        } else {
            self.debug_infos.iter().rev().map(|(_, info)| *info).find(same)
        };
        self.debug_infos.retain(|(_, info)| !same(info) && !range.contains(&info.body.code_addr));
        found
    }

    /// A record that has no entries. Of a lean code, it is all there is.
    fn tail(&mut self, record: &Record<'a>, info: &DebugInfo<'a>) -> Option<CodeLoad<'a>> {
        let tail = info.tail()?;
        if let Some(item) = tail.code() {
            self.group = None;
            self.unwinding_info = None;
            if item.is_lean() {
                if item.code_size > code::LARGEST_LEAN {
                    return None;
                }
                let pid = self.records.header().pid;
                return Some(self.addressing.lean(record, info.code_addr, pid, tail, &item));
            }
            self.group = Some(Group {
                count: self.count,
                address: self.addressing.code(info.code_addr),
                tail: At { offset: record.offset, body: tail },
            });
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

    fn moved(&self, record: &Record<'a>, moved: &Move) -> CodeMove {
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
                    self.forget();
                    return Some(Err(error));
                }
            };
            self.count = self.count.saturating_add(1);
            match &record.body {
                Body::Load(load) => return Some(Ok(CodeEvent::Load(self.load(&record, load)))),
                Body::Move(moved) => return Some(Ok(CodeEvent::Move(self.moved(&record, moved)))),
                Body::Close => {
                    self.forget();
                    return Some(Ok(CodeEvent::Close { timestamp: record.timestamp }));
                }
                Body::DebugInfo(info) if info.nr_entry == 0 => {
                    if let Some(code) = self.tail(&record, info) {
                        return Some(Ok(CodeEvent::Load(code)));
                    }
                }
                Body::DebugInfo(info) => {
                    if self.debug_infos.len() >= to_capacity(DEBUG_WINDOW) {
                        self.debug_infos.pop_front();
                    }
                    self.debug_infos
                        .push_back((self.count, At { offset: record.offset, body: *info }));
                    self.adjacent = true;
                }
                Body::UnwindingInfo(info) => {
                    self.unwinding_info = Some(At { offset: record.offset, body: *info });
                }
                Body::Unknown { .. } => {}
            }
        }
    }
}

impl FusedIterator for Codes<'_> {}

fn to_capacity(count: u64) -> usize {
    crate::endian::to_usize(count)
}
