//! Source positions: samply's record for lines and inlined calls.

use crate::made::{
    any_endian, code as some_code, entry, line, load, loads, only, writer, writer_for,
};
use jitdump::{
    CodeLoad, Dump, DumpFile, Endian, ExtendedCode, Inlined, LineEntry, NewPosition, RecordId,
    SourcePositions, SourcePositionsBuilder,
};
use proptest::collection::vec;
use proptest::prelude::*;

const BASE: u64 = 0x7f00_0000_1000;

/// A frame: function, file, line, column.
type Frame = (Vec<u8>, Vec<u8>, u32, u32);

/// The frames at `address`, the innermost first, from the lines and the inlined calls of a code.
fn frames(code: &CodeLoad<'_>, address: u64) -> Vec<Frame> {
    let mut lines: Vec<LineEntry<'_>> = code.lines().collect();
    lines.sort_by_key(|line| line.address);
    let line = lines.iter().rfind(|line| line.address <= address).filter(|line| line.line != 0);
    let (mut file, mut at) =
        line.map_or((&[][..], (0, 0)), |line| (line.file, (line.line, line.column)));
    let calls: Vec<_> = code.inlined().collect();
    let holds = |call: &jitdump::extension::InlinedCall<'_>| {
        call.ranges.clone().any(|range| range.contains(&address))
    };
    let mut innermost = calls.iter().rposition(holds);
    let mut found = Vec::new();
    while let Some(number) = innermost {
        let call = &calls[number];
        found.push((call.name.to_vec(), file.to_vec(), at.0, at.1));
        (file, at) = (call.file, (call.line, call.column));
        innermost = call.parent.map(|parent| parent as usize);
    }
    found.push((code.name.to_vec(), file.to_vec(), at.0, at.1));
    found
}

/// A dump of one code of `size` bytes named `top`, with this record before its LOAD.
fn dump(endian: Endian, positions: &SourcePositionsBuilder, size: usize) -> Vec<u8> {
    let mut writer = writer_for(endian);
    writer.source_positions(5, BASE, positions).unwrap();
    writer.load(6, &load(BASE, 1, b"top", &some_code(size))).unwrap();
    writer.into_sink()
}

/// `top`, which calls `mid` in line 20, which calls `leaf` in line 10.
fn nested() -> SourcePositionsBuilder {
    let mut made = SourcePositionsBuilder::default();
    let mut at = |caller, function: &'static [u8], line| {
        let place = NewPosition { file: b"/a.js", line, column: 7, ..NewPosition::default() };
        made.position(&NewPosition { caller, function, ..place })
    };
    let call_of_mid = at(None, b"top", 20);
    let call_of_leaf = at(Some(call_of_mid), b"mid", 10);
    let in_leaf = at(Some(call_of_leaf), b"leaf", 2);
    let in_mid = at(Some(call_of_mid), b"mid", 11);
    let in_top = at(None, b"top", 21);
    for (offset, position) in [(0, in_top), (4, in_leaf), (8, in_mid), (12, in_leaf), (16, in_top)]
    {
        made.row(offset, Some(position));
    }
    made.row(24, None);
    made
}

#[test]
fn the_layout_is_that_of_samply() {
    let mut made = SourcePositionsBuilder::default();
    let outer = made.position(&NewPosition {
        function: b"top",
        file: b"/a.js",
        function_line: 1,
        function_column: 2,
        line: 3,
        column: 4,
        ..NewPosition::default()
    });
    let inner = made.position(&NewPosition {
        caller: Some(outer),
        function: b"leaf",
        line: 9,
        ..NewPosition::default()
    });
    made.row(6, Some(inner));
    let mut bytes = Vec::new();
    made.encode(BASE, Endian::Little, &mut bytes);
    let none = u32::MAX;
    let mut expected = Vec::new();
    // The address, and how many rows, positions and strings there are.
    for number in [BASE, 1, 2, 3] {
        expected.extend_from_slice(&number.to_le_bytes());
    }
    let rows_and_positions = [6, 1, none, 0, 1, 1, 2, 3, 4, 0, 2, none, 0, 0, 9, 0_u32];
    for number in rows_and_positions {
        expected.extend_from_slice(&number.to_le_bytes());
    }
    expected.extend_from_slice(b"top\0/a.js\0leaf\0");
    assert_eq!(bytes, expected);
    assert_eq!(RecordId::SOURCE_POSITIONS.0, 827_346_260);
}

