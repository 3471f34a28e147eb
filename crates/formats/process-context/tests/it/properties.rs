//! What is encoded is decoded; nothing else panics, whatever the bytes are and however they change.

use process_context::{
    CodeLog, Context, DecodeError, Header, LARGEST_PAYLOAD, Mapping, Memory, ReadError, Value,
    encode, encode_attributes, read,
};
use proptest::prelude::*;

fn logs() -> impl Strategy<Value = Vec<CodeLog>> {
    let log = (any::<u64>(), any::<u64>(), any::<u32>());
    prop::collection::vec(
        log.prop_map(|(address, size, version)| CodeLog { address, size, version }),
        0..40,
    )
}

/// Iterates over everything. Arrays in arrays are followed to a limit. Returns how many values there were.
fn walk(context: &Context<'_>) -> usize {
    fn value(of: Value<'_>, depth: u32) -> usize {
        match of {
            Value::Array(values) if depth > 0 => {
                values.flatten().map(|one| value(one, depth - 1)).sum()
            }
            Value::Map(entries) if depth > 0 => {
                entries.flatten().map(|entry| value(entry.value, depth - 1)).sum()
            }
            _ => 1,
        }
    }
    let all = context.resource().chain(context.attributes()).flatten();
    all.map(|attribute| value(attribute.value, 4)).sum::<usize>() + context.code_logs().count()
}

/// Memory at one address. Each reading but the first `stable` ones finds other bytes.
struct Changing {
    bytes: Vec<u8>,
    stable: u32,
    count: std::cell::Cell<u32>,
}

const BASE: u64 = 0x1000;

impl Memory for Changing {
    fn read_at(&self, address: u64, buffer: &mut [u8]) -> bool {
        let count = self.count.replace(self.count.get() + 1);
        let at = address.checked_sub(BASE).and_then(|at| usize::try_from(at).ok());
        let bytes = at.and_then(|at| self.bytes.get(at..)?.get(..buffer.len()));
        let Some(bytes) = bytes else { return false };
        buffer.copy_from_slice(bytes);
        if count >= self.stable {
            buffer.iter_mut().for_each(|byte| *byte ^= count as u8);
        }
        true
    }
}

