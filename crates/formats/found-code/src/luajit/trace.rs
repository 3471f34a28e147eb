//! A trace, its function and its source.

use gdb_jit_list::ReadAt;

use super::layout::{FRAME, HEAD, Layout, PROTOTYPE, STRING, STRING_HEAD, TRACE};
use crate::code::{FoundCode, Frame};
use crate::fields::{u8_at, u16_at, u32_at, u64_at};
use crate::limits;
use crate::mapped::Mapped;

/// The most instructions of a function.
const INSTRUCTIONS: u32 = 1 << 26;

/// What tells a trace from another one at the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    code: u64,
    code_size: u32,
    prototype: u64,
    instruction: u64,
    adjustment: u16,
}

impl Trace {
    /// Reads trace `number`. `None` if there is none.
    pub fn read(
        layout: &Layout,
        memory: &(impl ReadAt + ?Sized),
        mapped: &Mapped,
        address: u64,
        number: u32,
    ) -> Option<Self> {
        let head = object(layout, memory, mapped, address, TRACE)?;
        let fields = &layout.trace;
        if u32::from(u16_at(&head, fields.number)) != number {
            return None;
        }
        let trace = Self {
            code: u64_at(&head, fields.code),
            code_size: u32_at(&head, fields.code_size),
            prototype: layout.reference_at(&head, fields.prototype),
            instruction: layout.reference_at(&head, fields.instruction),
            adjustment: u16_at(&head, fields.adjustment),
        };
        let size = u64::from(trace.code_size);
        (size <= limits::CODE && mapped.is_code(trace.code, size)).then_some(trace)
    }

    /// What the trace is. `None` if a pointer is not valid.
    pub fn describe(
        &self,
        layout: &Layout,
        memory: &(impl ReadAt + ?Sized),
        mapped: &Mapped,
        number: u32,
    ) -> Option<FoundCode> {
        let head = object(layout, memory, mapped, self.prototype, PROTOTYPE)?;
        let function = Function { layout, memory, address: self.prototype, head: &head };
        let line = function.line(self.instruction)?;
        let source = layout.reference_at(&head, layout.prototype.source);
        let source = text(layout, memory, mapped, source)?;
        // What begins neither with `@` nor with `=` is the source itself. LuaJIT's own perf maps say this.
        let (file, source) = match source.split_first() {
            Some((b'@', file)) => (file, file),
            Some((b'=', name)) => (&b""[..], name),
            _ => (&b""[..], &b"(string)"[..]),
        };
        let (trace, line_text) = (format!("TRACE_{number}::"), format!(":{line}"));
        let name = [trace.as_bytes(), source, line_text.as_bytes()];
        let size = FRAME.checked_add(self.adjustment.into())?;
        Some(FoundCode {
            address: self.code,
            size: self.code_size.into(),
            name: name.concat(),
            file: file.to_vec(),
            line,
            frame: Some(Frame { size, saved: layout.saved }),
        })
    }
}

/// The first bytes of an object of this type.
fn object(
    layout: &Layout,
    memory: &(impl ReadAt + ?Sized),
    mapped: &Mapped,
    address: u64,
    kind: u8,
) -> Option<[u8; HEAD]> {
    let size = u64::try_from(HEAD).ok()?;
    if !address.is_multiple_of(layout.reference.into()) || !mapped.is_data(address, size) {
        return None;
    }
    let head = memory.array(address)?;
    (u8_at(&head, layout.kind) == kind).then_some(head)
}

/// The text of a string. It has no NUL in it.
fn text(
    layout: &Layout,
    memory: &(impl ReadAt + ?Sized),
    mapped: &Mapped,
    address: u64,
) -> Option<Vec<u8>> {
    let is_there = address.is_multiple_of(layout.reference.into())
        && mapped.is_data(address, u64::try_from(STRING_HEAD).ok()?);
    let head: [u8; STRING_HEAD] = memory.array(address).filter(|_| is_there)?;
    if u8_at(&head, layout.kind) != STRING {
        return None;
    }
    layout.strings.iter().find_map(|string| {
        let length = u64::from(u32_at(&head, string.length));
        let at = address.checked_add(u64::try_from(string.text).ok()?)?;
        // A source that is not in a file is its own name, and may be long.
        let read = length.min(limits::NAME);
        if length == 0 || !mapped.is_data(at, length.checked_add(1)?) {
            return None;
        }
        let end: [u8; 1] = memory.array(at.checked_add(length)?)?;
        let bytes = memory.bytes(at, read)?;
        (end == [0] && !bytes.contains(&0)).then_some(bytes)
    })
}

/// A function.
struct Function<'f, M: ?Sized> {
    layout: &'f Layout,
    memory: &'f M,
    address: u64,
    head: &'f [u8],
}

impl<M: ReadAt + ?Sized> Function<'_, M> {
    /// The line of one of its instructions; 0 if it has no table of lines. `None` if it has no such instruction.
    fn line(&self, instruction: u64) -> Option<u32> {
        let Self { layout, memory, address, head } = self;
        let fields = &layout.prototype;
        let field = |at| u64::from(u32_at(head, at));
        let count = u32_at(head, fields.instructions);
        let size = field(fields.size);
        let code = address.checked_add(u64::try_from(fields.code).ok()?)?;
        let distance = instruction.checked_sub(code)?;
        let number = distance.checked_div(4)?;
        let all = u64::from(count).checked_mul(4)?.checked_add(u64::try_from(fields.code).ok()?)?;
        let fits = count <= INSTRUCTIONS && all <= size && distance.is_multiple_of(4);
        if !fits || number >= count.into() {
            return None;
        }
        let table = layout.reference_at(head, fields.line_table);
        let first = u32_at(head, fields.first_line);
        if table == 0 {
            return Some(0);
        }
        // The first instruction is not in the table.
        let Some(number) = number.checked_sub(1) else { return Some(first) };
        let width = match field(fields.lines) {
            ..256 => 1,
            256..65536 => 2,
            _ => 4,
        };
        let at = table.checked_add(number.checked_mul(width)?)?;
        let inside = at.checked_sub(*address)?;
        if inside.checked_add(width)? > size {
            return None;
        }
        let mut line = [0; 4];
        let width = usize::try_from(width).ok()?;
        let part = line.get_mut(..width)?;
        if memory.read_at(at, part) != width {
            return None;
        }
        Some(first.wrapping_add(u32::from_le_bytes(line)))
    }
}
