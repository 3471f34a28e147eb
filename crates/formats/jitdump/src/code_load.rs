//! A code load, with everything that the dump records about it.

use core::num::NonZeroU32;

use crate::debug_info::{DebugEntries, DebugInfo};
use crate::endian::to_u64;
use crate::extension::code::LARGEST_WITHOUT_BYTES;
use crate::extension::{
    CodeItem, FramePointer, InlinedCalls, ItemBody, Kind, Tail, lines::LineTable, tag,
};
use crate::garbled::NearEntries;
use crate::lines::{Addressing, LineSource, Lines};
use crate::load::Load;
use crate::quirks::Quirks;
use crate::reader::Dump;
use crate::record::{Body, Record};
use crate::record_id::RecordId;
use crate::source_positions::{PositionLines, SourcePositions};
use crate::unwinding::UnwindingInfo;

/// A code load.
#[derive(Clone, Copy, Debug)]
pub struct CodeLoad<'a> {
    /// Offset in the file of its LOAD record, or of the only record of a code without bytes.
    pub offset: u64,
    /// When the record was written, by the records' clock. Codes come in the order of the file, which is not always
    /// the order of their timestamps. Equal timestamps are common.
    pub timestamp: u64,
    /// Process id as the writer saw it.
    pub pid: u32,
    /// Id of the thread that loaded it.
    pub tid: u32,
    /// Address of its first byte, without the Thumb bit.
    pub address: u64,
    /// Size in bytes; may be 0.
    pub size: u64,
    /// The number by which a later move refers to it. Not always unique.
    pub index: u64,
    /// Its name as the writer gave it: any bytes except NUL, possibly empty.
    pub name: &'a [u8],
    /// The machine code: `size` bytes, or none if the code [has no bytes](Self::is_without_bytes).
    pub bytes: &'a [u8],
    /// Whether its address had the Thumb bit, which marks 32-bit ARM code in the Thumb instruction set.
    pub is_thumb: bool,
    pub(crate) debug_info: Option<At<DebugInfo<'a>>>,
    source_positions: Option<At<FoundPositions<'a>>>,
    pub(crate) unwinding_info: Option<At<UnwindingInfo<'a>>>,
    /// The tail with its CODE item, and the offset of the record.
    pub(crate) group: Option<At<Tail<'a>>>,
    pub(crate) addressing: Addressing,
}

/// Source positions that were found in a dump or added, and what computes inlined calls from them. It is behind a pointer, so that a
/// program that reads only code logs, in which there are none, need not contain it.
#[derive(Clone, Copy, Debug)]
struct FoundPositions<'a> {
    positions: SourcePositions<'a>,
    inlined: for<'p> fn(&SourcePositions<'p>, &CodeLoad<'p>) -> InlinedCalls<'p>,
}

impl<'a> FoundPositions<'a> {
    fn new(positions: SourcePositions<'a>) -> Self {
        Self { positions, inlined: calls_of }
    }
}

fn calls_of<'p>(positions: &SourcePositions<'p>, code: &CodeLoad<'p>) -> InlinedCalls<'p> {
    InlinedCalls::computed(positions.calls(code.size), code.address)
}

/// The offsets of the records that describe a code, besides its LOAD.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordsBefore {
    pub(crate) group: Option<u64>,
    pub(crate) debug_info: Option<u64>,
    pub(crate) unwinding_info: Option<u64>,
}

/// A record's body, or part of it, and the record's offset in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<T> {
    pub(crate) offset: u64,
    pub(crate) body: T,
}

impl<'a> CodeLoad<'a> {
    /// The address behind its last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }

    /// Approximate number of bytes that describe it in the dump: what it costs to process it once more.
    #[must_use]
    pub fn weight(&self) -> usize {
        let debug_info = self.debug_info.map_or(0, |info| info.body.len());
        let group = self.group.map_or(0, |group| group.body.len());
        let unwinding = self.unwinding_info.map_or(0, |At { body: info, .. }| {
            info.eh_frame.len().saturating_add(info.eh_frame_hdr.len())
        });
        let positions = self.source_positions.map_or(0, |found| found.body.positions.len());
        [self.bytes.len(), debug_info, positions, group, unwinding]
            .into_iter()
            .fold(self.name.len(), usize::saturating_add)
    }