fn with_header(version: u32, size: u32, at: u64, payload: u64, behind: &[u8]) -> Vec<u8> {
    let mut bytes = Header::SIGNATURE.to_vec();
    bytes.extend(version.to_ne_bytes());
    bytes.extend(size.to_ne_bytes());
    bytes.extend(at.to_ne_bytes());
    bytes.extend(payload.to_ne_bytes());
    bytes.extend(behind);
    bytes
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(logs in logs(), name in prop::option::of(".{0,300}")) {
        let mut bytes = vec![0; 8192];
        let size = encode(name.as_deref(), &logs, &mut bytes).unwrap();
        let context = Context::new(&bytes[..size]);
        let found: Vec<CodeLog> = context.code_logs().map(Result::unwrap).collect();
        prop_assert_eq!(&found, &logs);
        let mut resource = context.resource().map(Result::unwrap);
        let found = resource.next().map(|attribute| match attribute.value {
            Value::Text(text) => (attribute.key, text),
            other => panic!("{other:?}"),
        });
        prop_assert_eq!(found, name.as_deref().map(|name| ("service.name", name)));
        prop_assert!(resource.next().is_none());
        // Each smaller buffer is too small.
        for less in 0..size.min(200) {
            prop_assert_eq!(encode(name.as_deref(), &logs, &mut vec![0; size - 1 - less]), None);
        }
    }

    /// Messages that follow each other are merged.
    #[test]
    fn attributes_may_be_appended(logs in logs(), name in "[a-z]{1,20}") {
        let (mut bytes, mut whole) = (vec![0; 8192], vec![0; 8192]);
        let first = encode(Some(&name), &[], &mut bytes).unwrap();
        let second = encode_attributes(&logs, &mut bytes[first..]).unwrap();
        let size = encode(Some(&name), &logs, &mut whole).unwrap();
        prop_assert_eq!(&bytes[..first + second], &whole[..size]);
    }

    #[test]
    fn any_bytes_are_decoded(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let values = walk(&Context::new(&bytes));
        prop_assert!(values <= bytes.len());
    }

    #[test]
    fn damaged_contexts_are_decoded(logs in logs(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = vec![0; 8192];
        let size = encode(Some("service"), &logs, &mut bytes).unwrap();
        bytes[at.index(size)] = byte;
        walk(&Context::new(&bytes[..size]));
    }

    #[test]
    fn any_lines_are_parsed(line in prop::collection::vec(any::<u8>(), 0..100)) {
        if let Some(mapping) = Mapping::parse(&line) {
            prop_assert!(line.windows(mapping.name.len().max(1)).any(|part| part == mapping.name)
                || mapping.name.is_empty());
        }
    }

    #[test]
    fn any_memory_is_read(
        version in 0_u32..4, size in 0_u32..80, at in any::<u64>(), payload in BASE - 8..BASE + 120,
        behind in prop::collection::vec(any::<u8>(), 0..64), stable in 0_u32..12,
    ) {
        let bytes = with_header(version, size, at, payload, &behind);
        let memory = Changing { bytes: bytes.clone(), stable, count: 0.into() };
        let mut buffer = [0; 64];
        match read(&memory, BASE, &mut buffer) {
            Ok(published) => {
                prop_assert!(stable >= 4 && version == 2 && at != 0 && published.at == at);
                let from = usize::try_from(payload - BASE).unwrap();
                prop_assert_eq!(published.payload, &bytes[from..from + size as usize]);
            }
            Err(error) if stable >= 12 => {
                let expected = match (version, at, size) {
                    (2, 0, _) => ReadError::Busy,
                    (2, _, 1..=64) => ReadError::Unreadable(payload),
                    (2, _, _) => ReadError::Size(size),
                    _ => ReadError::Version(version),
                };
                // Eight attempts at a busy context read more often than the memory is stable.
                prop_assert!(error == expected || at == 0, "{error} instead of {expected}");
            }
            Err(_) => {}
        }
    }
}

#[test]
fn sizes_have_a_limit() {
    let large = u32::try_from(LARGEST_PAYLOAD).unwrap() + 1;
    let bytes = with_header(2, large, 1, BASE, &vec![0; 2 * LARGEST_PAYLOAD]);
    let memory = Changing { bytes, stable: u32::MAX, count: 0.into() };
    let mut buffer = vec![0; 2 * LARGEST_PAYLOAD];
    assert_eq!(read(&memory, BASE, &mut buffer), Err(ReadError::Size(large)));
    assert_eq!(read(&memory, u64::MAX, &mut buffer), Err(ReadError::Unreadable(u64::MAX)));
    assert_eq!(read(&memory, 0, &mut buffer), Err(ReadError::Unreadable(16)));
}

#[test]
fn faults_are_named() {
    let of = |bytes: &[u8]| Context::new(bytes).attributes().find_map(Result::err);
    for (bytes, error) in [
        (&b"\x12"[..], DecodeError::Truncated),
        (b"\x12\x05abc", DecodeError::Truncated),
        (b"\x12\x01\x0a", DecodeError::Truncated),
        (b"\x00\x01", DecodeError::FieldNumber),
        (b"\x0b", DecodeError::WireType(3)),
        (b"\x1f", DecodeError::WireType(7)),
        (b"\x10\x01", DecodeError::Field(2)),
        (b"\x12\x03\x0a\x01\xff", DecodeError::Utf8),
        (b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", DecodeError::Overlong),
        (b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00", DecodeError::Overlong),
    ] {
        assert_eq!(of(bytes), Some(error), "{bytes:x?}");
    }
    // The largest number, and fields that are not known.
    assert_eq!(of(b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x2d1234\x2112345678"), None);
    // The logs' arrays must have one length and numbers in them.
    let logs =
        [CodeLog { address: 1, size: 2, version: 3 }, CodeLog { address: 4, size: 5, version: 6 }];
    let mut bytes = [0; 256];
    let size = encode_attributes(&logs, &mut bytes).unwrap();
    let first = |bytes: &[u8]| Context::new(bytes).code_logs().find_map(Result::err);
    assert_eq!(first(&bytes[..size]), None);
    let one = encode_attributes(&logs[..1], &mut bytes[size..]).unwrap();
    // Of the same key the last one counts: here, a shorter array of addresses.
    let address = usize::from(bytes[size + 1]) + 2;
    assert!(address < one);
    assert_eq!(first(&bytes[..size + address]), Some(DecodeError::CodeLogCount));
    assert_eq!(first(&bytes[size..size + address]), Some(DecodeError::CodeLogCount));
    // A text in place of an array.
    let text = b"\x12\x17\x0a\x10code.log.address\x12\x03\x0a\x01x";
    assert_eq!(first(text), Some(DecodeError::CodeLogType));
}
