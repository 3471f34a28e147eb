//! A code with everything that this project records beyond the format.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;
use core::iter;
use core::ops::Range;

use super::unwind_header::eh_frame_hdr;
use super::{WriteError, Writer};
use crate::code_load::CodeLoad;
use crate::debug_info::{DebugEntry, EntryName};
use crate::endian::{to_u64, to_usize};
use crate::extension::{FramePointer, InlinedCall, Kind, LeftOut, code, tag, tail};
use crate::lines::LineEntry;
use crate::load::Load;
use crate::record_id::RecordId;
use crate::sink::Sink;
use crate::unwinding::{UnwindOrder, UnwindingInfo};

/// The input of [`Writer::extended`].
///
/// With bytes, everything that the format has a place for is written in the standard records, so that every tool
/// reads it. Without bytes, everything is in one record that other tools skip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtendedCode<'a> {
    /// When it was loaded, by the records' clock.
    pub timestamp: u64,
    /// Id of the process.
    pub pid: u32,
    /// Id of the thread that loaded it.
    pub tid: u32,
    /// Address of its first byte.
    pub address: u64,
    /// Its size in bytes. Ignored if it has `bytes`.
    pub size: u64,
    /// A number that no other code has.
    pub index: u64,
    /// Its name.
    pub name: &'a [u8],
    /// The machine code; `None` to leave it out.
    pub bytes: Option<&'a [u8]>,
    /// When it was unloaded or moved away; `None` while it is loaded.
    pub died: Option<u64>,
    /// When it was first seen, if `timestamp` is only the earliest possible time of its load.
    pub seen: Option<u64>,
    /// What it is to its runtime.
    pub kind: Kind,
    /// Name of the compiler's tier, if known.
    pub tier: Option<&'a [u8]>,
    /// Source lines, by address.
    pub lines: &'a [LineEntry<'a>],
    /// Lines of the bytecode or intermediate representation, by address.
    pub ir_lines: &'a [LineEntry<'a>],
    /// The calls inlined into it, each after its parent.
    pub inlined: &'a [Inlined<'a>],
    /// Its `.eh_frame`, encoded for the code's end rounded up to 8; may be empty.
    pub eh_frame: &'a [u8],
    /// Its `.eh_frame_hdr`, encoded for the position directly behind it. If empty, the writer generates one.
    pub eh_frame_hdr: &'a [u8],
    /// How many bytes its tables occupy behind the code in the process's memory; 0 if they are not there.
    pub mapped_size: u64,
    /// How it keeps a frame pointer, if it is known to keep one.
    pub frame_pointer: Option<FramePointer>,
}

/// An inlined call of an [`ExtendedCode`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inlined<'a> {
    /// Number of the call into whose body this one was inlined; `None`: into the code itself.
    pub parent: Option<u32>,
    /// The function that was called.
    pub name: &'a [u8],
    /// The file that contains the call.
    pub file: &'a [u8],
    /// Line of the call from 1, or 0 if unknown.
    pub line: u32,
    /// Column of the call from 1, or 0 if unknown.
    pub column: u32,
    /// Addresses of its code.
    pub ranges: Vec<Range<u64>>,
}

impl<'a> From<InlinedCall<'a>> for Inlined<'a> {
    fn from(call: InlinedCall<'a>) -> Self {
        let InlinedCall { parent, name, file, line, column, ranges } = call;
        Self { parent, name, file, line, column, ranges: ranges.collect() }
    }
}

type WriteResult<S> = Result<(), WriteError<<S as Sink>::Error>>;

impl<S: Sink> Writer<S> {
    /// Writes a code with everything known about it: its group of records, in one write.
    ///
    /// # Errors
    /// When a name cannot be written, a parent does not precede its call, a record gets too large, or the sink fails.
    pub fn extended(&mut self, code: &ExtendedCode<'_>) -> WriteResult<S> {
        self.buffer.clear();
        let start = self.begin(RecordId::DEBUG_INFO, code.timestamp);
        self.u64(code.address);
        self.u64(0);
        let size_at = self.begin_tail();
        let code_at = self.code_item(code)?;
        self.extension_items(code)?;
        if let Some(seen) = code.seen {
            let seen = self.endian.put_u64(seen);
            self.payload(tag::SEEN, 0, &seen)?;
        }
        if let Some(tier) = code.tier {
            self.payload(tag::TIER, 0, tier)?;
        }
        if !code.ir_lines.is_empty() {
            self.item(tag::LINES, tag::LINES_IR, |writer| writer.table(code, code.ir_lines))?;
        }
        if !code.inlined.is_empty() {
            self.item(tag::INLINED, 0, |writer| writer.inlined(code))?;
        }
        self.end_tail(size_at)?;

        // What follows decides how much padding the first record needs. Therefore write it first, then insert the
        // padding before it.
        let end = self.buffer.len();
        if let Some(bytes) = code.bytes {
            self.standard(code, bytes)?;
        }
        let padding = self.buffer.len().next_multiple_of(8).saturating_sub(self.buffer.len());
        self.buffer.splice(end..end, iter::repeat_n(0, padding));
        let first_size = self.size(to_u64(end.saturating_add(padding)))?;
        self.patch(start.saturating_add(4), &self.endian.put_u32(first_size));
        let group_size = self.size(to_u64(self.buffer.len()))?;
        let at = code_at.saturating_add(code::GROUP_SIZE);
        self.patch(at, &self.endian.put_u32(group_size));
        self.flush()
    }

