//! A code as its group of records.

use jitdump::extension::tail::{ITEM_HEADER_SIZE, MAGIC as TAIL_MAGIC};
use jitdump::extension::{code as code_item, tag};
use jitdump::{HEADER_SIZE, RecordId};

use super::layout::{FIRST_ITEM, TAIL, item_word, pair};
use unwind_info::{Machine, Unwind};

use crate::code::{Code, Inlined, Line};

/// Fields of a LOAD record before its name.
const LOAD_FIELDS: usize = 56;
/// Fields of UNWINDING_INFO before its tables.
const UNWINDING_FIELDS: usize = 40;
/// Files of a line table that are looked for again, before one is written twice.
const FILES: usize = 16;

/// The sizes of a code's records, as it will be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    lean: bool,
    /// Payload sizes of the items; `None`: no such item.
    lines: Option<usize>,
    ir_lines: Option<usize>,
    inlined: Option<usize>,
    /// Sizes of the tail's items, of the records behind the first, and of all.
    items: usize,
    debug: usize,
    unwinding: usize,
    load: usize,
    pub(crate) size: usize,
}

/// Who writes, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) time: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) index: u64,
}

/// The unwind tables of a code, as far as they are to be written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tables<'a> {
    pub(crate) eh_frame: &'a [u8],
    pub(crate) eh_frame_hdr: &'a [u8],
}

/// A frame pointer of someone else's frame: like the usual one, this is told by a flag.
const FRAME_POINTER_ALWAYS: Unwind<'static> = Unwind::FramePointerAlways { signed: false };

/// Appends the unwind tables of `code` to `room`, and returns the size of the frames among them. What cannot
/// be described is left out: the code is not.
pub(crate) fn unwind_tables(code: &Code<'_>, with_bytes: bool, room: &mut Vec<u8>) -> usize {
    let is_lean = !with_bytes || code.bytes.is_none();
    let machine = Machine::from_elf(super::MACHINE);
    let (Some(unwind), Some(machine)) = (code.unwind, machine) else { return 0 };
    // Where nobody but us reads the log, a flag is enough.
    if is_lean && [Unwind::FRAME_POINTER, FRAME_POINTER_ALWAYS].contains(&unwind) {
        return 0;
    }
    let tables = unwind_info::behind_code(machine, code.size, &unwind, room);
    tables.map_or(0, |tables| tables.eh_frame)
}

impl Plan {
    /// `None` for what cannot be written: more than fits a record.
    pub(crate) fn new(code: &Code<'_>, tables: Tables<'_>, with_bytes: bool) -> Option<Self> {
        let bytes = code.bytes.filter(|_| with_bytes);
        let lean = bytes.is_none();
        let mut items = ITEM_HEADER_SIZE + code_item::SIZE;
        let mut item = |size: usize| items += ITEM_HEADER_SIZE + size.next_multiple_of(8);
        if !code.tier.is_empty() {
            item(code.tier.len());
        }
        let (mut debug, mut unwinding, mut load) = (0, 0, 0);
        let mut lines = None;
        if let Some(bytes) = bytes {
            if !code.lines.is_empty() {
                debug = TAIL + code.lines.iter().map(|line| 17 + line.file.len()).sum::<usize>();
            }
            let tables = tables.eh_frame.len() + tables.eh_frame_hdr.len();
            if tables > 0 {
                unwinding = UNWINDING_FIELDS + tables;
            }
            load = LOAD_FIELDS + code.name.len() + 1 + bytes.len();
        } else {
            item(code.name.len());
            if !code.lines.is_empty() {
                let size = lines_size(code.lines);
                lines = Some(size);
                item(size);
            }
            if !tables.eh_frame.is_empty() {
                item(tables.eh_frame.len());
            }
        }
        let mut ir_lines = None;
        if !code.ir_lines.is_empty() {
            let size = lines_size(code.ir_lines);
            ir_lines = Some(size);
            item(size);
        }
        let mut inlined = None;
        if !code.inlined.is_empty() {
            let size = inlined_size(code.inlined);
            inlined = Some(size);
            item(size);
        }
        let size = FIRST_ITEM + items + debug + unwinding + load;
        let size = size.next_multiple_of(8);
        // Sizes in records have 32 bits; so has the group's.
        (size <= u32::MAX as usize / 2).then_some(Self {
            lean,
            lines,
            ir_lines,
            inlined,
            items,
            debug,
            unwinding,
            load,
            size,
        })
    }

    /// The first word of the group's tail, which makes it count.
    pub(crate) fn tail_word(&self) -> u64 {
        pair(TAIL_MAGIC, self.items as u32)
    }

    /// Size of the first record of a group that takes `size` bytes in all: what is more than needed
    /// is padding behind its tail, so that the last byte of the group is the code's.
    pub(crate) fn first_size(&self, size: usize) -> usize {
        size - self.debug - self.unwinding - self.load
    }

