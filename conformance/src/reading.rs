//! What a correct reader finds in a file, as JSON. `README.md` describes the fields.

use serde_json::{Value, json};

/// Bytes as JSON: a text if they are UTF-8, else `{"hex": …}`.
pub fn bytes(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "hex": hex(bytes) }),
    }
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An address as JSON.
pub fn address(address: u64) -> Value {
    json!(format!("{address:#x}"))
}

#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// The address from which on it applies.
    pub address: u64,
    pub file: Vec<u8>,
    pub line: u32,
    pub column: u32,
}

impl Line {
    pub fn new(address: u64, file: &[u8], line: u32, column: u32) -> Self {
        Self { address, file: file.to_vec(), line, column }
    }

    fn json(&self) -> Value {
        json!({
            "address": address(self.address),
            "file": bytes(&self.file),
            "line": self.line,
            "column": self.column,
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The number of the call that it is in.
    pub parent: Option<u32>,
    pub name: Vec<u8>,
    pub file: Vec<u8>,
    pub line: u32,
    pub column: u32,
    /// Where its code is, as offsets in the code.
    pub ranges: Vec<(u32, u32)>,
}

impl Call {
    pub fn new(
        parent: Option<u32>,
        name: &str,
        file: &str,
        line: u32,
        column: u32,
        ranges: &[(u32, u32)],
    ) -> Self {
        let (name, file) = (name.as_bytes().to_vec(), file.as_bytes().to_vec());
        Self { parent, name, file, line, column, ranges: ranges.to_vec() }
    }

    fn json(&self, base: u64) -> Value {
        let range = |&(start, end): &(u32, u32)| {
            json!([address(base + u64::from(start)), address(base + u64::from(end))])
        };
        json!({
            "parent": self.parent,
            "name": bytes(&self.name),
            "file": bytes(&self.file),
            "line": self.line,
            "column": self.column,
            "ranges": self.ranges.iter().map(range).collect::<Vec<_>>(),
        })
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Unwind {
    pub eh_frame: Vec<u8>,
    pub eh_frame_hdr: Vec<u8>,
    /// How many bytes they take behind the code.
    pub mapped_size: u64,
}

/// A code: what its records are made of, and what a reader finds in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub time: u64,
    pub pid: u32,
    pub tid: u32,
    pub address: u64,
    pub index: u64,
    pub name: Vec<u8>,
    pub size: u64,
    /// Its bytes, if the file has them.
    pub bytes: Option<Vec<u8>>,
    pub lines: Vec<Line>,
    /// Its lines in the bytecode or intermediate representation.
    pub ir_lines: Vec<Line>,
    pub inlined: Vec<Call>,
    pub unwind: Option<Unwind>,
    /// What it is to its runtime.
    pub kind: &'static str,
    /// The compiler's tier.
    pub tier: Option<Vec<u8>>,
    /// When it was unloaded.
    pub died: Option<u64>,
    /// How it keeps a frame pointer: `prologue`, `throughout`.
    pub frame_pointer: Option<&'static str>,
}

/// The time of the first header.
pub const TIME: u64 = 1_000_000_000_000;
/// The process of all files. No process has this id: it is above the kernel's limit.
pub const PID: u32 = 4_194_381;

impl Code {
    /// A code that differs from those with other numbers, and does not overlap them.
    pub fn number(number: u32) -> Self {
        let wide = u64::from(number);
        // push rbp; mov rbp, rsp; nop …; pop rbp; ret
        let mut code = vec![0x55, 0x48, 0x89, 0xe5];
        code.resize(94 + number as usize % 7 * 16, 0x90);
        code.extend([0x5d, 0xc3]);
        Self {
            time: TIME + 1_000_000 + wide * 1000,
            pid: PID,
            tid: PID + 1,
            address: 0x7f00_0000_1000 + wide * 0x1000,
            index: 10 + wide,
            name: format!("function {number}").into_bytes(),
            size: code.len() as u64,
            bytes: Some(code),
            kind: "function",
            ..Self::default()
        }
    }

    /// The same code with another name.
    pub fn named(self, name: &[u8]) -> Self {
        Self { name: name.to_vec(), ..self }
    }

    /// The same code with these lines: offset, file, line, column.
    pub fn lined(self, lines: &[(u64, &str, u32, u32)]) -> Self {
        let address = self.address;
        let line = |&(offset, file, line, column): &(u64, &str, u32, u32)| {
            Line::new(address + offset, file.as_bytes(), line, column)
        };
        Self { lines: lines.iter().map(line).collect(), ..self }
    }

    pub fn event(&self) -> Value {
        let lines = |lines: &[Line]| lines.iter().map(Line::json).collect::<Vec<_>>();
        json!({
            "event": "load",
            "time": self.time,
            "pid": self.pid,
            "tid": self.tid,
            "address": address(self.address),
            "size": self.size,
            "index": self.index,
            "name": bytes(&self.name),
            "bytes": self.bytes.as_deref().map(hex),
            "lines": lines(&self.lines),
            "ir_lines": lines(&self.ir_lines),
            "inlined": self.inlined.iter().map(|call| call.json(self.address)).collect::<Vec<_>>(),
            "unwind": self.unwind.as_ref().map(|unwind| json!({
                "eh_frame": hex(&unwind.eh_frame),
                "eh_frame_hdr": hex(&unwind.eh_frame_hdr),
                "mapped_size": unwind.mapped_size,
            })),
            "kind": self.kind,
            "tier": self.tier.as_deref().map(bytes),
            "died": self.died,
            "frame_pointer": self.frame_pointer,
        })
    }
}

/// Bytes that are no record, or a record that cannot be read.
pub(crate) fn damage() -> Value {
    json!({ "event": "damage" })
}

/// The writer ended in an orderly way.
pub(crate) fn close(time: u64) -> Value {
    json!({ "event": "close", "time": time })
}
