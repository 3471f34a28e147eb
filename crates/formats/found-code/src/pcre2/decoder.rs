//! The pattern of a compiled expression, from its opcodes.
//!
//! PCRE2 does not keep the pattern. What its opcodes say matches the same.

use super::opcodes::{Op, Repeat, opcodes};
use super::pattern::{Times, character};
use super::property::LEFT_OUT;
use super::reader::Reader;

/// The most bytes of text that are made.
pub const MOST: usize = 512;
/// The most groups inside each other. PCRE2 allows 250.
const DEPTH: usize = 1024;

const CASELESS: u32 = 0x8;
pub const DOT_ALL: u32 = 0x20;
const MULTILINE: u32 = 0x400;
pub const UCP: u32 = 0x2_0000;
const UTF: u32 = 0x8_0000;

/// The opcodes of an expression.
#[derive(Clone, Copy, Debug)]
pub struct Code<'c> {
    pub units: &'c [u32],
    /// The bytes of a unit.
    pub width: usize,
    pub options: u32,
    /// The highest number of a group.
    pub groups: u32,
    pub names: &'c [Name],
}

/// A name of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub group: u32,
    pub name: String,
}

/// What was read.
pub struct Decoder<'c> {
    pub code: Code<'c>,
    pub layout: u8,
    pub opcodes: Vec<Op>,
    pub reader: Reader<'c>,
    pub text: String,
    /// The groups that are open.
    pub groups: Vec<Group>,
    /// What is said of the next group.
    pub optional: Option<&'static str>,
    pub is_caseless: bool,
    /// The last item, if it is to be there exactly so often; and where it is in the text.
    pub exact: Option<(String, Times, usize)>,
}

/// A group that is open.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Where it begins, and where the next of its alternatives does, or its end is.
    start: usize,
    next: usize,
    /// What is said of it in front of it.
    optional: Option<&'static str>,
    /// Whether case did not matter there.
    is_caseless: bool,
}

impl Code<'_> {
    /// The pattern, according to the opcodes of one layout. `None` if these are others.
    pub fn text(&self, layout: u8) -> Option<String> {
        let mut decoder = Decoder {
            code: *self,
            layout,
            opcodes: opcodes(layout),
            reader: Reader {
                units: self.units,
                width: self.width,
                is_utf: self.options & UTF != 0,
                at: 0,
            },
            text: String::new(),
            groups: Vec::new(),
            optional: None,
            is_caseless: self.options & CASELESS != 0,
            exact: None,
        };
        let flags = [(CASELESS, 'i'), (MULTILINE, 'm'), (DOT_ALL, 's')];
        let flags = flags.into_iter().filter(|(option, _)| self.options & option != 0);
        let flags: String = flags.map(|(_, flag)| flag).collect();
        if !flags.is_empty() {
            decoder.push(&format!("(?{flags})"));
        }
        while decoder.step()? {}
        (decoder.reader.at == self.units.len() && decoder.groups.is_empty()).then_some(decoder.text)
    }
}

