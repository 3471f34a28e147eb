//! A code as its group of records.

use jitdump::extension::tail::ITEM_HEADER_SIZE;
use jitdump::extension::{code as code_item, tag};
use jitdump::{FLAG_ARCH_TIMESTAMP, HEADER_SIZE, RecordId};

use fallible::{Refused, Vec};
use unwind_info::{Error, Machine, Unwind};

use super::layout::{FIRST_ITEM, debug, item_word, load, pair, record_word};
use super::machine::MACHINE;
use super::put::{Put, inlined_size, lines_size, one_file};
use crate::clock::Clock;
use jit_code::Code;

/// Size of the fields of UNWINDING_INFO before its tables.
const UNWINDING_FIELDS: usize = 40;
/// Unwind tables made from rows are rarely larger than this.
const TABLES: usize = 256;

/// The sizes of a code's records, before they are written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    without_bytes: bool,
    /// Whether there are items other than the code itself and its name.
    has_more: bool,
    /// Payload sizes of the items; 0: no such item.
    lines: usize,
    ir_lines: usize,
    inlined: usize,
    /// Total size of the tail's items, of the records behind the first, and of everything.
    items: usize,
    debug: usize,
    unwinding: usize,
    load: usize,
    pub(crate) size: usize,
}

/// The thread that writes, and the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) time: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) index: u64,
}

/// The unwind tables of a code that will be written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tables<'a> {
    pub(crate) eh_frame: &'a [u8],
    pub(crate) eh_frame_hdr: &'a [u8],
}

/// A frame pointer in another code's frame: like the usual one, a flag represents it.
const FRAME_POINTER_ALWAYS: Unwind<'static> = Unwind::FramePointerAlways { signed: false };

/// Appends the unwind tables of `code` to `buffer`, and returns the size of the .eh_frame among them. Unwind info
/// that cannot be encoded is left out, but the code is not: then `refused` is called.
#[inline(always)]
pub(crate) fn unwind_tables(
    code: &Code<'_>,
    with_bytes: bool,
    buffer: &mut Vec<u8>,
    refused: impl FnOnce(),
) -> Result<usize, Refused> {
    let is_without_bytes = !with_bytes || code.bytes.is_none();
    let Some(unwind) = code.unwind else { return Ok(0) };
    // Where only our readers read the log, a flag is enough.
    if is_without_bytes && matches!(unwind, Unwind::FRAME_POINTER | FRAME_POINTER_ALWAYS) {
        return Ok(0);
    }
    described(code.size, &unwind, buffer, refused)
}

#[inline(never)]
fn described(
    size: u64,
    unwind: &Unwind<'_>,
    buffer: &mut Vec<u8>,
    refused: impl FnOnce(),
) -> Result<usize, Refused> {
    let Some(machine) = Machine::from_elf(MACHINE) else { return Ok(0) };
    // Reserve at once: growing with each field takes longer than all the rest.
    buffer.try_reserve(TABLES)?;
    match unwind_info::behind_code(machine, size, unwind, buffer.inner_mut()) {
        Ok(tables) => Ok(tables.eh_frame),
        Err(Error::Memory) => Err(Refused),
        Err(_) => {
            refused();
            Ok(0)
        }
    }
}

impl Plan {
    /// Measures a code. In place, because moving a plan would wait for the processor's stores.
    pub(crate) fn measure(&mut self, code: &Code<'_>, tables: Tables<'_>, with_bytes: bool) {
        self.items = ITEM_HEADER_SIZE + code_item::SIZE;
        if let Some(bytes) = code.bytes.filter(|_| with_bytes) {
            self.load = load::NAME + code.name.len() + 1 + bytes.len();
        } else {
            self.without_bytes = true;
            self.items += item_size(code.name.len());
        }
        self.has_more = !(code.tier.is_empty()
            && code.lines.is_empty()
            && code.ir_lines.is_empty()
            && code.inlined.is_empty()
            && tables.eh_frame.is_empty());
        if self.has_more {
            self.add_more(code, tables);
        }
        let size = FIRST_ITEM + self.items + self.behind();
        self.size = size.next_multiple_of(8);
    }

    /// Whether it can be written: sizes of records and of groups have 32 bits.
    pub(crate) fn fits(&self) -> bool {
        self.size <= u32::MAX as usize / 2
    }

