//! The memory of a process with a Lua state.

use std::collections::BTreeMap;

use found_code::{Change, Compilers, Finder, FoundCode, Mapped, Poll};

/// Where the data and the code are.
pub const DATA: u64 = 0x10000;
pub const CODE: u64 = 0x8000_0000;
pub const CODE_SIZE: u64 = 0x10000;
/// Where the fields of the table are, the table, a function and its source.
pub const FIELDS: usize = 0x20010;
pub const TABLE: usize = 0x100;
pub const FUNCTION: usize = 0x400;
pub const SOURCE: usize = 0x600;

/// A layout: the size of references, and whether strings have an id.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub reference: usize,
    pub has_string_id: bool,
}

pub const FORMS: [Form; 4] = [
    Form { reference: 8, has_string_id: true },
    Form { reference: 8, has_string_id: false },
    Form { reference: 4, has_string_id: true },
    Form { reference: 4, has_string_id: false },
];

/// Writable memory, at [`DATA`].
#[derive(Clone, Debug)]
pub struct Memory {
    pub bytes: Vec<u8>,
    form: Form,
}

impl Memory {
    /// A Lua state without traces, and a function from line 10 on whose instruction N is in line 10 + N.
    pub fn new(form: Form) -> Self {
        let mut this = Self { bytes: vec![0; 0x30000], form };
        this.u64(FIELDS, DATA + TABLE as u64);
        this.u32(FIELDS + 8, 1);
        this.u32(FIELDS + 12, 8);
        let wide = form.reference == 8;
        this.object(FUNCTION, 7);
        this.u32(FUNCTION + if wide { 12 } else { 8 }, 20);
        this.u32(FUNCTION + if wide { 56 } else { 32 }, 0x180);
        this.reference(FUNCTION + if wide { 64 } else { 40 }, DATA + SOURCE as u64);
        this.u32(FUNCTION + if wide { 72 } else { 44 }, 10);
        this.u32(FUNCTION + if wide { 76 } else { 48 }, 30);
        this.reference(FUNCTION + if wide { 80 } else { 52 }, DATA + FUNCTION as u64 + 0x100);
        for number in 0..20 {
            this.bytes[FUNCTION + 0x100 + number] = number as u8 + 1;
        }
        this.source(b"@a.lua");
        this
    }

    pub fn source(&mut self, name: &[u8]) {
        self.object(SOURCE, 4);
        let length = self.form.reference + if self.form.has_string_id { 12 } else { 8 };
        self.u32(SOURCE + length, name.len() as u32);
        let text = SOURCE + (length + 4).next_multiple_of(self.form.reference);
        self.bytes[text..text + name.len()].copy_from_slice(name);
        self.bytes[text + name.len()] = 0;
    }

    /// A trace that begins with this instruction of the function.
    pub fn trace(&mut self, number: usize, instruction: u64, code: u64, size: u32) {
        let at = 0x1000 + number * 0x100;
        let wide = self.form.reference == 8;
        self.reference(TABLE + number * self.form.reference, DATA + at as u64);
        self.object(at, 9);
        let first = DATA + FUNCTION as u64 + if wide { 104 } else { 64 };
        self.reference(at + if wide { 64 } else { 48 }, DATA + FUNCTION as u64);
        self.reference(at + if wide { 72 } else { 52 }, first + instruction * 4);
        self.u32(at + if wide { 84 } else { 60 }, size);
        self.u64(at + if wide { 88 } else { 64 }, code);
        self.bytes[at + if wide { 104 } else { 80 }] = number as u8;
    }

    pub fn without_trace(&mut self, number: usize) {
        self.reference(TABLE + number * self.form.reference, 0);
    }

    fn object(&mut self, at: usize, kind: u8) {
        self.bytes[at + self.form.reference + 1] = kind;
    }

    fn reference(&mut self, at: usize, to: u64) {
        let bytes = to.to_le_bytes();
        self.bytes[at..at + self.form.reference].copy_from_slice(&bytes[..self.form.reference]);
    }

    pub fn u32(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    pub fn u64(&mut self, at: usize, value: u64) {
        self.bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
}

impl found_code::ReadAt for Memory {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> usize {
        let from = at.checked_sub(DATA).unwrap_or(u64::MAX);
        // As of a process: what is not mapped is an error, whatever is before it.
        let is_there = from.saturating_add(buffer.len() as u64) <= self.bytes.len() as u64;
        if is_there { self.bytes.as_slice().read_at(from, buffer) } else { 0 }
    }
}

/// What is mapped, with this many bytes of data.
pub fn mapped(size: u64) -> Mapped {
    let (data, code) = (DATA..DATA + size, CODE..CODE + CODE_SIZE);
    Mapped { data: std::iter::once(data).collect(), code: std::iter::once(code).collect() }
}

/// What a finder has found and not lost.
#[derive(Debug)]
pub struct Seen {
    pub finder: Finder,
    pub codes: BTreeMap<u64, (FoundCode, u64)>,
    pub polls: u64,
    /// The compilers that are known.
    pub compilers: Compilers,
}

impl Default for Seen {
    fn default() -> Self {
        let compilers = Compilers { luajit: true, ..Compilers::default() };
        Self { finder: Finder::default(), codes: BTreeMap::new(), polls: 0, compilers }
    }
}

impl Seen {
    /// Polls, and returns the names of the codes that are there.
    pub fn poll(&mut self, memory: &Memory) -> Vec<String> {
        let mapped = mapped(memory.bytes.len() as u64);
        let poll = Poll {
            memory,
            mapped: &mapped,
            compilers: self.compilers,
            bytes: u64::MAX,
            now: (self.polls + 1) * 10,
            last: self.polls * 10,
        };
        let codes = &mut self.codes;
        self.finder.poll(
            &poll,
            |_| None,
            |change| match change {
                Change::Found { id, code, since } => {
                    assert!(code.size > 0 && code.address >= CODE, "{code:?}");
                    assert!(code.address + code.size <= CODE + CODE_SIZE, "{code:?}");
                    assert!(codes.insert(id, (code, since)).is_none());
                }
                Change::Gone { id } => assert!(codes.remove(&id).is_some()),
            },
        );
        self.polls += 1;
        let name = |code: &FoundCode| String::from_utf8_lossy(&code.name).into_owned();
        self.codes.values().map(|(code, _)| name(code)).collect()
    }
}
