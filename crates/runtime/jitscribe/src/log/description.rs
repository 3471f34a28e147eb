//! What a group says of an address in its code: names, lines and inlined calls, read in place.

use std::sync::atomic::Ordering::Relaxed;

use jitdump::RecordId;
use jitdump::extension::tag;

use super::layout::{FIRST_ITEM, TAIL, debug, load, unpair};
use super::lookup::{FoundCode, LogView};
use super::mapping::Mapping;

/// A range of bytes of the log. What is not in it reads as nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'m> {
    mapping: &'m Mapping,
    at: usize,
    end: usize,
}

/// A function at an address, and the place in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionAt<'m> {
    pub(crate) name: Field<'m>,
    /// Empty if it is not known.
    pub(crate) file: Field<'m>,
    pub(crate) line: u32,
    pub(crate) column: u32,
    /// The number of functions at the address: the code itself, and the calls that are inlined there.
    pub(crate) count: u32,
}

/// A place in a source file.
#[derive(Clone, Copy, Debug)]
struct Place<'m> {
    file: Field<'m>,
    line: u32,
    column: u32,
}

/// The parts of a group that describe its code.
#[derive(Clone, Copy, Debug)]
struct Group<'m> {
    name: Field<'m>,
    /// The line table: an item, or else a record.
    lines: Field<'m>,
    debug: Field<'m>,
    inlined: Field<'m>,
}

/// An inlined call, without its ranges and names.
#[derive(Clone, Copy, Debug)]
struct Call {
    parent: Option<u32>,
    line: u32,
    column: u32,
}

impl<'m> LogView<'m> {
    /// The function number `number` at `pc` in `code`: 0 is the innermost one. `None` if there are fewer.
    pub(crate) fn function(
        &self,
        code: &FoundCode,
        pc: u64,
        number: u32,
    ) -> Option<FunctionAt<'m>> {
        let group = Group::of(self.mapping, code);
        let offset = u32::try_from(pc.wrapping_sub(code.address)).ok()?;
        let calls = InlinedItem::new(group.inlined);
        let innermost = calls.innermost_at(offset);
        let count = calls.depth(innermost).saturating_add(1);
        let depth = count.checked_sub(number)?.checked_sub(1)?;
        // The call that is the function, and the one that it made.
        let (mut own, mut callee) = (innermost, None);
        for _ in 0..number {
            callee = own;
            own = own.and_then(|call| calls.call(call)).and_then(|call| call.parent);
        }
        let name = match own.filter(|_| depth > 0) {
            Some(call) => calls.names(call).0,
            None => group.name,
        };
        let place = match callee {
            Some(call) => {
                let Call { line, column, .. } = calls.call(call)?;
                Place { file: calls.names(call).1, line, column }
            }
            None => group.line_at(offset, pc),
        };
        Some(FunctionAt { name, file: place.file, line: place.line, column: place.column, count })
    }
}

impl<'m> Group<'m> {
    fn of(mapping: &'m Mapping, code: &FoundCode) -> Self {
        let all = Field { mapping, at: code.at, end: code.at + code.group_size };
        let none = Field { end: code.at, ..all };
        let mut group = Self { name: none, lines: none, debug: none, inlined: none };
        let items = unpair(mapping.word(code.at + TAIL).load(Relaxed)).1 as usize;
        let first = all.u32(4).unwrap_or(0) as usize;
        let mut items = all.part(FIRST_ITEM, items.min(first.saturating_sub(FIRST_ITEM)));
        while let (Some(head), Some(size)) = (items.u32(0), items.u32(4)) {
            let [a, b, c, d] = head.to_ne_bytes();
            let (tag, detail) = (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d]));
            let payload = items.part(8, size as usize);
            match tag {
                tag::NAME => group.name = payload,
                tag::LINES if detail == tag::LINES_SOURCE => group.lines = payload,
                tag::INLINED => group.inlined = payload,
                _ => {}
            }
            items = items.behind(8 + (size as usize).next_multiple_of(8));
        }
        let mut records = all.behind(first);
        while let (Some(id), Some(size)) = (records.u32(0), records.u32(4)) {
            if size < jitdump::RECORD_HEADER_SIZE {
                break;
            }
            let record = records.part(0, size as usize);
            match RecordId(id) {
                RecordId::LOAD => group.name = record.behind(load::NAME).text().0,
                RecordId::DEBUG_INFO => group.debug = record,
                _ => {}
            }
            records = records.behind(size as usize);
        }
        group
    }

    /// The place of the last row that does not begin behind the offset. Of several at one offset, the last one applies.
    fn line_at(&self, offset: u32, pc: u64) -> Place<'m> {
        let unknown = Place { file: self.name.part(0, 0), line: 0, column: 0 };
        self.line_in_item(offset).or_else(|| self.line_in_record(pc)).unwrap_or(unknown)
    }

    fn line_in_item(&self, offset: u32) -> Option<Place<'m>> {
        let (count, rows) = (self.lines.u32(0)?, self.lines.behind(8));
        let mut best: Option<(u32, usize)> = None;
        for number in 0..(count as usize).min(rows.len() / 16) {
            let begins = rows.u32(16 * number)?;
            if begins <= offset && best.is_none_or(|(best, _)| best <= begins) {
                best = Some((begins, number));
            }
        }
        let (_, number) = best?;
        let row = rows.part(16 * number, 16);
        let (line, column, file) = (row.u32(4)?, row.u32(8)?, row.u32(12)?);
        let mut names = rows.behind(16 * count as usize);
        for _ in 0..file {
            names = names.text().1;
        }
        Some(Place { file: names.text().0, line, column })
    }

    fn line_in_record(&self, pc: u64) -> Option<Place<'m>> {
        let count = self.debug.u64(debug::COUNT)?;
        let mut entries = self.debug.behind(debug::ENTRIES);
        let mut best: Option<(u64, Place<'m>)> = None;
        for _ in 0..count {
            let Some(begins) = entries.u64(0) else { break };
            let (line, column) = (entries.u32(8)?, entries.u32(12)?);
            let (file, behind) = entries.behind(debug::ENTRY_FILE).text();
            if begins <= pc && best.is_none_or(|(best, _)| best <= begins) {
                best = Some((begins, Place { file, line, column }));
            }
            entries = behind;
        }
        Some(best?.1)
    }
}