    /// Adds the sizes of optional parts.
    fn add_more(&mut self, code: &Code<'_>, tables: Tables<'_>) {
        if self.without_bytes {
            if !code.lines.is_empty() {
                self.lines = lines_size(code.lines);
                self.items += item_size(self.lines);
            }
            if !tables.eh_frame.is_empty() {
                self.items += item_size(tables.eh_frame.len());
            }
        } else {
            if !code.lines.is_empty() {
                let fixed = debug::ENTRY_FILE + 1;
                let entries = code.lines.iter().map(|line| fixed + line.file.len());
                self.debug = debug::ENTRIES + entries.sum::<usize>();
            }
            let tables = tables.eh_frame.len() + tables.eh_frame_hdr.len();
            if tables > 0 {
                self.unwinding = UNWINDING_FIELDS + tables;
            }
        }
        if !code.tier.is_empty() {
            self.items += item_size(code.tier.len());
        }
        if !code.ir_lines.is_empty() {
            self.ir_lines = lines_size(code.ir_lines);
            self.items += item_size(self.ir_lines);
        }
        if !code.inlined.is_empty() {
            self.inlined = inlined_size(code.inlined);
            self.items += item_size(self.inlined);
        }
    }

    /// Size of the tail's items.
    pub(crate) fn items(&self) -> usize {
        self.items
    }

    /// Size of the records behind the first. If a group has more space than needed, the padding is before these
    /// records, behind the tail of the first one, so that the last byte of the group is the code's.
    pub(crate) fn behind(&self) -> usize {
        self.debug + self.unwinding + self.load
    }

    /// Writes the group from its first item on.
    pub(crate) fn write(
        &self,
        buffer: &mut [u8],
        code: &Code<'_>,
        tables: Tables<'_>,
        stamp: Stamp,
    ) {
        let words = code_words(code, flags(code, self.without_bytes), buffer.len(), stamp);
        let mut put = Put(buffer);
        put.words(words);
        if self.without_bytes {
            put.item(tag::NAME, 0, code.name.len());
            put.padded_name(code.name);
        }
        if self.has_more {
            self.write_more(&mut put, code, tables);
        }
        if let Some(bytes) = code.bytes.filter(|_| !self.without_bytes) {
            self.write_records(put, code, bytes, tables, stamp);
        }
    }

    fn write_more(&self, put: &mut Put<'_>, code: &Code<'_>, tables: Tables<'_>) {
        if self.lines > 0 {
            put.line_table(tag::LINES_SOURCE, code.lines, self.lines);
        }
        if self.without_bytes && !tables.eh_frame.is_empty() {
            put.item(tag::EH_FRAME, 0, tables.eh_frame.len());
            put.padded(tables.eh_frame);
        }
        if !code.tier.is_empty() {
            put.item(tag::TIER, 0, code.tier.len());
            put.padded(code.tier.as_bytes());
        }
        if self.ir_lines > 0 {
            put.line_table(tag::LINES_IR, code.ir_lines, self.ir_lines);
        }
        if self.inlined > 0 {
            put.inlined(code.inlined, self.inlined);
        }
    }

    /// Writes the records behind the first, at the end of the remaining space.
    fn write_records(
        &self,
        put: Put<'_>,
        code: &Code<'_>,
        bytes: &[u8],
        tables: Tables<'_>,
        stamp: Stamp,
    ) {
        let left = put.0.len().checked_sub(self.behind());
        let Some((_, records)) = left.and_then(|padding| put.0.split_at_mut_checked(padding))
        else {
            return;
        };
        let Some((debug, rest)) = records.split_at_mut_checked(self.debug) else { return };
        if self.debug > 0 {
            write_debug(debug, code, stamp.time);
        }
        let Some((unwinding, load)) = rest.split_at_mut_checked(self.unwinding) else { return };
        if self.unwinding > 0 {
            write_unwinding(unwinding, tables, stamp.time);
        }
        write_load(load, code, bytes, stamp);
    }
}