    /// Writes a code that was read from another dump. `bytes` are used if the dump does not contain them.
    ///
    /// # Errors
    /// Those of [`extended`](Self::extended).
    pub fn code(&mut self, load: &CodeLoad<'_>, bytes: Option<&[u8]>) -> WriteResult<S> {
        self.code_as(load, bytes, load.died(), load.index)
    }

    /// Like [`code`](Self::code), with another unload time and another index.
    ///
    /// # Errors
    /// Those of [`extended`](Self::extended).
    pub fn code_as(
        &mut self,
        load: &CodeLoad<'_>,
        bytes: Option<&[u8]>,
        died: Option<u64>,
        index: u64,
    ) -> WriteResult<S> {
        let lines: Vec<_> = load.lines().collect();
        let ir_lines: Vec<_> = load.ir_lines().collect();
        let inlined: Vec<_> = load.inlined().map(Inlined::from).collect();
        let unwind = load.unwind();
        let own = (!load.is_without_bytes()).then_some(load.bytes);
        self.extended(&ExtendedCode {
            timestamp: load.timestamp,
            pid: load.pid,
            tid: load.tid,
            address: load.address,
            size: load.size,
            index,
            name: load.name,
            bytes: own.or(bytes),
            died,
            seen: load.seen(),
            kind: load.kind(),
            tier: load.tier(),
            lines: &lines,
            ir_lines: &ir_lines,
            inlined: &inlined,
            eh_frame: unwind.map_or(&[], |unwind| unwind.eh_frame),
            // The writer generates a new header if this one was encoded for another position.
            eh_frame_hdr: unwind
                .filter(|unwind| unwind.eh_frame_offset == 0)
                .map_or(&[], |unwind| unwind.eh_frame_hdr),
            mapped_size: unwind.map_or(0, |unwind| unwind.mapped_size),
            frame_pointer: load.frame_pointer(),
        })
    }

