//! The extensions: tails of DEBUG_INFO records, and groups.

use crate::bytes::{Bytes, id};
use crate::reading::{Call, Code, Line};

pub mod tag {
    pub const CODE: u16 = 1;
    pub const NAME: u16 = 2;
    pub const TIER: u16 = 3;
    pub const LINES: u16 = 4;
    pub const INLINED: u16 = 5;
    pub const EH_FRAME: u16 = 6;
    pub const LEFT_OUT: u16 = 7;
    pub const LOG: u16 = 16;
    pub const CHUNK: u16 = 17;
    pub const BREAKPOINTS: u16 = 18;
}

/// The first word of a tail.
pub const MAGIC: u32 = 0x5243_534a;

pub const KINDS: [(&str, u8); 8] = [
    ("function", 0),
    ("stub", 1),
    ("trampoline", 2),
    ("bytecode-handler", 3),
    ("wrapper", 4),
    ("regular-expression", 5),
    ("java-method", 6),
    ("other", 255),
];

impl Bytes {
    pub fn item(
        &mut self,
        tag: u16,
        detail: u16,
        payload: impl FnOnce(&mut Self) -> &mut Self,
    ) -> &mut Self {
        self.u16(tag).u16(detail).u32(0);
        let start = self.out.len();
        payload(self);
        let size = u32::try_from(self.out.len() - start).expect("a small item");
        self.set_u32(start - 4, size);
        self.pad(start, 8)
    }

    /// Writes a DEBUG_INFO without entries and with a tail.
    pub fn tail(
        &mut self,
        time: u64,
        address: u64,
        items: impl FnOnce(&mut Self) -> &mut Self,
    ) -> &mut Self {
        self.record(id::DEBUG_INFO, time, |file| {
            file.u64(address).u64(0).u32(MAGIC).u32(0);
            let start = file.out.len();
            items(file);
            let size = u32::try_from(file.out.len() - start).expect("a small tail");
            file.set_u32(start - 4, size)
        })
    }

    /// Writes a filler of this size, with this content.
    pub fn filler(&mut self, time: u64, size: usize, content: &[u8]) -> &mut Self {
        let start = self.out.len();
        self.u32(id::DEBUG_INFO).u32(size as u32).u64(time).u64(0).u64(0).raw(content);
        assert!(self.out.len() <= start + size && size.is_multiple_of(8) && size >= 32);
        self.out.resize(start + size, 0);
        self
    }

    /// Writes the records of a code as a group. Like the library, it pads the first record so that the last one ends
    /// at a multiple of 8.
    pub fn group(&mut self, code: &Code) -> &mut Self {
        self.group_with(code, |file| file)
    }

    /// Writes a group with more items.
    pub fn group_with(&mut self, code: &Code, more: impl Fn(&mut Self) -> &mut Self) -> &mut Self {
        let start = self.out.len();
        let mut rest = Self { out: Vec::new(), is_big: self.is_big };
        if code.bytes.is_some() {
            if !code.lines.is_empty() {
                rest.debug_info(code, 0);
            }
            if code.unwind.is_some() {
                rest.unwinding(code);
            }
            rest.load(code);
        }
        self.tail(code.time, code.address, |file| {
            let item = file.out.len();
            file.item(tag::CODE, 0, |file| {
                let kind = KINDS.iter().find(|(name, _)| *name == code.kind).expect("a kind").1;
                let frame_pointer = match code.frame_pointer {
                    Some("prologue") => 2,
                    Some(_) => 4,
                    None => 0,
                };
                file.u64(code.died.unwrap_or(0))
                    .u64(code.size)
                    .u64(code.index)
                    .u32(0)
                    .u32(code.tid);
                file.u8(kind).u8(frame_pointer | u8::from(code.bytes.is_none())).raw(&[0; 6])
            });
            if code.bytes.is_none() {
                file.item(tag::NAME, 0, |file| file.raw(&code.name));
                if !code.lines.is_empty() {
                    file.line_table(0, code.address, &code.lines);
                }
                if let Some(unwind) = &code.unwind {
                    file.item(tag::EH_FRAME, 0, |file| file.raw(&unwind.eh_frame));
                }
            }
            if let Some(tier) = &code.tier {
                file.item(tag::TIER, 0, |file| file.raw(tier));
            }
            if !code.ir_lines.is_empty() {
                file.line_table(1, code.address, &code.ir_lines);
            }
            if !code.inlined.is_empty() {
                file.inlined(&code.inlined);
            }
            more(file);
            // The group's size is known once the items are written.
            let padding = (file.out.len() - start + rest.out.len()).next_multiple_of(8);
            file.set_u32(item + 8 + 24, padding as u32)
        });
        // Padding behind the items, in the first record.
        let size = (self.out.len() - start + rest.out.len()).next_multiple_of(8);
        let first = size - rest.out.len();
        self.out.resize(start + first, 0x99);
        self.set_u32(start + 4, first as u32);
        self.raw(&rest.out)
    }

    pub fn line_table(&mut self, detail: u16, base: u64, lines: &[Line]) -> &mut Self {
        let mut files: Vec<&[u8]> = lines.iter().map(|line| line.file.as_slice()).collect();
        files.sort_unstable();
        files.dedup();
        self.item(tag::LINES, detail, |file| {
            file.u32(lines.len() as u32).u32(files.len() as u32);
            for line in lines {
                let number = files.iter().position(|name| *name == line.file).expect("it is there");
                file.u32((line.address - base) as u32).u32(line.line).u32(line.column);
                file.u32(number as u32);
            }
            for name in &files {
                file.text(name);
            }
            file
        })
    }

    /// Writes an INLINED item. A file that equals the previous call's is left empty.
    pub fn inlined(&mut self, calls: &[Call]) -> &mut Self {
        self.item(tag::INLINED, 0, |file| {
            let ranges: usize = calls.iter().map(|call| call.ranges.len()).sum();
            file.u32(calls.len() as u32).u32(ranges as u32);
            for call in calls {
                file.u32(call.parent.unwrap_or(u32::MAX)).u32(call.line).u32(call.column);
                file.u32(call.ranges.len() as u32);
            }
            for (start, end) in calls.iter().flat_map(|call| &call.ranges) {
                file.u32(*start).u32(*end);
            }
            let mut before: &[u8] = b"";
            for call in calls {
                file.text(&call.name).text(if call.file == before { b"" } else { &call.file });
                before = &call.file;
            }
            file
        })
    }
}
