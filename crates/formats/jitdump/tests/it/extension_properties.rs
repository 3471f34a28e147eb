//! Properties of every code with a tail.

use crate::made::{any_endian, any_name, loads, read_all, writer_for};
use jitdump::extension::{FramePointer, Kind};
use jitdump::{Dump, Endian, ExtendedCode, Inlined, LineEntry, Writer, check::check};
use proptest::collection::vec;
use proptest::prelude::*;

/// Offset, file, line, column.
type MadeLine = (u64, Vec<u8>, u32, u32);
/// Parent, name, file, line, ranges.
type MadeCall = (prop::sample::Index, Vec<u8>, Vec<u8>, u32, Vec<(u64, u64)>);

/// Owns what an [`ExtendedCode`] borrows.
#[derive(Clone, Debug)]
struct Made {
    name: Vec<u8>,
    bytes: Option<Vec<u8>>,
    size: u64,
    died: Option<u64>,
    seen: Option<u64>,
    kind: u8,
    tier: Option<Vec<u8>>,
    lines: [Vec<MadeLine>; 2],
    inlined: Vec<MadeCall>,
    eh_frame: Vec<u8>,
    frame_pointer: Option<bool>,
}

fn made() -> impl Strategy<Value = Made> {
    let bytes = |len| vec(any::<u8>(), 0..len);
    let line = || vec((0..200_u64, any_name(1), 1_u32.., any::<u32>()), 0..6);
    let range = (0..200_u64, 1..200_u64).prop_map(|(start, len)| (start, start + len));
    let call =
        (any::<prop::sample::Index>(), any_name(1), any_name(1), any::<u32>(), vec(range, 0..3));
    let about = (any_name(1), proptest::option::of(bytes(300)), 1..300_u64);
    let time = || proptest::option::of(2_000_u64..);
    let more = (time(), time(), 0..6_u8, proptest::option::of(bytes(9)));
    let frames = (bytes(40), proptest::option::of(any::<bool>()));
    (about, more, ([line(), line()], vec(call, 0..6)), frames).prop_map(
        |(
            (name, bytes, size),
            (died, seen, kind, tier),
            (mut lines, inlined),
            (tables, frame_pointer),
        )| {
            let size = bytes.as_ref().map_or(size, |bytes| bytes.len() as u64);
            for lines in &mut lines {
                lines.retain(|(offset, ..)| *offset < size);
                lines.sort_by_key(|(offset, ..)| *offset);
            }
            let length = [44, 0, 0, 0, 0, 0, 0, 0];
            let eh_frame = if tables.is_empty() { tables } else { [&length, &tables[..]].concat() };
            Made {
                name,
                bytes,
                size,
                died,
                seen,
                kind,
                tier,
                lines,
                inlined,
                eh_frame,
                frame_pointer,
            }
        },
    )
}

const SPACE: u64 = 0x1000;