    /// Its source lines, from source positions, from the entries of a DEBUG_INFO record or from a table in a tail, in the
    /// order of the dump (V8's addresses do not always ascend).
    ///
    /// Addresses are absolute, corrected by the writer's bias, and within the code. An entry past the end is skipped.
    /// Of the entries before the start, the last one becomes the line of the start. "Same file" is resolved, and
    /// names that V8 wrote from freed memory are repaired as far as possible. An entry without line and file ends the
    /// line before it and is returned as line 0. It is skipped if there is no line before it.
    #[must_use]
    pub fn lines(&self) -> Lines<'a> {
        if let Some(found) = self.source_positions {
            let lines = PositionLines::new(found.body.positions);
            // Offsets in the code have no bias.
            let addressing = Addressing { bias: 0, ..self.addressing };
            let source = Some(LineSource::Positions(self.address, lines));
            return Lines::new(source, addressing, self.address..self.end());
        }
        let Some(info) = self.debug_info else { return self.table(tag::LINES_SOURCE) };
        let bias = self.addressing.bias;
        let within = self.address.saturating_add(bias)..self.end().saturating_add(bias);
        let entries = NearEntries::new(info.body.entries(), within, self.name);
        self.lines_of(Some(LineSource::Entries(entries)))
    }

    /// Its lines in the bytecode or intermediate representation that it was compiled from, in the form of
    /// [`lines`](Self::lines).
    #[must_use]
    pub fn ir_lines(&self) -> Lines<'a> {
        self.table(tag::LINES_IR)
    }

    /// The lines of the first table with this `detail`.
    fn table(&self, detail: u16) -> Lines<'a> {
        let table: Option<LineTable<'_>> = match self.item(tag::LINES, Some(detail)) {
            Some(ItemBody::Lines { table, .. }) => Some(table),
            _ => None,
        };
        self.lines_of(table.map(|table| LineSource::Table(self.address, table.rows())))
    }

    fn lines_of(&self, source: Option<LineSource<'a>>) -> Lines<'a> {
        Lines::new(source, self.addressing, self.address..self.end())
    }

    /// The calls inlined into it, from source positions or from a tail. Their ranges are addresses within the code.
    #[must_use]
    pub fn inlined(&self) -> InlinedCalls<'a> {
        if let Some(At { body: found, .. }) = self.source_positions {
            return (found.inlined)(&found.positions, self);
        }
        match self.item(tag::INLINED, None) {
            Some(ItemBody::Inlined(calls)) => calls.of_code(self.address, self.size),
            _ => InlinedCalls::none(),
        }
    }

    /// Whether the dump has source positions or a DEBUG_INFO record with entries for it.
    #[must_use]
    pub fn has_debug_info(&self) -> bool {
        self.debug_info.is_some() || self.source_positions.is_some()
    }

    /// The same code with lines and inlined calls from these source positions: for what is known about it from
    /// elsewhere than its dump.
    #[must_use]
    pub fn with_source_positions(self, positions: SourcePositions<'a>) -> Self {
        let positions = (!positions.is_empty())
            .then(|| At { offset: self.offset, body: FoundPositions::new(positions) });
        Self { source_positions: positions.or(self.source_positions), ..self }
    }

    /// The source positions that its lines and inlined calls are from, if there are any.
    #[must_use]
    pub fn source_positions(&self) -> Option<SourcePositions<'a>> {
        self.source_positions.map(|found| found.body.positions)
    }

    /// Its unwind tables, if the dump has any, from an UNWINDING_INFO record or from a tail.
    #[must_use]
    pub fn unwind(&self) -> Option<Unwind<'a>> {
        if let Some(At { body: info, .. }) = self.unwinding_info {
            return Some(Unwind {
                eh_frame: info.eh_frame,
                eh_frame_hdr: info.eh_frame_hdr,
                mapped_size: info.mapped_size,
                eh_frame_offset: info.eh_frame_offset(),
                eh_frame_hdr_offset: info.eh_frame_hdr_offset(),
            });
        }
        match self.item(tag::EH_FRAME, None)? {
            ItemBody::EhFrame(eh_frame) => Some(Unwind {
                eh_frame,
                eh_frame_hdr: &[],
                mapped_size: 0,
                eh_frame_offset: 0,
                eh_frame_hdr_offset: crate::endian::to_u64(eh_frame.len()),
            }),
            _ => None,
        }
    }

    /// How it keeps a frame pointer, if the writer recorded this.
    #[must_use]
    pub fn frame_pointer(&self) -> Option<FramePointer> {
        self.code_item()?.frame_pointer()
    }

    /// What it is to its runtime; [`Kind::Function`] if the writer did not record this.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.code_item().map_or(Kind::Function, |item| item.kind)
    }

    /// Name of the compiler's tier, if the writer recorded one: any bytes.
    #[must_use]
    pub fn tier(&self) -> Option<&'a [u8]> {
        match self.item(tag::TIER, None)? {
            ItemBody::Tier(tier) => Some(tier),
            _ => None,
        }
    }

    /// When it was unloaded or moved away, by the records' clock. `None` if it is still loaded, or if the writer does
    /// not record such times. Never earlier than its load.
    #[must_use]
    pub fn died(&self) -> Option<u64> {
        let died = self.code_item()?.died;
        (died != 0).then(|| died.max(self.timestamp))
    }

    /// When it was first seen, by the records' clock, if the writer has not seen its load: then the time of the load is the earliest
    /// possible one. Never earlier than that.
    #[must_use]
    pub fn seen(&self) -> Option<u64> {
        match self.item(tag::SEEN, None)? {
            ItemBody::Seen(seen) => Some(seen.max(self.timestamp)),
            _ => None,
        }
    }

    /// Whether its writer omitted the bytes.
    #[must_use]
    pub fn is_without_bytes(&self) -> bool {
        let has_bytes = to_u64(self.bytes.len()) == self.size;
        !has_bytes || self.code_item().is_some_and(|item| item.is_without_bytes())
    }

    /// The raw tail: what this project's own writers record about it beyond the format.
    #[must_use]
    pub fn tail(&self) -> Option<Tail<'a>> {
        self.group.map(|group| group.body)
    }

    fn code_item(&self) -> Option<CodeItem> {
        self.group?.body.code()
    }

    fn item(&self, tag: u16, detail: Option<u16>) -> Option<ItemBody<'a>> {
        self.group?.body.find(tag, detail)?.body()
    }

    /// Where its records are, for [`Dump::code_at`](crate::Dump::code_at).
    #[must_use]
    pub fn place(&self) -> CodePlace {
        let before = |offset: Option<u64>| {
            offset.and_then(|offset| {
                NonZeroU32::new(self.offset.checked_sub(offset)?.try_into().ok()?)
            })
        };
        CodePlace {
            load: self.offset,
            group: before(self.group.map(|group| group.offset)),
            debug_info: before(self.debug_info.map(|info| info.offset)),
            source_positions: before(self.source_positions.map(|positions| positions.offset)),
            unwinding_info: before(self.unwinding_info.map(|info| info.offset)),
        }
    }

    /// Adds the source positions in the record at this offset.
    pub(crate) fn attach_positions(&mut self, dump: &Dump<'a>, offset: Option<u64>) {
        if let Some(Record { offset, body: Body::Unknown { id, bytes }, .. }) =
            offset.and_then(|offset| dump.record_at(offset))
            && RecordId(id) == RecordId::SOURCE_POSITIONS
            && let Some(positions) = SourcePositions::parse(bytes, dump.header().endian)
            && !positions.is_empty()
        {
            self.source_positions = Some(At { offset, body: FoundPositions::new(positions) });
        }
    }

    /// Adds what the records at these offsets contain.
    pub(crate) fn attach(&mut self, dump: &Dump<'a>, records: RecordsBefore) {
        let RecordsBefore { group, debug_info, unwinding_info } = records;
        let record_at = |offset: Option<u64>| dump.record_at(offset?);
        if let Some(Record { offset, body: Body::DebugInfo(body), .. }) = record_at(group)
            && let Some(body) = body.tail()
        {
            self.group = Some(At { offset, body });
            self.addressing.bias = 0;
        }
        if let Some(Record { offset, body: Body::DebugInfo(body), .. }) = record_at(debug_info) {
            self.debug_info = Some(At { offset, body });
        }
        if let Some(Record { offset, body: Body::UnwindingInfo(body), .. }) =
            record_at(unwinding_info)
        {
            self.unwinding_info = Some(At { offset, body });
        }
    }

    pub(crate) fn raw_entries(&self) -> impl Iterator<Item = <DebugEntries<'a> as Iterator>::Item> {
        self.debug_info.into_iter().flat_map(|info| info.body.entries())
    }
}

