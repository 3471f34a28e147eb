//! Tests groups in plain memory, which Miri can check: a reader finds what was written.

use jitdump::extension::tail::MAGIC as TAIL_MAGIC;
use jitdump::{CodeEvent, CodeLoad, Dump, RecordId};
use unwind_info::{Row, Unwind};

use super::group::{Plan, Stamp, Tables, unwind_tables, write_file_header};
use super::layout::{FIRST_ITEM, TAIL, pair, record_word};
use crate::clock::Clock;
use jit_code::{Code, Inlined, Kind, Line};

/// A dump of this one code, with `more` bytes of extra space.
fn dump(code: &Code<'_>, with_bytes: bool, more: usize) -> Vec<u8> {
    let mut buffer = fallible::Vec::new();
    let frames = unwind_tables(code, with_bytes, &mut buffer, || {}).unwrap();
    let (eh_frame, eh_frame_hdr) = buffer.split_at(frames);
    let tables = Tables { eh_frame, eh_frame_hdr };
    let mut plan = Plan::default();
    plan.measure(code, tables, with_bytes);
    assert!(plan.fits());
    let size = plan.size + more;
    let mut dump = vec![0; 40 + size];
    let (header, group) = dump.split_at_mut(40);
    write_file_header(header, super::MACHINE, 7, 1_000, Clock::Monotonic);
    let stamp = Stamp { time: 2_000, pid: 7, tid: 8, index: 9 };
    plan.write(&mut group[FIRST_ITEM..], code, tables, stamp);
    let mut put = |at: usize, word: u64| group[at..at + 8].copy_from_slice(&word.to_ne_bytes());
    put(0, record_word(RecordId::DEBUG_INFO.0, size - plan.behind()));
    put(8, stamp.time);
    put(16, code.address);
    put(TAIL, pair(TAIL_MAGIC, plan.items() as u32));
    dump
}

fn with_code(dump: &[u8], look: impl FnOnce(&CodeLoad<'_>)) {
    let mut events = Dump::parse(dump).unwrap().codes();
    let Some(Ok(CodeEvent::Load(code))) = events.next() else { panic!("no code") };
    assert!(events.next().is_none());
    look(&code);
}

#[test]
fn a_group_in_plain_memory_is_read_as_announced() {
    let bytes: Vec<u8> = (0..50).collect();
    let lines: Vec<Line<'_>> = (0..40)
        .map(|n| {
            Line::new_bytes(n, [&b"/a"[..], b"/b/long", b"/\xff"][n as usize % 3], n).column(2)
        })
        .collect();
    let ranges = [1..4, 6..9];
    let calls = [0, 1, 2].map(|n: u32| {
        Inlined::new_bytes(b"callee\xfe", &ranges[..n as usize % 3])
            .called_from_bytes([&b"/a"[..], b"/a", b"/\xff"][n as usize], n)
            .column(n)
            .within(n.checked_sub(1))
    });
    let rows = [Row::new(4, 7, 16)];
    for with_bytes in [false, true] {
        for (name, more) in [("", 0), ("f", 8), ("a\nname of some length", 24)] {
            let code = Code::new(&bytes)
                .runs_at(0x7000)
                .named(name)
                .kind(Kind::Stub)
                .tier("tier")
                .lines(&lines)
                .ir_lines(&lines[..3])
                .inlined(&calls)
                .unwind(Unwind::Rows(&rows));
            with_code(&dump(&code, with_bytes, more), |found| {
                assert_eq!((found.address, found.size), (0x7000, 50));
                assert_eq!(found.name, name.replace('\n', " ").as_bytes());
                assert_eq!((found.kind(), found.tier()), (Kind::Stub, Some(&b"tier"[..])));
                assert_eq!(found.is_without_bytes(), !with_bytes);
                if with_bytes {
                    assert_eq!(found.bytes, bytes);
                }
                assert!(found.unwind().is_some());
                let read: Vec<_> = found.lines().collect();
                assert_eq!(read.len(), lines.len());
                for (read, line) in read.iter().zip(&lines) {
                    assert_eq!(read.address, 0x7000 + u64::from(line.offset));
                    assert_eq!((read.line, read.file), (line.line, line.file));
                }
                assert_eq!(found.ir_lines().count(), 3);
                let read: Vec<_> = found.inlined().collect();
                assert_eq!(read.len(), calls.len());
                for (read, call) in read.iter().zip(&calls) {
                    assert_eq!(read.name, call.name);
                    assert_eq!((read.parent, read.file), (call.parent, call.file));
                    assert_eq!(read.ranges.clone().count(), call.ranges.len());
                }
            });
        }
    }
}

#[test]
fn invalid_announcements_are_written_without_panics() {
    // Lines that do not ascend, and are outside of the code; a parent that comes later; ranges that end before
    // they begin.
    let lines = [90, 3, u32::MAX].map(|offset| Line::new(offset, "f", 1).column(1));
    #[allow(clippy::reversed_empty_ranges)]
    let ranges = [9..2, 0..u32::MAX];
    let calls = [Inlined::new("n", &ranges).within(5)];
    let rows = [9, 3].map(|offset| Row::new(offset, 99, 0));
    for size in [0, 1, u64::MAX] {
        let code = Code::at(u64::MAX - 3, size).named_bytes(b"\xff\0\n");
        let code = code.lines(&lines).inlined(&calls).unwind(Unwind::Rows(&rows));
        let dump = dump(&code, false, 0);
        let events = Dump::parse(&dump).unwrap().codes();
        for event in events.flatten() {
            let CodeEvent::Load(code) = event else { continue };
            let _ = (code.lines().count(), code.inlined().count());
        }
    }
}
