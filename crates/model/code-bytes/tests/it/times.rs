//! Answers, compared with a memory that the same events change byte by byte.

use std::collections::BTreeMap;

use code_bytes::CodeBytes;
use jitdump::{Endian, Load, Move, Writer, WriterConfig};
use proptest::prelude::*;

const BASE: u64 = 0x10_0000;

fn writer() -> Writer<Vec<u8>> {
    let config =
        WriterConfig { endian: Endian::Little, machine: 62, pid: 7, timestamp: 0, flags: 0 };
    Writer::new(Vec::new(), &config).unwrap()
}

fn load(writer: &mut Writer<Vec<u8>>, time: u64, address: u64, index: u64, code: &[u8]) {
    let name = format!("f{index}");
    writer
        .load(
            time,
            &Load {
                pid: 7,
                tid: 7,
                vma: address,
                code_addr: address,
                code_index: index,
                name: name.as_bytes(),
                code,
                padding: &[],
                missing: 0,
            },
        )
        .unwrap();
}

fn read(writer: Writer<Vec<u8>>) -> CodeBytes {
    let dump = writer.into_sink();
    CodeBytes::read(dump.as_slice(), dump.len() as u64).unwrap()
}

#[test]
fn a_code_that_was_moved_is_at_each_place_in_its_time() {
    let mut dump = writer();
    load(&mut dump, 10, BASE, 1, &[1, 2, 3, 4]);
    let moved = Move {
        pid: 7,
        tid: 7,
        vma: BASE + 0x100,
        old_code_addr: BASE,
        new_code_addr: BASE + 0x100,
        code_size: 4,
        code_index: 1,
    };
    dump.move_code(20, &moved).unwrap();
    let codes = read(dump);
    let mut buffer = [0; 4];
    assert_eq!(codes.copy(BASE, 19, &mut buffer), 4);
    assert_eq!(buffer, [1, 2, 3, 4]);
    assert_eq!(codes.copy(BASE, 20, &mut buffer), 0);
    assert_eq!(codes.copy(BASE + 0x102, 20, &mut buffer), 2);
    assert_eq!(buffer[..2], [3, 4]);
    assert_eq!(codes.at(BASE + 0x102, 20).unwrap().name, b"f1");
}

#[test]
fn what_is_damaged_is_left_out_and_described() {
    let mut dump = writer();
    load(&mut dump, 10, BASE, 1, &[1, 2, 3, 4]);
    let mut bytes = dump.into_sink();
    let whole = bytes.len();
    bytes.truncate(whole - 2);
    let codes = CodeBytes::read(bytes.as_slice(), bytes.len() as u64).unwrap();
    assert_eq!(codes.copy(BASE, 10, &mut [0; 4]), 0);
    bytes.truncate(3);
    assert!(CodeBytes::read(bytes.as_slice(), 3).is_err());
}

/// A code that is loaded: its offset from `BASE` and its size.
fn loads() -> impl Strategy<Value = Vec<(u64, usize)>> {
    prop::collection::vec((0..64_u64, 1..24_usize), 1..40)
}

proptest! {
    #[test]
    fn bytes_are_those_that_were_written_last(loads in loads()) {
        let mut dump = writer();
        // The memory after each load. A code's bytes say which code it is.
        let mut memory = BTreeMap::new();
        let mut after = Vec::new();
        for (index, &(offset, size)) in loads.iter().enumerate() {
            let code = vec![u8::try_from(index).unwrap() + 1; size];
            // A code that is overwritten in part is no longer code where it was overwritten.
            load(&mut dump, 10 * index as u64 + 10, BASE + offset, index as u64, &code);
            memory.extend((offset..offset + size as u64).map(|at| (at, code[0])));
            after.push(memory.clone());
        }
        let codes = read(dump);
        for (index, memory) in after.iter().enumerate() {
            for time in [10 * index as u64 + 10, 10 * index as u64 + 19] {
                for at in 0..96 {
                    let mut byte = [0];
                    let known = codes.copy(BASE + at, time, &mut byte);
                    match memory.get(&at) {
                        Some(&expected) => prop_assert_eq!((known, byte[0]), (1, expected)),
                        // Nothing yet: what came there next.
                        None => {
                            let next = after[index..].iter().find_map(|later| later.get(&at));
                            prop_assert_eq!((known, byte[0]), next.map_or((0, 0), |&next| (1, next)));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(codes) = CodeBytes::read(bytes.as_slice(), bytes.len() as u64) {
            codes.copy(0, 0, &mut [0; 16]);
        }
    }
}
