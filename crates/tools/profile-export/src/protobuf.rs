//! Messages in the encoding of protocol buffers.
//!
//! Two formats use it, with a dozen small messages: too few for generated code.

use std::io::{self, Write};

/// A message that is being encoded. Fields with the value 0 are left out, as proto3 has it.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;

fn raw_varint(to: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        to.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

impl Message {
    /// An empty message.
    pub fn new() -> Self {
        Self::default()
    }

    fn key(&mut self, field: u32, kind: u64) {
        raw_varint(&mut self.0, u64::from(field) << 3 | kind);
    }

    /// A number, or an index.
    pub fn number(&mut self, field: u32, value: u64) -> &mut Self {
        if value != 0 {
            self.key(field, VARINT);
            raw_varint(&mut self.0, value);
        }
        self
    }

    /// A number that is written even if it is 0: one of several alternatives.
    pub fn present_number(&mut self, field: u32, value: u64) -> &mut Self {
        self.key(field, VARINT);
        raw_varint(&mut self.0, value);
        self
    }

    /// A `fixed64`.
    pub fn fixed64(&mut self, field: u32, value: u64) -> &mut Self {
        if value != 0 {
            self.key(field, FIXED64);
            self.0.extend(value.to_le_bytes());
        }
        self
    }

    /// Bytes, a string, or an encoded message; written even if it is empty.
    pub fn bytes(&mut self, field: u32, value: &[u8]) -> &mut Self {
        self.key(field, LENGTH_DELIMITED);
        raw_varint(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// A string, unless it is empty.
    pub fn text(&mut self, field: u32, value: &str) -> &mut Self {
        if value.is_empty() { self } else { self.bytes(field, value.as_bytes()) }
    }

    /// A message in a field.
    pub fn message(&mut self, field: u32, message: &Self) -> &mut Self {
        self.bytes(field, &message.0)
    }

    /// Repeated numbers, packed.
    pub fn numbers(&mut self, field: u32, values: impl IntoIterator<Item = u64>) -> &mut Self {
        let mut packed = Vec::new();
        values.into_iter().for_each(|value| raw_varint(&mut packed, value));
        if packed.is_empty() { self } else { self.bytes(field, &packed) }
    }

    /// Repeated `fixed64`, packed.
    pub fn fixed64s(&mut self, field: u32, values: impl IntoIterator<Item = u64>) -> &mut Self {
        let packed: Vec<u8> = values.into_iter().flat_map(u64::to_le_bytes).collect();
        if packed.is_empty() { self } else { self.bytes(field, &packed) }
    }

    /// Writes it: a file is a message.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.0)
    }
}

/// Writes a field of the outermost message, so that this message is never whole in memory.
pub fn write_field(out: &mut dyn Write, field: u32, content: &[u8]) -> io::Result<()> {
    let mut head = Message::new();
    head.key(field, LENGTH_DELIMITED);
    raw_varint(&mut head.0, content.len() as u64);
    out.write_all(&head.0)?;
    out.write_all(content)
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
