//! Encodes a context that says where code logs are.

use crate::{CodeLog, keys};

/// Wire type 2, in a tag.
const BYTES: u64 = 2;

/// Encodes a `ProcessContext` with these logs, and with a resource that has this `service.name`, if given. Returns the size;
/// `None` if `out` is too small.
pub fn encode(service_name: Option<&str>, logs: &[CodeLog], out: &mut [u8]) -> Option<usize> {
    let mut writer = Writer { out, at: 0 };
    if let Some(name) = service_name {
        let value = field_size(name.len());
        let attribute = field_size("service.name".len()).saturating_add(field_size(value));
        writer.begin(1, field_size(attribute))?;
        writer.begin(1, attribute)?;
        writer.bytes(1, b"service.name")?;
        writer.begin(2, value)?;
        writer.bytes(1, name.as_bytes())?;
    }
    writer.code_logs(logs)?;
    Some(writer.at)
}

/// Encodes the entries of `ProcessContext.attributes` for these logs, in the form in which they are in the message. The
/// publisher of a context appends them to its encoded message, as protobuf merges messages that follow each other. Returns the size;
/// `None` if `out` is too small.
pub fn encode_attributes(logs: &[CodeLog], out: &mut [u8]) -> Option<usize> {
    encode(None, logs, out)
}

struct Writer<'o> {
    out: &'o mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.at.checked_add(bytes.len())?;
        self.out.get_mut(self.at..end)?.copy_from_slice(bytes);
        self.at = end;
        Some(())
    }

    fn varint(&mut self, mut value: u64) -> Option<()> {
        while value >= 0x80 {
            self.put(&[(value & 0x7f | 0x80) as u8])?;
            value >>= 7;
        }
        self.put(&[value as u8])
    }

    /// The tag and the size of a string or a message.
    fn begin(&mut self, field: u64, size: usize) -> Option<()> {
        self.varint(field << 3 | BYTES)?;
        self.varint(size as u64)
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) -> Option<()> {
        self.begin(field, bytes.len())?;
        self.put(bytes)
    }

    fn code_logs(&mut self, logs: &[CodeLog]) -> Option<()> {
        if logs.is_empty() {
            return Some(());
        }
        self.array(keys::ADDRESS, logs.iter().map(|log| log.address))?;
        self.array(keys::SIZE, logs.iter().map(|log| log.size))?;
        self.array(keys::VERSION, logs.iter().map(|log| log.version.into()))
    }

    /// An attribute of the context that is an array of numbers.
    fn array(&mut self, key: &str, numbers: impl Iterator<Item = u64> + Clone) -> Option<()> {
        // `AnyValue.int_value`: a tag, and the number.
        let value = |number| 1_usize.saturating_add(varint_size(number));
        let values = numbers.clone().map(value).map(field_size).fold(0, usize::saturating_add);
        let array = field_size(values);
        self.begin(2, field_size(key.len()).saturating_add(field_size(array)))?;
        self.bytes(1, key.as_bytes())?;
        self.begin(2, array)?;
        self.begin(5, values)?;
        for number in numbers {
            self.begin(1, value(number))?;
            self.varint(3 << 3)?;
            self.varint(number)?;
        }
        Some(())
    }
}

/// The size of a string or a message of this size with its tag, which is one byte for all fields here.
fn field_size(size: usize) -> usize {
    size.saturating_add(varint_size(size as u64)).saturating_add(1)
}

fn varint_size(value: u64) -> usize {
    let bits = u64::BITS.saturating_sub(value.leading_zeros()).max(1);
    bits.div_ceil(7) as usize
}