/// Where the records of a code are in a dump: a compact form of what is needed to read it again.
///
/// A record that is 4 GB or more before the LOAD is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePlace {
    /// Offset of the LOAD, or of the only record of a code without bytes.
    pub(crate) load: u64,
    /// How many bytes before it the record with the tail begins.
    group: Option<NonZeroU32>,
    debug_info: Option<NonZeroU32>,
    source_positions: Option<NonZeroU32>,
    unwinding_info: Option<NonZeroU32>,
}

impl CodePlace {
    fn offset(&self, before: Option<NonZeroU32>) -> Option<u64> {
        self.load.checked_sub(before?.get().into())
    }

    /// Where the first of the records begins.
    pub(crate) fn first(&self) -> u64 {
        let of_lines = self.debug_info.max(self.source_positions);
        self.offset(self.group.max(of_lines).max(self.unwinding_info)).unwrap_or(self.load)
    }
}

/// The unwind tables of a code.
///
/// Pointers in them are relative to their own position. They are computed as if the tables were behind the code at
/// the next multiple of 8: `.eh_frame` at `eh_frame_offset` from there, and `.eh_frame_hdr` at `eh_frame_hdr_offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwind<'a> {
    /// The `.eh_frame` section. V8 leaves it empty for codes that are unwound by frame pointer.
    pub eh_frame: &'a [u8],
    /// The `.eh_frame_hdr` section; may be empty.
    pub eh_frame_hdr: &'a [u8],
    /// How many bytes the tables occupy behind the code in the process's memory; 0 if they are not there.
    pub mapped_size: u64,
    /// Offset of `.eh_frame` in the tables.
    pub eh_frame_offset: u64,
    /// Offset of `.eh_frame_hdr` in the tables.
    pub eh_frame_hdr_offset: u64,
}