/// The payload of an INLINED item.
#[derive(Clone, Copy, Debug)]
struct InlinedItem<'m> {
    calls: Field<'m>,
    count: u32,
    ranges: Field<'m>,
    names: Field<'m>,
}

impl<'m> InlinedItem<'m> {
    fn new(item: Field<'m>) -> Self {
        let counts = item.u32(0).zip(item.u32(4)).unwrap_or_default();
        let (calls, ranges) = (16 * counts.0 as usize, 8 * counts.1 as usize);
        Self {
            calls: item.part(8, calls),
            count: counts.0,
            ranges: item.part(8 + calls, ranges),
            names: item.behind(8 + calls + ranges),
        }
    }

    /// A call comes before those that are inlined into it, so the last one at the offset is the innermost.
    fn innermost_at(&self, offset: u32) -> Option<u32> {
        let (mut innermost, mut ranges) = (None, self.ranges);
        for number in 0..self.count {
            let Some(count) = self.calls.u32(16 * number as usize + 12) else { break };
            for range in 0..(count as usize).min(ranges.len() / 8) {
                let (start, end) = ranges.u32(8 * range).zip(ranges.u32(8 * range + 4))?;
                if start <= offset && offset < end {
                    innermost = Some(number);
                }
            }
            ranges = ranges.behind(8 * count as usize);
        }
        innermost
    }

    fn call(&self, number: u32) -> Option<Call> {
        let call = self.calls.part(16 * number as usize, 16);
        // A parent that comes later would make a circle.
        let parent = call.u32(0)?;
        Some(Call {
            parent: (parent < number).then_some(parent),
            line: call.u32(4)?,
            column: call.u32(8)?,
        })
    }

    /// How many calls there are from this one outwards, with itself.
    fn depth(&self, mut call: Option<u32>) -> u32 {
        let mut depth = 0_u32;
        while let Some(number) = call {
            depth += 1;
            call = self.call(number).and_then(|call| call.parent);
        }
        depth
    }

    /// The name of a call's function, and the file of the call.
    fn names(&self, number: u32) -> (Field<'m>, Field<'m>) {
        let mut names = self.names;
        let none = names.part(0, 0);
        let (mut name, mut file) = (none, none);
        for _ in 0..=number {
            (name, names) = names.text();
            let (this, behind) = names.text();
            // An empty one is that of the call before.
            if this.len() > 0 {
                file = this;
            }
            names = behind;
        }
        (name, file)
    }
}

impl<'m> Field<'m> {
    pub(crate) fn len(&self) -> usize {
        self.end - self.at
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = u8> + 'm {
        let Self { mapping, at, end } = *self;
        (at..end).map(move |at| mapping.byte(at).load(Relaxed))
    }

    /// As much as there is of `length` bytes from `at` on.
    fn part(self, at: usize, length: usize) -> Self {
        let start = self.at.saturating_add(at).min(self.end);
        Self { at: start, end: start.saturating_add(length).min(self.end), ..self }
    }

    fn behind(self, at: usize) -> Self {
        self.part(at, usize::MAX)
    }

    /// The bytes before the first NUL, and what is behind it.
    fn text(self) -> (Self, Self) {
        let length = self.bytes().take_while(|byte| *byte != 0).count();
        (self.part(0, length), self.behind(length.saturating_add(1)))
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let field = self.part(at, 4);
        (field.len() == 4).then(|| super::records::half_anywhere(self.mapping, field.at))
    }

    fn u64(&self, at: usize) -> Option<u64> {
        let [a, b, c, d] = self.u32(at)?.to_ne_bytes();
        let [e, f, g, h] = self.u32(at.saturating_add(4))?.to_ne_bytes();
        Some(u64::from_ne_bytes([a, b, c, d, e, f, g, h]))
    }
}