#[test]
fn a_record_belongs_to_the_load_of_its_address() {
    let mut writer = writer();
    writer.source_positions(5, BASE, &nested()).unwrap();
    writer.load(6, &load(BASE + 0x100, 1, b"other", &some_code(32))).unwrap();
    writer.load(7, &load(BASE, 2, b"late", &some_code(32))).unwrap();
    writer.debug_info(8, BASE, [entry(BASE, 99, b"/b.js")]).unwrap();
    writer.source_positions(8, BASE, &nested()).unwrap();
    writer.load(9, &load(BASE, 3, b"both", &some_code(32))).unwrap();
    let data = writer.into_sink();
    let dump = Dump::parse(&data).unwrap();
    let counts = loads(&dump)
        .into_iter()
        .map(|code| (code.has_debug_info(), code.lines().count(), code.inlined().count()));
    assert_eq!(counts.collect::<Vec<_>>(), [(false, 0, 0), (false, 0, 0), (true, 6, 2)]);
}

#[test]
fn a_code_is_read_again_by_its_place() {
    let data = dump(Endian::Little, &nested(), 32);
    let code = only(&data);
    let mut file = DumpFile::open(data.as_slice(), data.len() as u64).unwrap();
    let quirks = file.quirks().unwrap();
    let again = file.code_at(&code.place(), &quirks).unwrap().unwrap();
    assert_eq!(again.inlined().count(), 2);
    assert_eq!(frames(&again, BASE + 4), frames(&code, BASE + 4));
}

#[test]
fn positions_from_elsewhere_replace_those_of_the_dump() {
    let mut writer = writer();
    writer.debug_info(8, BASE, [entry(BASE, 99, b"/b.js")]).unwrap();
    writer.load(9, &load(BASE, 3, b"top", &some_code(32))).unwrap();
    let data = writer.into_sink();
    let mut payload = Vec::new();
    nested().encode(BASE, Endian::Little, &mut payload);
    let positions = SourcePositions::parse(&payload, Endian::Little).unwrap();
    let code = only(&data).with_source_positions(positions);
    assert_eq!(frames(&code, BASE + 5).len(), 3);
    let empty = SourcePositions::parse(&[0; 32], Endian::Little).unwrap();
    let code = only(&data).with_source_positions(empty);
    assert_eq!(code.lines().next().map(|line| line.line), Some(99));
}

#[test]
fn a_copy_of_a_dump_has_them_as_well() {
    let ranges = |start, end| std::iter::once(BASE + start..BASE + end).collect();
    let call = |parent, name, line, ranges| Inlined {
        parent,
        name,
        file: b"/a.js",
        line,
        column: 7,
        ranges,
    };
    let calls = [
        call(None, &b"mid"[..], 20, ranges(4, 16)),
        call(Some(0), &b"leaf"[..], 10, ranges(4, 8)),
        // The same call once more, at the same place.
        call(None, &b"mid"[..], 20, ranges(16, 20)),
    ];
    let lines = [line(BASE, b"/a.js", 21), line(BASE + 6, b"/a.js", 2)];
    let mut writer = writer();
    let bytes = some_code(32);
    let code = ExtendedCode {
        timestamp: 5,
        pid: crate::made::PID,
        address: BASE,
        name: b"top",
        bytes: Some(&bytes),
        lines: &lines,
        inlined: &calls,
        ..ExtendedCode::default()
    };
    writer.load(4, &load(BASE + 0x100, 1, b"plain", &some_code(8))).unwrap();
    writer.extended(&code).unwrap();
    writer
        .extended(&ExtendedCode { bytes: None, size: 32, address: BASE + 0x200, ..code })
        .unwrap();
    let data = writer.into_sink();
    let dump = Dump::parse(&data).unwrap();
    let copy = jitdump::with_source_positions(&dump).unwrap();
    let copy = Dump::parse(&copy).unwrap();
    let is_new = |record: &jitdump::Record<'_>| record.body.id() == RecordId::SOURCE_POSITIONS;
    let records: Vec<_> = copy.records().map(Result::unwrap).collect();
    assert_eq!(records.iter().filter(|record| is_new(record)).count(), 1);
    let others = records.iter().filter(|record| !is_new(record)).map(|record| record.body);
    let before: Vec<_> = dump.records().map(|record| record.unwrap().body).collect();
    assert_eq!(others.collect::<Vec<_>>(), before);

    // A reader that knows nothing of tails gets the same.
    let record = records.iter().find(|record| is_new(record)).unwrap();
    let jitdump::Body::Unknown { bytes: payload, .. } = record.body else { panic!("{record:?}") };
    let positions = SourcePositions::parse(payload, Endian::Little).unwrap();
    let [other, original, _] = loads(&dump)[..] else { panic!("three codes") };
    assert!(other.inlined().next().is_none());
    let mut writer = crate::made::writer();
    writer.load(6, &load(BASE, 1, b"top", &some_code(32))).unwrap();
    let plain = only(writer.sink()).with_source_positions(positions);
    assert_eq!(original.inlined().count(), 3);
    for offset in 0..32 {
        let address = BASE + offset;
        assert_eq!(frames(&plain, address), frames(&original, address), "{offset}");
    }
}