impl Addressing {
    /// The code that a LOAD describes, without the content of other records.
    pub(crate) fn load<'a>(self, record: &Record<'a>, load: &Load<'a>) -> CodeLoad<'a> {
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
            source_positions: None,
            unwinding_info: None,
            group: None,
            addressing: self,
        }
    }

    /// The code without bytes that the tail of a DEBUG_INFO record for `code_addr` describes.
    pub(crate) fn load_without_bytes<'a>(
        self,
        record: &Record<'a>,
        code_addr: u64,
        pid: u32,
        tail: Tail<'a>,
        item: &CodeItem,
    ) -> CodeLoad<'a> {
        let address = self.code(code_addr);
        let name = tail.find(tag::NAME, None).map_or(&[][..], |item| item.payload);
        CodeLoad {
            offset: record.offset,
            timestamp: record.timestamp,
            pid,
            tid: item.tid,
            address,
            size: item.code_size,
            index: item.code_index,
            name: name.split(|byte| *byte == 0).next().unwrap_or(&[]),
            bytes: &[],
            is_thumb: address != code_addr,
            debug_info: None,
            source_positions: None,
            unwinding_info: None,
            group: Some(At { offset: record.offset, body: tail }),
            addressing: Addressing { bias: 0, ..self },
        }
    }
}

impl<'a> Dump<'a> {
    /// Reads a code again that [`codes_with`](Self::codes_with) returned before with the same quirks.
    ///
    /// `None` if this dump has no such records at that place.
    #[must_use]
    pub fn code_at(&self, place: &CodePlace, quirks: &Quirks) -> Option<CodeLoad<'a>> {
        let record = self.record_at(place.load)?;
        let addressing = Addressing::of(quirks);
        let mut code = match &record.body {
            Body::Load(load) => addressing.load(&record, load),
            Body::DebugInfo(info) => {
                let tail = info.tail()?;
                let is_without_bytes = |item: &CodeItem| {
                    item.is_without_bytes() && item.code_size <= LARGEST_WITHOUT_BYTES
                };
                let item = tail.code().filter(is_without_bytes)?;
                return Some(addressing.load_without_bytes(
                    &record,
                    info.code_addr,
                    self.header().pid,
                    tail,
                    &item,
                ));
            }
            _ => return None,
        };
        let records = RecordsBefore {
            group: place.offset(place.group),
            debug_info: place.offset(place.debug_info),
            unwinding_info: place.offset(place.unwinding_info),
        };
        code.attach_positions(self, place.offset(place.source_positions));
        code.attach(self, records);
        Some(code)
    }
}