    /// Writes all of the group from its first item on.
    pub(crate) fn write(&self, room: &mut [u8], code: &Code<'_>, tables: Tables<'_>, stamp: Stamp) {
        let size = room.len() + FIRST_ITEM;
        let items = self.first_size(size) - FIRST_ITEM;
        let Some((first, rest)) = room.split_at_mut_checked(items) else { return };
        self.write_items(first, size, code, tables, stamp);
        let Some((debug, rest)) = rest.split_at_mut_checked(self.debug) else { return };
        if self.debug > 0 {
            write_debug(debug, code, stamp.time);
        }
        let Some((unwinding, load)) = rest.split_at_mut_checked(self.unwinding) else { return };
        if self.unwinding > 0 {
            write_unwinding(unwinding, tables, stamp.time);
        }
        if let Some(bytes) = code.bytes.filter(|_| !self.lean) {
            write_load(load, code, bytes, stamp);
        }
    }

    fn write_items(
        &self,
        items: &mut [u8],
        group_size: usize,
        code: &Code<'_>,
        tables: Tables<'_>,
        stamp: Stamp,
    ) {
        let mut put = Put(items);
        put.item(tag::CODE, 0, code_item::SIZE);
        put.u64(0);
        put.u64(code.size);
        put.u64(stamp.index);
        put.u32(group_size as u32);
        put.u32(stamp.tid);
        put.u64(u64::from_ne_bytes([code.kind.into(), self.flags(code), 0, 0, 0, 0, 0, 0]));
        if !code.tier.is_empty() {
            put.item(tag::TIER, 0, code.tier.len());
            put.padded(code.tier.as_bytes());
        }
        if self.lean {
            put.item(tag::NAME, 0, code.name.len());
            put.name(code.name);
            put.pad(code.name.len());
            if let Some(size) = self.lines {
                put.line_table(tag::LINES_SOURCE, code.lines, size);
            }
            if !tables.eh_frame.is_empty() {
                put.item(tag::EH_FRAME, 0, tables.eh_frame.len());
                put.padded(tables.eh_frame);
            }
        }
        if let Some(size) = self.ir_lines {
            put.line_table(tag::LINES_IR, code.ir_lines, size);
        }
        if let Some(size) = self.inlined {
            put.inlined(code.inlined, size);
        }
    }

    fn flags(&self, code: &Code<'_>) -> u8 {
        let lean = if self.lean { code_item::LEAN } else { 0 };
        let frame = match code.unwind {
            Some(Unwind::FRAME_POINTER) => code_item::FRAME_POINTER,
            Some(FRAME_POINTER_ALWAYS) => code_item::FRAME_POINTER_THROUGHOUT,
            _ => 0,
        };
        lean | frame
    }
}

fn write_debug(room: &mut [u8], code: &Code<'_>, time: u64) {
    let size = room.len();
    let mut put = Put(room);
    put.record(RecordId::DEBUG_INFO, size, time);
    put.u64(code.address);
    put.u64(code.lines.len() as u64);
    for line in code.lines {
        put.u64(code.address.wrapping_add(u64::from(line.offset)));
        put.u32(line.line);
        put.u32(line.column);
        put.name(line.file.as_bytes());
        put.bytes(&[0]);
    }
}

fn write_unwinding(room: &mut [u8], tables: Tables<'_>, time: u64) {
    let size = room.len();
    let mut put = Put(room);
    put.record(RecordId::UNWINDING_INFO, size, time);
    let tables_size = (tables.eh_frame.len() + tables.eh_frame_hdr.len()) as u64;
    put.u64(tables_size);
    put.u64(tables.eh_frame_hdr.len() as u64);
    put.u64(tables_size); // perf maps as much behind the code; with 0 its unwinder reads no tables
    put.bytes(tables.eh_frame);
    put.bytes(tables.eh_frame_hdr);
}

fn write_load(room: &mut [u8], code: &Code<'_>, bytes: &[u8], stamp: Stamp) {
    let size = room.len();
    let mut put = Put(room);
    put.record(RecordId::LOAD, size, stamp.time);
    put.u32(stamp.pid);
    put.u32(stamp.tid);
    put.u64(code.address);
    put.u64(code.address);
    put.u64(bytes.len() as u64);
    put.u64(stamp.index);
    put.name(code.name);
    put.bytes(&[0]);
    put.bytes(bytes);
}

/// The file's header.
pub(crate) fn write_file_header(room: &mut [u8], machine: u32, pid: u32, time: u64) {
    let mut put = Put(room);
    for field in [jitdump::MAGIC, 1, HEADER_SIZE, machine, 0, pid] {
        put.u32(field);
    }
    put.u64(time);
    put.u64(0);
}

