//! Process contexts: any memory, which may change between two readings, as that of a process does; any payload; any list of
//! mappings.
use std::cell::Cell;

use process_context::{Context, LARGEST_PAYLOAD, Mapping, Memory, Value, read};

/// The address of the memory. The payload's address in a header is relative to 0.
const BASE: u64 = 0x1000;

/// Each reading finds another byte.
struct Changing<'a> {
    bytes: &'a [u8],
    changes: &'a [u8],
    reads: Cell<usize>,
}

impl Memory for Changing<'_> {
    fn read_at(&self, address: u64, buffer: &mut [u8]) -> bool {
        let at = address.checked_sub(BASE).and_then(|at| usize::try_from(at).ok());
        let Some(bytes) = at.and_then(|at| self.bytes.get(at..)?.get(..buffer.len())) else {
            return false;
        };
        buffer.copy_from_slice(bytes);
        let number = self.reads.replace(self.reads.get() + 1);
        if let [at, byte] = self.changes.get(2 * number..2 * number + 2).unwrap_or_default()
            && let Some(place) = buffer.get_mut(usize::from(*at))
        {
            *place ^= byte;
        }
        true
    }
}

/// How many values there are, to a limit in depth.
fn count(value: Value<'_>, depth: u32) -> usize {
    match value {
        Value::Array(values) if depth > 0 => {
            values.flatten().map(|value| count(value, depth - 1)).sum()
        }
        Value::Map(entries) if depth > 0 => {
            entries.flatten().map(|entry| count(entry.value, depth - 1)).sum()
        }
        _ => 1,
    }
}

fn walk(payload: &[u8]) {
    let context = Context::new(payload);
    let all = context.resource().chain(context.attributes()).flatten();
    let values: usize = all.map(|attribute| count(attribute.value, 8)).sum();
    assert!(values + context.code_logs().count() <= payload.len());
}

/// Reads it in every way, and checks what must hold.
pub fn run(bytes: &[u8]) {
    walk(bytes);
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Some(mapping) = Mapping::parse(line) {
            assert!(line.ends_with(mapping.name));
        }
    }
    let mut buffer = vec![0; LARGEST_PAYLOAD];
    let memory = Changing { bytes, changes: &[], reads: Cell::new(0) };
    if let Ok(published) = read(&memory, BASE, &mut buffer) {
        assert!(published.at != 0 && published.payload.len() <= bytes.len());
        walk(published.payload);
    }
    let (changes, bytes) = bytes.split_at(bytes.len().min(64));
    let memory = Changing { bytes, changes, reads: Cell::new(0) };
    if let Ok(published) = read(&memory, BASE, &mut buffer) {
        walk(published.payload);
    }
}