/// The flags byte in a group's first item.
#[inline]
pub(crate) fn flags(code: &Code<'_>, is_without_bytes: bool) -> u8 {
    let without_bytes = if is_without_bytes { code_item::WITHOUT_BYTES } else { 0 };
    let frame = match code.unwind {
        Some(Unwind::FRAME_POINTER) => code_item::FRAME_POINTER,
        Some(FRAME_POINTER_ALWAYS) => code_item::FRAME_POINTER_THROUGHOUT,
        _ => 0,
    };
    without_bytes | frame
}

/// A group's first item. `buffer` is the size of the group from there on.
#[inline]
pub(crate) fn code_words(code: &Code<'_>, flags: u8, buffer: usize, stamp: Stamp) -> [u64; 6] {
    let group_size = (FIRST_ITEM + buffer) as u32;
    [
        item_word(tag::CODE, 0, code_item::SIZE),
        0, // it is alive
        code.size,
        stamp.index,
        pair(group_size, stamp.tid),
        u64::from_ne_bytes([code.kind.into(), flags, 0, 0, 0, 0, 0, 0]),
    ]
}

/// The size of an item with a payload of `size` bytes.
fn item_size(size: usize) -> usize {
    ITEM_HEADER_SIZE + size.next_multiple_of(8)
}

fn write_debug(buffer: &mut [u8], code: &Code<'_>, time: u64) {
    let size = buffer.len();
    let mut put = Put(buffer);
    let count = code.lines.len() as u64;
    put.words([record_word(RecordId::DEBUG_INFO.0, size), time, code.address, count]);
    if let Some(file) = one_file(code.lines) {
        let mut written: Option<&[u8]> = None;
        for (entry, line) in
            put.0.chunks_exact_mut(debug::ENTRY_FILE + file.len() + 1).zip(code.lines)
        {
            let address = code.address.wrapping_add(u64::from(line.offset));
            let Some((fields, name)) = entry.split_first_chunk_mut::<{ debug::ENTRY_FILE }>()
            else {
                return;
            };
            let words = [address, pair(line.line, line.column)];
            fields.copy_from_slice(words.map(u64::to_ne_bytes).as_flattened());
            match written {
                Some(written) => name.copy_from_slice(written),
                None => written = Some(Put(name).terminated_name(file)),
            }
        }
        return;
    }
    // Each entry contains the file's name, which for most is the same as in the previous one.
    let (mut file, mut written): (&[u8], &[u8]) = (b"", &[0]);
    for line in code.lines {
        let address = code.address.wrapping_add(u64::from(line.offset));
        put.words([address, pair(line.line, line.column)]);
        if std::ptr::eq(file, line.file) {
            put.bytes(written);
        } else {
            (file, written) = (line.file, put.terminated_name(line.file));
        }
    }
}

fn write_unwinding(buffer: &mut [u8], tables: Tables<'_>, time: u64) {
    let size = buffer.len();
    let mut put = Put(buffer);
    let tables_size = (tables.eh_frame.len() + tables.eh_frame_hdr.len()) as u64;
    put.words([
        record_word(RecordId::UNWINDING_INFO.0, size),
        time,
        tables_size,
        tables.eh_frame_hdr.len() as u64,
        tables_size, // perf maps this many bytes behind the code; if 0, its unwinder reads no tables
    ]);
    put.bytes(tables.eh_frame);
    put.bytes(tables.eh_frame_hdr);
}

#[inline]
pub(crate) fn write_load(buffer: &mut [u8], code: &Code<'_>, bytes: &[u8], stamp: Stamp) {
    let size = buffer.len();
    let mut put = Put(buffer);
    put.words([
        record_word(RecordId::LOAD.0, size),
        stamp.time,
        pair(stamp.pid, stamp.tid),
        code.address,
        code.address,
        bytes.len() as u64,
        stamp.index,
    ]);
    put.terminated_name(code.name);
    put.bytes(bytes);
}

/// Writes the file's header.
pub(crate) fn write_file_header(
    buffer: &mut [u8],
    machine: u32,
    pid: u32,
    time: u64,
    clock: Clock,
) {
    let flags = if clock == Clock::Monotonic { 0 } else { FLAG_ARCH_TIMESTAMP };
    let mut put = Put(buffer);
    put.words([pair(jitdump::MAGIC, 1), pair(HEADER_SIZE, machine), pair(0, pid), time, flags]);
}