/// Numbers the files of a line table, the same way each time.
struct Files<'a> {
    known: [&'a str; FILES],
    count: u32,
    latest: (&'a str, u32),
}

impl<'a> Files<'a> {
    fn new() -> Self {
        Self { known: [""; FILES], count: 0, latest: ("", u32::MAX) }
    }

    /// The number of `file`, and whether it is a new one.
    fn number(&mut self, file: &'a str) -> (u32, bool) {
        let (latest, number) = self.latest;
        // Most often the very same string.
        if number != u32::MAX && (std::ptr::eq(latest, file) || latest == file) {
            return (number, false);
        }
        let known = self.known.iter().take(self.count as usize).position(|known| *known == file);
        let (number, new) = match known {
            Some(number) => (number as u32, false),
            None => {
                if let Some(place) = self.known.get_mut(self.count as usize) {
                    *place = file;
                }
                self.count += 1;
                (self.count - 1, true)
            }
        };
        self.latest = (file, number);
        (number, new)
    }
}

fn lines_size(lines: &[Line<'_>]) -> usize {
    let mut files = Files::new();
    let names: usize = lines
        .iter()
        .map(|line| match files.number(line.file) {
            (_, true) => line.file.len() + 1,
            (_, false) => 0,
        })
        .sum();
    8 + 16 * lines.len() + names
}

fn inlined_size(calls: &[Inlined<'_>]) -> usize {
    let mut size = 8;
    let mut file = "";
    for call in calls {
        size += 16 + 8 * call.ranges.len() + call.name.len() + 1 + 1;
        if call.file != file {
            size += call.file.len();
            file = call.file;
        }
    }
    size
}

/// Writes field after field; what does not fit is dropped, which the sizes of [`Plan`] rule out.
struct Put<'b>(&'b mut [u8]);

impl<'b> Put<'b> {
    fn next(&mut self, length: usize) -> Option<&'b mut [u8]> {
        let (next, rest) = std::mem::take(&mut self.0).split_at_mut_checked(length)?;
        self.0 = rest;
        Some(next)
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        if let Some(room) = self.next(bytes.len()) {
            room.copy_from_slice(bytes);
        }
    }

    #[inline]
    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_ne_bytes());
    }

    #[inline]
    fn u64(&mut self, value: u64) {
        self.bytes(&value.to_ne_bytes());
    }

    fn record(&mut self, id: RecordId, size: usize, time: u64) {
        self.u32(id.0);
        self.u32(size as u32);
        self.u64(time);
    }

    fn item(&mut self, tag: u16, detail: u16, size: usize) {
        self.u64(item_word(tag, detail, size));
    }

    /// A name without what breaks the lines of those who print it.
    fn name(&mut self, name: &[u8]) {
        let Some(room) = self.next(name.len()) else { return };
        room.copy_from_slice(name);
        for byte in room {
            *byte = if *byte < b' ' || *byte == 0x7f { b' ' } else { *byte };
        }
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.bytes(bytes);
        self.pad(bytes.len());
    }

    fn pad(&mut self, length: usize) {
        if let Some(room) = self.next(length.next_multiple_of(8) - length) {
            room.fill(0);
        }
    }

    fn line_table(&mut self, detail: u16, lines: &[Line<'_>], size: usize) {
        self.item(tag::LINES, detail, size);
        let (rows, names) = (16 * lines.len(), size - 8 - 16 * lines.len());
        self.u32(lines.len() as u32);
        let count = self.next(4);
        let mut put_rows = Put(self.next(rows).unwrap_or_default());
        let mut put_names = Put(self.next(names).unwrap_or_default());
        let mut files = Files::new();
        for line in lines {
            let (file, new) = files.number(line.file);
            if new {
                put_names.name(line.file.as_bytes());
                put_names.bytes(&[0]);
            }
            put_rows.u32(line.offset);
            put_rows.u32(line.line);
            put_rows.u32(line.column);
            put_rows.u32(file);
        }
        if let Some(count) = count {
            count.copy_from_slice(&files.count.to_ne_bytes());
        }
        self.pad(size);
    }

    fn inlined(&mut self, calls: &[Inlined<'_>], size: usize) {
        self.item(tag::INLINED, 0, size);
        self.u32(calls.len() as u32);
        self.u32(calls.iter().map(|call| call.ranges.len() as u32).sum());
        for call in calls {
            self.u32(call.parent.unwrap_or(tag::NO_PARENT));
            self.u32(call.line);
            self.u32(call.column);
            self.u32(call.ranges.len() as u32);
        }
        for range in calls.iter().flat_map(|call| call.ranges) {
            self.u32(range.start);
            self.u32(range.end);
        }
        let mut file = "";
        for call in calls {
            self.name(call.name.as_bytes());
            self.bytes(&[0]);
            if call.file != file {
                self.name(call.file.as_bytes());
                file = call.file;
            }
            self.bytes(&[0]);
        }
        self.pad(size);
    }
}