#[test]
fn deep_nesting_takes_little_time_and_memory() {
    let mut made = SourcePositionsBuilder::default();
    let mut caller = None;
    for number in 0..50_000_u32 {
        let position =
            NewPosition { caller, function: b"f", line: number, ..NewPosition::default() };
        caller = Some(made.position(&position));
        made.row(number * 2, caller);
    }
    let data = dump(Endian::Little, &made, 100_000);
    let code = only(&data);
    let ranges: usize = code.inlined().map(|call| call.ranges.count()).sum();
    assert!(ranges <= 16 * 100_000, "{ranges}");
    // A position that is its own caller.
    let mut made = SourcePositionsBuilder::default();
    let position =
        made.position(&NewPosition { caller: Some(0), line: 1, ..NewPosition::default() });
    made.row(0, Some(position));
    assert!(only(&dump(Endian::Little, &made, 64)).inlined().count() <= 1);
}

/// Positions, each with the index of its caller among those before it.
fn positions() -> impl Strategy<Value = Vec<(Option<prop::sample::Index>, u8, u32, u32)>> {
    vec((proptest::option::of(any::<prop::sample::Index>()), b'a'..b'e', 0..3_u32, 1..4_u32), 1..12)
}

proptest! {
    #[test]
    fn every_address_has_the_frames_of_its_position(
        given in positions(),
        rows in vec((0..64_u32, proptest::option::of(any::<prop::sample::Index>())), 0..20),
        endian in any_endian(),
    ) {
        let mut made = SourcePositionsBuilder::default();
        let mut numbers: Vec<u32> = Vec::new();
        let mut chains: Vec<Vec<(u8, u32, u32)>> = Vec::new();
        for (caller, function, function_line, line) in given {
            let caller = caller.filter(|_| !numbers.is_empty()).map(|caller| caller.index(numbers.len()));
            let number = made.position(&NewPosition {
                caller: caller.map(|caller| numbers[caller]),
                function: &[function],
                file: b"/f",
                function_line,
                line,
                ..NewPosition::default()
            });
            let mut chain = vec![(function, function_line, line)];
            chain.extend(caller.iter().flat_map(|caller| chains[*caller].clone()));
            numbers.push(number);
            chains.push(chain);
        }
        // As writers do.
        let mut rows = rows;
        rows.sort_by_key(|row| row.0);
        for (offset, position) in &rows {
            made.row(*offset, position.map(|position| *position.get(&numbers)));
        }
        let data = dump(endian, &made, 64);
        let code = only(&data);
        for offset in 0..64_u32 {
            // The last row of the highest offset that is not behind.
            let nearest = rows.iter().map(|row| row.0).filter(|at| *at <= offset).max();
            let row = rows.iter().rfind(|row| Some(row.0) == nearest);
            let position = row.and_then(|row| row.1);
            let mut expected: Vec<(Vec<u8>, u32)> = position.map_or_else(Vec::new, |position| {
                let chain = position.get(&chains);
                chain.iter().map(|(function, _, line)| (vec![*function], *line)).collect()
            });
            match expected.last_mut() {
                // The outermost function is the code itself.
                Some(outermost) => outermost.0 = b"top".to_vec(),
                None => expected.push((b"top".to_vec(), 0)),
            }
            let read: Vec<_> = frames(&code, BASE + u64::from(offset))
                .into_iter()
                .map(|(function, _, line, _)| (function, line))
                .collect();
            prop_assert_eq!(read, expected, "{}", offset);
        }
    }

    #[test]
    fn a_code_keeps_its_frames(
        lines in vec((0..64_u64, 1..9_u32), 0..8),
        calls in vec((any::<prop::sample::Index>(), b'a'..b'e', 0..9_u32, 0..64_u64, 1..32_u64), 0..8),
    ) {
        let mut lines = lines;
        lines.sort_by_key(|line| line.0);
        lines.dedup_by_key(|line| line.0);
        let lines: Vec<_> = lines.iter().map(|(at, number)| line(BASE + at, b"/f", *number)).collect();
        let names: Vec<[u8; 1]> = calls.iter().map(|call| [call.1]).collect();
        let mut inlined: Vec<Inlined<'_>> = Vec::new();
        for (number, (parent, _, at, start, len)) in calls.iter().enumerate() {
            let parent = parent.index(number + 1).checked_sub(1);
            // Within its parent, and outside of calls that were inlined before it.
            let whole = BASE..BASE + 64;
            let whole = std::slice::from_ref(&whole);
            let within = parent.map_or(whole, |parent| &inlined[parent].ranges);
            let free = |address: &u64| {
                within.iter().any(|range| range.contains(address))
                    && !inlined.iter().enumerate().any(|(other, call)| {
                        Some(other) != parent
                            && call.parent == parent.map(|parent| parent as u32)
                            && call.ranges.iter().any(|range| range.contains(address))
                    })
            };
            let ranges = (BASE + start..BASE + (start + len).min(64))
                .filter(free)
                .map(|address| address..address + 1)
                .collect();
            inlined.push(Inlined {
                parent: parent.map(|parent| parent as u32),
                name: &names[number],
                file: b"/g",
                line: *at,
                column: 3,
                ranges,
            });
        }
        let mut made = SourcePositionsBuilder::default();
        made.code(b"top", BASE, 64, &lines, &inlined);
        let mut with_tail = writer();
        with_tail
            .extended(&ExtendedCode {
                pid: crate::made::PID,
                address: BASE,
                size: 64,
                name: b"top",
                lines: &lines,
                inlined: &inlined,
                timestamp: 5,
                ..ExtendedCode::default()
            })
            .unwrap();
        let (with_tail, data) = (with_tail.into_sink(), dump(Endian::Little, &made, 64));
        let (tail, positions) = (only(&with_tail), only(&data));
        for offset in 0..64 {
            prop_assert_eq!(
                frames(&positions, BASE + offset),
                frames(&tail, BASE + offset),
                "{}", offset
            );
        }
    }

    #[test]
    fn any_content_is_survived(
        counts in (0..9_u64, 0..9_u64, any::<u64>()),
        rest in vec(any::<u8>(), 0..400),
    ) {
        let mut payload = Vec::new();
        for number in [BASE, counts.0, counts.1, counts.2] {
            payload.extend_from_slice(&number.to_le_bytes());
        }
        payload.extend_from_slice(&rest);
        let mut writer = writer();
        writer.unknown(5, RecordId::SOURCE_POSITIONS.0, &payload).unwrap();
        writer.load(6, &load(BASE, 1, b"top", &some_code(64))).unwrap();
        let code = only(writer.sink());
        prop_assert!(code.lines().count() <= 8);
        for (number, call) in code.inlined().enumerate() {
            prop_assert!(call.parent.is_none_or(|parent| (parent as usize) < number));
            for range in call.ranges {
                prop_assert!(BASE <= range.start && range.start < range.end && range.end <= BASE + 64);
            }
        }
    }
}