/// Passes each of them to `take` in the form to be written.
fn each(all: &[Made], mut take: impl FnMut(&ExtendedCode<'_>)) {
    for (index, made) in (0..).zip(all) {
        let address = 0x7f00_0000_0000 + index * SPACE;
        let [lines, ir_lines] = made.lines.each_ref().map(|lines| {
            let line = |(offset, file, line, column): &MadeLine| LineEntry {
                address: address + offset,
                file: file.clone().leak(),
                line: *line,
                column: *column,
            };
            lines.iter().map(line).collect::<Vec<_>>()
        });
        let inlined: Vec<_> = made
            .inlined
            .iter()
            .enumerate()
            .map(|(number, (parent, name, file, line, ranges))| Inlined {
                parent: parent.index(number + 1).checked_sub(1).map(|parent| parent as u32),
                name,
                file,
                line: *line,
                column: 0,
                ranges: ranges
                    .iter()
                    .map(|(start, end)| address + start..address + (*end).min(made.size))
                    .filter(|range| range.start < range.end)
                    .collect(),
            })
            .collect();
        take(&ExtendedCode {
            timestamp: 1_000 + index,
            pid: crate::made::PID,
            tid: 3,
            address,
            size: made.size,
            index,
            name: &made.name,
            bytes: made.bytes.as_deref(),
            died: made.died,
            seen: made.seen,
            kind: Kind::from(made.kind),
            tier: made.tier.as_deref(),
            lines: &lines,
            ir_lines: &ir_lines,
            inlined: &inlined,
            eh_frame: &made.eh_frame,
            frame_pointer: made.frame_pointer.map(|throughout| {
                if throughout { FramePointer::Throughout } else { FramePointer::Prologue }
            }),
            ..ExtendedCode::default()
        });
    }
}

fn write(endian: Endian, all: &[Made]) -> Vec<u8> {
    let mut writer: Writer<Vec<u8>> = writer_for(endian);
    each(all, |code| writer.extended(code).unwrap());
    writer.into_sink()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(endian in any_endian(), all in vec(made(), 0..6)) {
        let data = write(endian, &all);
        prop_assert!(data.len().is_multiple_of(8));
        let dump = Dump::parse(&data).unwrap();
        let codes = loads(&dump);
        prop_assert_eq!(codes.len(), all.len());
        let mut codes = codes.iter();
        let mut copy = writer_for(endian);
        each(&all, |made| {
            let code = codes.next().unwrap();
            assert_eq!(
                (code.timestamp, code.pid, code.tid, code.address, code.size, code.index),
                (made.timestamp, made.pid, made.tid, made.address, made.size, made.index)
            );
            assert_eq!((code.name, code.bytes), (made.name, made.bytes.unwrap_or(&[])));
            assert_eq!((code.is_without_bytes(), code.kind()), (made.bytes.is_none(), made.kind));
            assert_eq!((code.died(), code.tier()), (made.died, made.tier));
            assert_eq!(code.seen(), made.seen);
            assert_eq!(code.frame_pointer(), made.frame_pointer);
            assert_eq!(code.lines().collect::<Vec<_>>(), made.lines);
            assert_eq!(code.ir_lines().collect::<Vec<_>>(), made.ir_lines);
            assert_eq!(code.unwind().map_or(&[][..], |unwind| unwind.eh_frame), made.eh_frame);
            let inlined: Vec<_> = code
                .inlined()
                .map(|call| Inlined {
                    parent: call.parent,
                    name: call.name,
                    file: call.file,
                    line: call.line,
                    column: call.column,
                    ranges: call.ranges.collect(),
                })
                .collect();
            assert_eq!(inlined, made.inlined);
            copy.code(code, None).unwrap();
        });
        prop_assert_eq!(copy.sink(), &data);
        let malformed = check(&data)
            .findings
            .into_iter()
            .find(|found| ["extension-malformed", "group-without-load"].contains(&found.rule));
        prop_assert_eq!(malformed, None);
        read_all(&data);
    }

    #[test]
    fn a_code_is_read_by_itself_as_in_a_dump(endian in any_endian(), all in vec(made(), 1..4)) {
        for (first, _) in all.iter().enumerate() {
            let data = write(endian, &all[first..]);
            let dump = Dump::parse(&data).unwrap();
            let expected = loads(&dump)[0];
            prop_assert_eq!(format!("{:?}", dump.logged_code().unwrap()), format!("{expected:?}"));
        }
        let empty = write(endian, &[]);
        prop_assert!(Dump::parse(&empty).unwrap().logged_code().is_none());
    }

    #[test]
    fn any_damage_is_read_without_panic(
        endian in any_endian(),
        all in vec(made(), 1..5),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut data = write(endian, &all);
        let len = data.len();
        for (at, byte) in damage {
            data[at.index(len)] = byte;
        }
        data.truncate(40 + cut.index(len - 39));
        read_all(&data);
    }
}