    /// Writes how many codes are missing for lack of space.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn left_out(&mut self, timestamp: u64, left_out: &LeftOut) -> WriteResult<S> {
        let endian = self.endian;
        let payload = [left_out.count, left_out.first, left_out.last].map(|n| endian.put_u64(n));
        self.tail(timestamp, 0, [(tag::LEFT_OUT, 0, payload.as_flattened())])
    }

    /// Writes a record that consists of a tail with these items: for each a tag, a detail and a payload.
    ///
    /// # Errors
    /// When the record gets too large, or the sink fails.
    pub fn tail<'i>(
        &mut self,
        timestamp: u64,
        code_addr: u64,
        items: impl IntoIterator<Item = (u16, u16, &'i [u8])>,
    ) -> WriteResult<S> {
        self.buffer.clear();
        let start = self.begin(RecordId::DEBUG_INFO, timestamp);
        self.u64(code_addr);
        self.u64(0);
        let size_at = self.begin_tail();
        for (tag, detail, payload) in items {
            self.payload(tag, detail, payload)?;
        }
        self.end_tail(size_at)?;
        self.end(start)?;
        self.flush()
    }

    fn code_item(&mut self, code: &ExtendedCode<'_>) -> Result<usize, WriteError<S::Error>> {
        let mut at = 0;
        self.item(tag::CODE, 0, |writer| {
            at = writer.buffer.len();
            writer.u64(code.died.unwrap_or(0));
            writer.u64(code.bytes.map_or(code.size, |bytes| to_u64(bytes.len())));
            writer.u64(code.index);
            writer.u32(0);
            writer.u32(code.tid);
            let without_bytes = if code.bytes.is_none() { code::WITHOUT_BYTES } else { 0 };
            let frame_pointer = match code.frame_pointer {
                Some(FramePointer::Prologue) => code::FRAME_POINTER,
                Some(FramePointer::Throughout) => code::FRAME_POINTER_THROUGHOUT,
                None => 0,
            };
            writer.bytes(&[u8::from(code.kind), without_bytes | frame_pointer]);
            writer.bytes(&[0; 6]);
            Ok(())
        })?;
        Ok(at)
    }

    /// Writes the items that are only in the tail of a code without bytes.
    fn extension_items(&mut self, code: &ExtendedCode<'_>) -> WriteResult<S> {
        if code.bytes.is_some() {
            return Ok(());
        }
        if code.name.contains(&0) {
            return Err(WriteError::NulInName);
        }
        self.payload(tag::NAME, 0, code.name)?;
        if !code.lines.is_empty() {
            self.item(tag::LINES, tag::LINES_SOURCE, |writer| writer.table(code, code.lines))?;
        }
        if !code.eh_frame.is_empty() {
            self.payload(tag::EH_FRAME, 0, code.eh_frame)?;
        }
        Ok(())
    }

    /// Writes the records that the format has for a code.
    fn standard(&mut self, code: &ExtendedCode<'_>, bytes: &[u8]) -> WriteResult<S> {
        if let Some(last) = code.lines.last() {
            // perf gives the last entry no length. An entry at the code's end takes its place.
            let end =
                LineEntry { address: code.address.saturating_add(to_u64(bytes.len())), ..*last };
            let entries = code.lines.iter().chain([&end]).map(|line| DebugEntry {
                addr: line.address,
                line: line.line,
                discrim: line.column,
                name: EntryName::Path(line.file),
            });
            let start = self.put_debug_info(code.timestamp, code.address, entries)?;
            self.end(start)?;
        }
        if !code.eh_frame.is_empty() {
            let made;
            let eh_frame_hdr = if code.eh_frame_hdr.is_empty() {
                made = eh_frame_hdr(code.eh_frame, self.endian);
                &made
            } else {
                code.eh_frame_hdr
            };
            let info = UnwindingInfo {
                eh_frame: code.eh_frame,
                eh_frame_hdr,
                mapped_size: code.mapped_size,
                order: UnwindOrder::FrameFirst,
                padding: &[],
            };
            self.put_unwinding_info(code.timestamp, &info)?;
        }
        let load = Load {
            pid: code.pid,
            tid: code.tid,
            vma: code.address,
            code_addr: code.address,
            code_index: code.index,
            name: code.name,
            code: bytes,
            padding: &[],
            missing: 0,
        };
        self.put_load(code.timestamp, &load)
    }

    fn table(&mut self, code: &ExtendedCode<'_>, lines: &[LineEntry<'_>]) -> WriteResult<S> {
        let mut numbers = BTreeMap::new();
        let mut files = Vec::new();
        let mut rows = Vec::new();
        for line in lines {
            let offset = line.address.checked_sub(code.address);
            let Some(offset) = offset.and_then(|offset| u32::try_from(offset).ok()) else {
                continue;
            };
            let next = self.size(to_u64(files.len()))?;
            let number = match numbers.entry(line.file) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    files.push(line.file);
                    *entry.insert(next)
                }
            };
            rows.push([offset, line.line, line.column, number]);
        }
        rows.sort_by_key(|[offset, ..]| *offset);
        let counts = [self.size(to_u64(rows.len()))?, self.size(to_u64(files.len()))?];
        for number in counts.into_iter().chain(rows.into_iter().flatten()) {
            self.u32(number);
        }
        files.into_iter().try_for_each(|file| self.c_str(file))
    }

    fn inlined(&mut self, code: &ExtendedCode<'_>) -> WriteResult<S> {
        let offset =
            |address: u64| u32::try_from(address.saturating_sub(code.address)).unwrap_or(u32::MAX);
        self.u32(self.size(to_u64(code.inlined.len()))?);
        let ranges = || code.inlined.iter().flat_map(|call| &call.ranges);
        self.u32(self.size(to_u64(ranges().count()))?);
        for (index, call) in code.inlined.iter().enumerate() {
            let parent = call.parent.map_or(usize::MAX, |parent| to_usize(parent.into()));
            if call.parent.is_some() && parent >= index {
                return Err(WriteError::ParentBehind { index });
            }
            self.u32(call.parent.unwrap_or(tag::NO_PARENT));
            self.u32(call.line);
            self.u32(call.column);
            self.u32(self.size(to_u64(call.ranges.len()))?);
        }
        for range in ranges() {
            self.u32(offset(range.start));
            self.u32(offset(range.end));
        }
        let mut previous: &[u8] = &[];
        for call in code.inlined {
            self.c_str(call.name)?;
            self.c_str(if call.file == previous { &[] } else { call.file })?;
            previous = call.file;
        }
        Ok(())
    }

    /// Begins the tail of a record that has no entries, and returns the position of its size.
    fn begin_tail(&mut self) -> usize {
        self.u32(tail::MAGIC);
        let at = self.buffer.len();
        self.u32(0);
        at
    }

    fn end_tail(&mut self, size_at: usize) -> WriteResult<S> {
        let items = self.buffer.len().saturating_sub(size_at).saturating_sub(4);
        let size = self.size(to_u64(items))?;
        self.patch(size_at, &self.endian.put_u32(size));
        Ok(())
    }

    fn payload(&mut self, tag: u16, detail: u16, payload: &[u8]) -> WriteResult<S> {
        self.item(tag, detail, |writer| {
            writer.bytes(payload);
            Ok(())
        })
    }

    /// Appends an item. `write` appends its payload.
    fn item(
        &mut self,
        tag: u16,
        detail: u16,
        write: impl FnOnce(&mut Self) -> WriteResult<S>,
    ) -> WriteResult<S> {
        self.u16(tag);
        self.u16(detail);
        let size_at = self.buffer.len();
        self.u32(0);
        let start = self.buffer.len();
        write(self)?;
        let len = self.buffer.len().saturating_sub(start);
        let size = self.size(to_u64(len))?;
        self.patch(size_at, &self.endian.put_u32(size));
        let padding = len.next_multiple_of(tail::ALIGN).saturating_sub(len);
        self.buffer.extend(iter::repeat_n(0, padding));
        Ok(())
    }
}