impl Decoder<'_> {
    /// Reads the next opcode. `false` at the end.
    fn step(&mut self) -> Option<bool> {
        let start = self.reader.at;
        match self.op()? {
            Op::End => return Some(false),
            Op::Text(text) => self.push(text),
            op @ Op::Dot { .. } => {
                let text = self.dot(op);
                self.push(text);
            }
            Op::Line { text, is_multiline } => self.line(text, is_multiline),
            Op::Property { is_not } => {
                let text = self.property(is_not)?;
                self.push(&text);
            }
            Op::Character { is_not, is_caseless } => {
                let text = self.character(is_not, is_caseless)?;
                self.push(&text);
            }
            Op::Characters { is_not, is_caseless, repeat } => {
                let count = self.count(repeat)?;
                let text = self.character(is_not, is_caseless)?;
                self.item(text, Times::of(repeat, count, 0));
            }
            Op::Type(repeat) => {
                let count = self.count(repeat)?;
                let text = match self.op()? {
                    Op::Text(text) => text.to_owned(),
                    op @ Op::Dot { .. } => self.dot(op).to_owned(),
                    Op::Property { is_not } => self.property(is_not)?,
                    _ => return None,
                };
                self.item(text, Times::of(repeat, count, 0));
            }
            Op::Last(repeat) => {
                let is_range = matches!(repeat, Repeat::Range(_));
                let (first, second) =
                    if is_range { (self.reader.number()?, self.reader.number()?) } else { (0, 0) };
                self.push(&Times::of(repeat, first, second).text());
            }
            Op::Class { is_not } => {
                let map = self.reader.map()?;
                let (not, map) = if is_not { ("^", map.inverted()) } else { ("", map) };
                self.push(&format!("[{not}{}]", self.map_text(map)));
            }
            Op::WideClass => self.wide_class(start)?,
            Op::NestedClass => {
                let size = self.reader.link()?;
                self.reader.go_to(start, size)?;
                self.push(&format!("[{LEFT_OUT}]"));
            }
            op => self.step_in_groups(op, start)?,
        }
        Some(true)
    }

    /// Reads an opcode of those that structure the pattern.
    fn step_in_groups(&mut self, op: Op, start: usize) -> Option<()> {
        match op {
            Op::Alternative => {
                let next = self.next(start)?;
                self.groups.last_mut().filter(|group| group.next == start)?.next = next;
                self.push("|");
            }
            Op::Close { once, any } => {
                self.close(start, once, any)?;
            }
            Op::Skip { links, numbers } => self.reader.skip(links, numbers)?,
            Op::Open(text) => {
                let next = self.next(start)?;
                // The whole pattern is a group.
                let text = match (self.groups.is_empty(), text) {
                    (true, "(?:") => "",
                    (true, _) => return None,
                    (false, text) => text,
                };
                self.open(start, next, text)?;
            }
            Op::Capture => {
                let next = self.next(start)?;
                let number = self.reader.number()?;
                if self.groups.is_empty() || number > self.code.groups {
                    return None;
                }
                let name = self.code.names.iter().find(|name| name.group == number);
                let text = name.map_or("(".to_owned(), |name| format!("(?<{}>", name.name));
                self.open(start, next, &text)?;
            }
            Op::Condition(kind) => match self.reader.number()? {
                // In any recursion.
                0xffff => self.push(&format!("({kind})")),
                number => self.push(&format!("({kind}{number})")),
            },
            Op::NamedCondition => {
                let name = self.named()?;
                self.push(&format!("(<{name}>)"));
            }
            Op::Fixed(text) | Op::Verb(text) => self.push(text),
            Op::Optional(text) => self.optional = Some(text),
            op => self.step_in_others(op, start)?,
        }
        Some(())
    }

    /// Reads an opcode of those that refer to groups, or to what is outside of the pattern.
    fn step_in_others(&mut self, op: Op, start: usize) -> Option<()> {
        match op {
            Op::Reference { is_caseless } => {
                let group = self.reader.number()?;
                self.flags_of_reference(is_caseless)?;
                self.push(&format!("\\{group}"));
            }
            Op::NamedReference { is_caseless } => {
                let name = self.named()?;
                self.flags_of_reference(is_caseless)?;
                self.push(&format!("\\k<{name}>"));
            }
            Op::Recursion => self.recursion()?,
            Op::Callout => {
                self.reader.skip(2, 0)?;
                match self.reader.unit()? {
                    // One that PCRE2 inserts.
                    255 => {}
                    number => self.push(&format!("(?C{number})")),
                }
            }
            Op::CalloutText => {
                self.reader.skip(2, 0)?;
                let size = self.reader.link()?;
                self.reader.go_to(start, size)?;
                self.push(&format!("(?C{LEFT_OUT})"));
            }
            Op::VerbText(verb) => {
                let size = usize::try_from(self.reader.unit()?).ok()?;
                let end = self.reader.at.checked_add(size)?;
                let text = self.code.units.get(self.reader.at..end)?.iter();
                let text: String =
                    text.take(MOST).map(|unit| character(*unit, self.is_utf())).collect();
                self.reader.at = end.checked_add(1)?;
                self.push(&format!("(*{verb}:{text})"));
            }
            _ => return None,
        }
        Some(())
    }

    /// Adds a line's beginning or end.
    fn line(&mut self, text: &str, is_multiline: bool) {
        let text = match (self.code.options & MULTILINE != 0, is_multiline) {
            (false, true) => format!("(?m:{text})"),
            (true, false) => format!("(?-m:{text})"),
            _ => text.to_owned(),
        };
        self.push(&text);
    }

    pub fn is_utf(&self) -> bool {
        self.reader.is_utf
    }

    pub fn op(&mut self) -> Option<Op> {
        let number = usize::try_from(self.reader.unit()?).ok()?;
        self.opcodes.get(number).copied()
    }

    pub fn count(&mut self, repeat: Repeat) -> Option<u32> {
        match repeat {
            Repeat::Simple { .. } => Some(0),
            _ => self.reader.number(),
        }
    }

    /// Adds a part of the pattern.
    pub fn push(&mut self, text: &str) {
        self.exact = None;
        if self.text.len() < MOST {
            self.text.push_str(text);
        }
    }

    /// What follows a reference since 10.45, if case does not matter.
    fn flags_of_reference(&mut self, is_caseless: bool) -> Option<()> {
        if is_caseless && self.layout >= 45 {
            self.reader.unit()?;
        }
        Some(())
    }

    /// The name at an index, of one or more groups.
    fn named(&mut self) -> Option<String> {
        let index = usize::try_from(self.reader.number()?).ok()?;
        self.reader.number()?;
        self.code.names.get(index).map(|name| name.name.clone())
    }

    /// A group that is called.
    fn recursion(&mut self) -> Option<()> {
        let to = usize::try_from(self.reader.link()?).ok()?;
        let here = std::mem::replace(&mut self.reader.at, to);
        let op = self.op()?;
        self.reader.link()?;
        let text = match op {
            Op::Capture => format!("(?{})", self.reader.number()?),
            Op::Open(_) if to == 0 => "(?R)".to_owned(),
            _ => return None,
        };
        self.reader.at = here;
        self.push(&text);
        Some(())
    }

    /// Reads a distance from `start`. Returns to where it leads.
    fn next(&mut self, start: usize) -> Option<usize> {
        start.checked_add(usize::try_from(self.reader.link()?).ok()?)
    }

    fn open(&mut self, start: usize, next: usize, text: &str) -> Option<()> {
        if self.groups.len() >= DEPTH {
            return None;
        }
        let (optional, is_caseless) = (self.optional.take(), self.is_caseless);
        self.groups.push(Group { start, next, optional, is_caseless });
        self.push(text);
        Some(())
    }

    fn close(&mut self, start: usize, once: &str, any: &str) -> Option<()> {
        let size = usize::try_from(self.reader.link()?).ok()?;
        let group = self.groups.pop()?;
        if group.next != start || group.start.checked_add(size)? != start {
            return None;
        }
        if !self.groups.is_empty() {
            self.push(")");
            let times = match (group.optional, once.is_empty()) {
                (Some(_), false) => any,
                (Some(optional), true) => optional,
                (None, _) => once,
            };
            self.push(times);
        }
        self.is_caseless = group.is_caseless;
        Some(())
    }
}
