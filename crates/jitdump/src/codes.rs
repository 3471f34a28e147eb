//! The unified level: one event per code, with all that belongs to it.

use alloc::collections::VecDeque;
use core::iter::FusedIterator;

use crate::debug_info::{DebugEntries, DebugInfo};
use crate::error::Error;
use crate::garbled::NearEntries;
use crate::lines::{Addressing, Lines};
use crate::load::{Load, Move};
use crate::quirks::Quirks;
use crate::reader::{Dump, End, Records};
use crate::record::{Body, Record};
use crate::unwinding::UnwindingInfo;

/// How many records may lie between a DEBUG_INFO and its LOAD. Threads that take a lock per record
/// and not per code (the JVMTI agent of perf) bring records of one another in between, a few for
/// each thread; what is farther apart belongs to another code at the same address.
const DEBUG_WINDOW: u64 = 256;

/// Something happened to a code.
#[derive(Clone, Copy, Debug)]
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

/// A code that was made.
#[derive(Clone, Copy, Debug)]
pub struct CodeLoad<'a> {
    /// Offset of its LOAD record in the file.
    pub offset: u64,
    /// When the record was written, by the records' clock. Codes come in the order of the file,
    /// which is not always that of their times; equal times are common.
    pub timestamp: u64,
    /// Process id as the writer saw it.
    pub pid: u32,
    /// Id of the thread that made it.
    pub tid: u32,
    /// Address of its first byte, without the Thumb bit.
    pub address: u64,
    /// Size in bytes; may be 0.
    pub size: u64,
    /// The number a later move names it by. Not always unique.
    pub index: u64,
    /// Its name as the writer gave it: any bytes but NUL, maybe none.
    pub name: &'a [u8],
    /// The machine code; as many bytes as `size`.
    pub bytes: &'a [u8],
    /// Whether its address had the Thumb bit: code of 32-bit ARM in that instruction set.
    pub is_thumb: bool,
    debug_info: Option<At<DebugInfo<'a>>>,
    unwinding_info: Option<At<UnwindingInfo<'a>>>,
    addressing: Addressing,
}

/// A record's body and its offset in the file.
#[derive(Clone, Copy, Debug)]
struct At<T> {
    offset: u64,
    body: T,
}

impl<'a> CodeLoad<'a> {
    /// Address of the first byte behind it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }

    /// Its source lines, in the order of the dump (V8's addresses do not always ascend).
    ///
    /// Addresses are absolute, freed of the writer's bias, and within the code: an entry past the
    /// end is left out, and of those before the start the last one becomes the line of the start.
    /// "Same file" is resolved, and names that V8 wrote from freed memory are mended as far as
    /// possible. Entries without line and file end the line before them, as line 0;
    /// with no line before them they are left out.
    #[must_use]
    pub fn lines(&self) -> Lines<'a> {
        let bias = self.addressing.bias;
        let within = self.address.saturating_add(bias)..self.end().saturating_add(bias);
        let entries =
            self.debug_info.map(|info| NearEntries::new(info.body.entries(), within, self.name));
        Lines::new(entries, self.addressing, self.address..self.end())
    }

    /// Whether the dump has a DEBUG_INFO record for it.
    #[must_use]
    pub fn has_debug_info(&self) -> bool {
        self.debug_info.is_some()
    }

    /// Its unwind tables, if the dump has any.
    #[must_use]
    pub fn unwind(&self) -> Option<Unwind<'a>> {
        self.unwinding_info.map(|At { body: info, .. }| Unwind {
            eh_frame: info.eh_frame,
            eh_frame_hdr: info.eh_frame_hdr,
            mapped_size: info.mapped_size,
            eh_frame_offset: info.eh_frame_offset(),
            eh_frame_hdr_offset: info.eh_frame_hdr_offset(),
        })
    }

    /// Where its records stand, for [`Dump::code_at`](crate::Dump::code_at).
    #[must_use]
    pub fn place(&self) -> CodePlace {
        CodePlace {
            load: self.offset,
            debug_info: self.debug_info.map_or(0, |info| info.offset),
            unwinding_info: self.unwinding_info.map_or(0, |info| info.offset),
        }
    }

    pub(crate) fn raw_entries(&self) -> impl Iterator<Item = <DebugEntries<'a> as Iterator>::Item> {
        self.debug_info.into_iter().flat_map(|info| info.body.entries())
    }
}

/// Where in a dump a code's records stand: what is needed to read it again, in little room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePlace {
    load: u64,
    /// 0, where the file header is, stands for none.
    debug_info: u64,
    unwinding_info: u64,
}

/// Unwind tables of a code.
///
/// Pointers in them are relative to where they stand, and computed as if the tables lay behind the
/// code at the next multiple of 8: `.eh_frame` at `eh_frame_offset` from there and `.eh_frame_hdr`
/// at `eh_frame_hdr_offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwind<'a> {
    /// The `.eh_frame` section. Empty from V8 for codes to be unwound by frame pointer.
    pub eh_frame: &'a [u8],
    /// The `.eh_frame_hdr` section; may be empty.
    pub eh_frame_hdr: &'a [u8],
    /// How many bytes behind the code the tables take in the process's memory; 0 if they are not
    /// there.
    pub mapped_size: u64,
    /// Offset of `.eh_frame` in the tables.
    pub eh_frame_offset: u64,
    /// Offset of `.eh_frame_hdr` in the tables.
    pub eh_frame_hdr_offset: u64,
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

    fn forget(&mut self) {
        self.debug_infos.clear();
        self.unwinding_info = None;
        self.adjacent = false;
    }

    fn load(&mut self, record: &Record<'a>, load: &Load<'a>) -> CodeLoad<'a> {
        let mut code = self.addressing.load(record, load);
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

impl Addressing {
    /// The code that a LOAD tells of, without what other records say of it.
    fn load<'a>(self, record: &Record<'a>, load: &Load<'a>) -> CodeLoad<'a> {
        let code_addr = if load.code_addr == 0 { load.vma } else { load.code_addr };
        let address = self.code(code_addr);
        CodeLoad {
            offset: record.offset,
            timestamp: record.timestamp,
            pid: load.pid,
            tid: load.tid,
            address,
            size: load.code_size(),
            index: load.code_index,
            name: load.name,
            bytes: load.code,
            is_thumb: address != code_addr,
            debug_info: None,
            unwinding_info: None,
            addressing: self,
        }
    }
}

/// The code whose records stand at `place`; `None` if there are no such records.
pub(crate) fn code_at<'a>(
    dump: &Dump<'a>,
    quirks: &Quirks,
    place: &CodePlace,
) -> Option<CodeLoad<'a>> {
    let record_at = |offset: u64| {
        let record = dump.records_from(offset).next()?.ok()?;
        (record.offset == offset).then_some(record)
    };
    let other = |offset: u64| if offset == 0 { None } else { record_at(offset) };
    let record = record_at(place.load)?;
    let Body::Load(load) = &record.body else { return None };
    let mut code = Addressing::of(quirks).load(&record, load);
    if let Some(Record { offset, body: Body::DebugInfo(body), .. }) = other(place.debug_info) {
        code.debug_info = Some(At { offset, body });
    }
    if let Some(Record { offset, body: Body::UnwindingInfo(body), .. }) =
        other(place.unwinding_info)
    {
        code.unwinding_info = Some(At { offset, body });
    }
    Some(code)
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
