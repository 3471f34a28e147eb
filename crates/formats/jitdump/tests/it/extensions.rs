//! Tails: what this project records beyond the format.

use crate::made::{
    EH_FRAME, PID, code as some_code, entry, line, load, loads, only, rules, writer, writer_for,
};
use jitdump::extension::{
    FramePointer, InlinedCall, ItemBody, Kind, LeftOut, chunk, code, control, log, tag,
};
use jitdump::{
    Body, CodeEvent, CodeLoad, Dump, End, Endian, ExtendedCode, Inlined, LineEntry, Quirks, Record,
    WriteError, Writer, check::check,
};

const BASE: u64 = 0x7f00_0000_1000;

/// Everything that can be recorded about a code of 64 bytes.
fn all<'a>(
    lines: &'a [LineEntry<'a>],
    ir_lines: &'a [LineEntry<'a>],
    inlined: &'a [Inlined<'a>],
) -> ExtendedCode<'a> {
    ExtendedCode {
        timestamp: 2_000_000,
        pid: PID,
        tid: PID + 1,
        address: BASE,
        size: 64,
        index: 9,
        name: b"fib",
        died: Some(3_000_000),
        seen: Some(2_500_000),
        kind: Kind::BytecodeHandler,
        tier: Some(b"baseline"),
        lines,
        ir_lines,
        inlined,
        eh_frame: &EH_FRAME,
        frame_pointer: Some(FramePointer::Throughout),
        ..ExtendedCode::default()
    }
}

fn source_lines() -> [LineEntry<'static>; 3] {
    [line(BASE, b"/a.js", 1), line(BASE + 8, b"/b.js", 7), line(BASE + 16, b"/a.js", 2)]
}

fn ir_lines() -> [LineEntry<'static>; 2] {
    [line(BASE, b"fib.ir", 1), line(BASE + 4, b"fib.ir", 2)]
}

fn calls() -> [Inlined<'static>; 3] {
    let call = |parent, name, file, line, ranges: &[(u64, u64)]| Inlined {
        parent,
        name,
        file,
        line,
        column: 5,
        ranges: ranges.iter().map(|(start, end)| BASE + start..BASE + end).collect(),
    };
    [
        call(None, b"add", b"/a.js", 3, &[(4, 20), (30, 34)]),
        call(Some(0), b"carry", b"/a.js", 4, &[(8, 12)]),
        call(None, b"log", b"/b.js", 5, &[]),
    ]
}

fn owned<'a>(call: InlinedCall<'a>) -> Inlined<'a> {
    let InlinedCall { parent, name, file, line, column, ranges, .. } = call;
    Inlined { parent, name, file, line, column, ranges: ranges.collect() }
}

fn assert_has_all(code: &CodeLoad<'_>) {
    assert_eq!((code.timestamp, code.pid, code.tid), (2_000_000, PID, PID + 1));
    assert_eq!((code.address, code.size, code.index), (BASE, 64, 9));
    assert_eq!(code.name, b"fib");
    assert_eq!(code.died(), Some(3_000_000));
    assert_eq!(code.seen(), Some(2_500_000));
    assert_eq!(code.kind(), Kind::BytecodeHandler);
    assert_eq!(code.tier(), Some(&b"baseline"[..]));
    assert_eq!(code.frame_pointer(), Some(FramePointer::Throughout));
    assert_eq!(code.lines().collect::<Vec<_>>(), source_lines());
    assert_eq!(code.ir_lines().collect::<Vec<_>>(), ir_lines());
    assert_eq!(code.inlined().map(owned).collect::<Vec<_>>(), calls());
    assert_eq!(code.unwind().unwrap().eh_frame, EH_FRAME);
}

#[test]
fn a_code_with_bytes_has_the_formats_own_records() {
    for endian in [Endian::Little, Endian::Big] {
        let bytes = some_code(61);
        let mut writer = writer_for(endian);
        let (lines, ir_lines, calls) = (source_lines(), ir_lines(), calls());
        let full = ExtendedCode { bytes: Some(&bytes), ..all(&lines, &ir_lines, &calls) };
        writer.extended(&full).unwrap();
        let dump = Dump::parse(writer.sink()).unwrap();
        let records: Vec<_> = dump.records().map(|record| record.unwrap().body).collect();
        let [
            Body::DebugInfo(first),
            Body::DebugInfo(lines),
            Body::UnwindingInfo(unwinding),
            Body::Load(load),
        ] = records[..]
        else {
            panic!("{records:?}")
        };
        assert_eq!((first.nr_entry, first.code_addr), (0, BASE));
        let tags: Vec<_> = first.tail().unwrap().items().map(|item| item.tag).collect();
        assert_eq!(tags, [tag::CODE, tag::SEEN, tag::TIER, tag::LINES, tag::INLINED]);
        // The fourth entry gives the third a length.
        assert_eq!(lines.nr_entry, 4);
        assert_eq!(lines.entries().last().unwrap().unwrap().addr, BASE + 61);
        assert!(!unwinding.eh_frame_hdr.is_empty());
        assert_eq!((load.code, load.padding), (&bytes[..], &[][..]));
    }
}

#[test]
fn codes_that_were_read_can_be_written_with_bytes_or_without() {
    let mut without_bytes = writer();
    without_bytes.extended(&all(&source_lines(), &ir_lines(), &calls())).unwrap();
    let without_bytes = without_bytes.into_sink();
    assert_eq!(Dump::parse(&without_bytes).unwrap().records().count(), 1);
    let bytes = some_code(64);

    let mut full = writer();
    full.code(&only(&without_bytes), Some(&bytes)).unwrap();
    let full = full.into_sink();
    let code = only(&full);
    assert!(!code.is_without_bytes());
    assert_eq!(code.bytes, bytes);
    assert_has_all(&code);

    // Record by record.
    let mut again = writer();
    Dump::parse(&full)
        .unwrap()
        .records()
        .for_each(|record| again.record(&record.unwrap()).unwrap());
    assert_eq!(again.into_sink(), full);
}

#[test]
fn codes_are_found_again_at_their_places() {
    let bytes = some_code(32);
    let mut writer = writer();
    for index in 0..6 {
        let lines = [line(BASE + index * 64, b"/a.js", 5)];
        writer
            .extended(&ExtendedCode {
                timestamp: 2_000_000 + index,
                address: BASE + index * 64,
                size: 32,
                index,
                name: b"f",
                bytes: (index % 2 == 0).then_some(&bytes),
                tier: (index % 3 == 0).then_some(b"top"),
                lines: if index < 4 { &lines } else { &[] },
                eh_frame: if index > 2 { &EH_FRAME } else { &[] },
                ..ExtendedCode::default()
            })
            .unwrap();
    }
    // Without tails, with and without lines.
    writer.load(2_000_007, &load(BASE, 7, b"plain", &bytes)).unwrap();
    writer.debug_info(2_000_008, BASE, [entry(BASE, 1, b"a"), entry(BASE + 4, 2, b"a")]).unwrap();
    writer.load(2_000_008, &load(BASE, 8, b"lined", &bytes)).unwrap();
    let data = writer.into_sink();
    let dump = Dump::parse(&data).unwrap();
    let quirks = Quirks::detect(&dump);
    let codes = loads(&dump);
    assert_eq!(codes.len(), 8);
    for code in codes {
        let again = dump.code_at(&code.place(), &quirks).unwrap();
        assert_eq!(format!("{again:?}"), format!("{code:?}"));
        assert!(again.lines().eq(code.lines()));
        let count = if code.index == 8 { 2 } else { usize::from(code.index < 4) };
        assert_eq!((again.lines().count(), again.place()), (count, code.place()));
        // In another dump, something else is there.
        let other = crate::made::writer().into_sink();
        assert!(Dump::parse(&other).unwrap().code_at(&code.place(), &quirks).is_none());
    }
}

/// A code log: its head, one chunk, and unused space.
fn code_log(left_out: u64) -> Vec<u8> {
    const CHUNK: usize = 4096;
    let mut writer = writer();
    let mut payload = [0; log::SIZE];
    let mut put = |at: usize, bytes: &[u8]| payload[at..at + bytes.len()].copy_from_slice(bytes);
    put(log::VERSION_AT, &log::VERSION.to_le_bytes());
    put(log::CHUNK_SIZE, &(CHUNK as u32).to_le_bytes());
    put(log::CHUNKS, &1_u32.to_le_bytes());
    put(log::CONTROL, &(control::LOG | control::BYTES).to_le_bytes());
    put(log::LIMIT, &0x10_0000_u64.to_le_bytes());
    put(log::LEFT_OUT, &left_out.to_le_bytes());
    put(log::LEFT_OUT_FIRST, &5_u64.to_le_bytes());
    put(log::LEFT_OUT_LAST, &6_u64.to_le_bytes());
    writer.tail(1_000_000, 0, [(tag::LOG, 0, &payload[..])]).unwrap();
    let mut data = writer.into_sink();
    data.resize(log::FIRST_CHUNK, 0);
    data[44..48].copy_from_slice(&(log::FIRST_CHUNK as u32 - 40).to_le_bytes());

    let mut writer = Writer::append(data, Endian::Little);
    let head = [&7_u64.to_le_bytes()[..], &1_u32.to_le_bytes(), &[0; 4]].concat();
    writer.tail(1_000_000, 0, [(tag::CHUNK, 0, &head[..])]).unwrap();
    assert_eq!(writer.sink().len(), log::FIRST_CHUNK + chunk::HEAD_SIZE);
    let bytes = some_code(40);
    let lines = source_lines();
    // A day after the head, and then back again.
    let day = 86_400_000_000_000;
    let without_bytes = ExtendedCode { timestamp: day, ..all(&lines, &[], &[]) };
    writer.extended(&ExtendedCode { died: None, ..without_bytes }).unwrap();
    // Space of unloaded codes, with its old content.
    let start = writer.sink().len();
    writer.extended(&ExtendedCode { index: 1, bytes: Some(&bytes), ..without_bytes }).unwrap();
    writer.extended(&ExtendedCode { index: 2, bytes: Some(&bytes), ..without_bytes }).unwrap();
    let mut data = writer.into_sink();
    filler_at(&mut data, start, None);
    let mut writer = Writer::append(data, Endian::Little);
    let other = ExtendedCode {
        index: 3,
        timestamp: day / 2,
        address: BASE + 64,
        lines: &[],
        ..without_bytes
    };
    writer.extended(&ExtendedCode { bytes: Some(&bytes), died: None, ..other }).unwrap();
    let mut data = writer.into_sink();
    let start = data.len();
    data.resize(log::FIRST_CHUNK + CHUNK, 0);
    filler_at(&mut data, start, None);
    data.resize(data.len() + CHUNK, 0);
    data
}

/// Writes a filler over what is at `start`, as when its space is reused.
fn filler_at(data: &mut [u8], start: usize, end: Option<usize>) {
    let size = end.unwrap_or(data.len()) - start;
    let timestamp: [u8; 8] = data[24..32].try_into().unwrap();
    let filler = &mut data[start..start + 40.min(size)];
    filler.fill(0);
    filler[..4].copy_from_slice(&2_u32.to_le_bytes());
    filler[4..8].copy_from_slice(&(size as u32).to_le_bytes());
    filler[8..16].copy_from_slice(&timestamp);
}

#[test]
fn a_code_log_is_read_whatever_its_times_and_what_its_room_holds() {
    let data = code_log(0);
    let dump = Dump::parse(&data).unwrap();
    let log = dump.log().unwrap();
    assert_eq!((log.version, log.chunk_size, log.chunks, log.limit), (1, 4096, 1, 0x10_0000));
    assert_eq!(log.control, control::LOG | control::BYTES);
    let mut codes = dump.codes();
    let indices: Vec<_> = codes
        .by_ref()
        .map(|event| match event.unwrap() {
            CodeEvent::Load(code) => code.index,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(indices, [9, 3]);
    assert_eq!(codes.end(), Some(End::Zeros { offset: 2 * 4096 }));
    assert_eq!(codes.left_out(), LeftOut::default());
    let quirks = codes.quirks();
    assert_eq!((quirks.debug_addr_bias, quirks.machine), (0, crate::made::X86_64));
    let tails = dump.records().filter_map(|record| match record.unwrap().body {
        Body::DebugInfo(info) => info.tail(),
        _ => None,
    });
    let chunks = tails.flat_map(|tail| tail.items()).filter_map(|item| match item.body() {
        Some(ItemBody::Chunk(chunk)) => Some((chunk.epoch, chunk.span)),
        _ => None,
    });
    assert_eq!(chunks.collect::<Vec<_>>(), [(7, 1)]);
}

#[test]
fn a_code_log_gives_no_finding_but_what_it_left_out() {
    // The tables of the test are not in any process's memory.
    for (left_out, expected) in
        [(0, &["unwinding-not-mapped"][..]), (3, &["left-out", "unwinding-not-mapped"])]
    {
        let report = check(&code_log(left_out));
        assert_eq!((report.loads, &rules(&report)[..]), (2, expected));
    }
    let data = code_log(3);
    let mut codes = Dump::parse(&data).unwrap().codes();
    codes.by_ref().for_each(drop);
    assert_eq!(codes.left_out(), LeftOut { count: 3, first: 5, last: 6 });
}

#[test]
fn a_log_that_is_cut_off_in_unused_room_ends_there() {
    let data = code_log(0);
    // In the filler over dead groups, whose records are still there.
    let dump = Dump::parse(&data).unwrap();
    let is_room =
        |record: &Record<'_>| matches!(record.body, Body::DebugInfo(info) if info.is_filler());
    let room = dump.records().map(Result::unwrap).find(is_room).unwrap();
    let cut = &data[..(room.offset + u64::from(room.total_size) - 8) as usize];
    assert_eq!(only(cut).index, 9);
    let mut codes = Dump::parse(cut).unwrap().codes();
    codes.by_ref().for_each(drop);
    assert_eq!(codes.end(), Some(End::CutOff { offset: room.offset, missing: Some(8) }));
}

#[test]
fn a_group_that_was_never_finished_is_no_code() {
    let mut writer = writer();
    writer.extended(&all(&source_lines(), &[], &[])).unwrap();
    let mut data = writer.into_sink();
    // The tail's first word is stored last.
    data[72..80].fill(0);
    let mut writer = Writer::append(data, Endian::Little);
    writer.load(2_000_001, &load(BASE, 1, b"g", &some_code(8))).unwrap();
    let code = only(writer.sink());
    assert_eq!((code.index, code.tail(), code.lines().count()), (1, None, 0));
}

/// Adds a code of 8 bytes as a group.
fn add_group(writer: &mut Writer<Vec<u8>>) {
    let bytes = some_code(8);
    let code = ExtendedCode { timestamp: 2_000_000, address: BASE, ..ExtendedCode::default() };
    writer.extended(&ExtendedCode { bytes: Some(&bytes), tier: Some(b"x"), ..code }).unwrap();
}

#[test]
fn space_that_is_being_cleared_has_no_code() {
    let mut writer = writer();
    add_group(&mut writer);
    let mut data = writer.into_sink();
    // Word 0 comes first.
    let size = data.len() as u32 - 40;
    data[44..48].copy_from_slice(&size.to_le_bytes());
    assert_eq!(loads(&Dump::parse(&data).unwrap()).len(), 0);
    assert_eq!(rules(&check(&data)), ["no-code"]);
}

#[test]
fn a_group_takes_nothing_that_was_announced_before_it() {
    let mut writer = writer();
    writer.debug_info(1_999_999, BASE, [entry(BASE, 77, b"/old.js")]).unwrap();
    writer.unwinding_info(1_999_999, &crate::made::tables()).unwrap();
    add_group(&mut writer);
    let code = only(writer.sink());
    assert_eq!((code.lines().count(), code.unwind()), (0, None));
    assert!(code.tail().is_some());
}

#[test]
fn a_tail_goes_to_no_load_of_another_address() {
    let mut writer = writer();
    add_group(&mut writer);
    let mut data = writer.into_sink();
    data[56] ^= 0x10;
    let code = only(&data);
    assert_eq!((code.tail(), code.tier(), code.address), (None, None, BASE));
    assert!(rules(&check(&data)).contains(&"extension-malformed"));
}

/// A code without bytes whose only other item is this one.
fn with_item(tag: u16, payload: &[u8]) -> Vec<u8> {
    with_item_at(BASE, tag, payload)
}

fn with_item_at(address: u64, tag: u16, payload: &[u8]) -> Vec<u8> {
    let mut code_item = [0; code::SIZE];
    code_item[code::CODE_SIZE] = 64;
    code_item[code::FLAGS] = code::WITHOUT_BYTES;
    let total = 48 + 40 + 8 + payload.len().next_multiple_of(8);
    code_item[code::GROUP_SIZE..][..4].copy_from_slice(&(total as u32).to_le_bytes());
    let mut writer = writer();
    writer.tail(2_000_000, address, [(tag::CODE, 0, &code_item[..]), (tag, 0, payload)]).unwrap();
    writer.into_sink()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn malformed_items_give_what_they_can_and_are_reported() {
    let strange: [(u16, Vec<u8>, usize, usize); 8] = [
        // More rows than present.
        (tag::LINES, words(&[u32::MAX, 0, 1, 2, 3, 4]), 0, 0),
        // More files than are named; a file that does not exist.
        (tag::LINES, [words(&[1, u32::MAX, 4, 2, 3, 0]), b"/a\0".to_vec()].concat(), 1, 0),
        (tag::LINES, [words(&[1, 1, 4, 2, 3, 9]), b"/a\0".to_vec()].concat(), 1, 0),
        // Rows that go backwards.
        (tag::LINES, [words(&[2, 1, 8, 2, 3, 0, 4, 2, 3, 0]), b"/a\0".to_vec()].concat(), 2, 0),
        // More ranges than present, in total and for one call.
        (tag::INLINED, [words(&[1, 9, u32::MAX, 2, 3, 0]), b"f\0/a\0".to_vec()].concat(), 0, 0),
        (tag::INLINED, [words(&[1, 0, u32::MAX, 2, 3, 9]), b"f\0/a\0".to_vec()].concat(), 0, 0),
        // A call whose parent is itself, and missing names.
        (tag::INLINED, [words(&[1, 0, 0, 2, 3, 0]), b"f\0/a\0".to_vec()].concat(), 0, 0),
        (
            tag::INLINED,
            [words(&[2, 0, !0, 2, 3, 0, !0, 2, 3, 0]), b"f\0/a\0g\0".to_vec()].concat(),
            0,
            1,
        ),
    ];
    for (tag, payload, rows, calls) in strange {
        let data = with_item(tag, &payload);
        let code = only(&data);
        assert_eq!((code.lines().count(), code.inlined().count()), (rows, calls), "{payload:?}");
        let report = check(&data);
        let finding = report.findings.iter().find(|f| f.rule == "extension-malformed");
        assert_eq!(finding.map(|finding| finding.count), Some(1), "{payload:?}: {report:?}");
    }
    // A tail larger than its record, and an item larger than its tail.
    for at in [76, 84] {
        let mut data = with_item(tag::TIER, b"top");
        data[at + 1] = 0x7f;
        assert!(rules(&check(&data)).contains(&"extension-malformed"), "{at}");
    }
}

#[test]
fn no_size_is_believed_that_nothing_speaks_for() {
    let mut writer = writer();
    writer.extended(&ExtendedCode { size: u64::MAX / 2, ..all(&[], &[], &[]) }).unwrap();
    let data = writer.into_sink();
    assert_eq!(loads(&Dump::parse(&data).unwrap()).len(), 0);
    assert!(rules(&check(&data)).contains(&"extension-malformed"));
}

#[test]
fn unknown_items_and_tags_are_passed_over() {
    let data = with_item(0x7777, b"later");
    assert_eq!(only(&data).name, b"");
    assert!(rules(&check(&data)).iter().all(|rule| ["no-close", "name-empty"].contains(rule)));
}

#[test]
fn ranges_of_inlined_calls_end_with_the_code_and_with_memory() {
    // The code has 64 bytes. In the second case, only 39 addresses are left before the last.
    let last = u64::MAX - 39;
    for (start, ranges, expected) in [
        (BASE, &[8, 8, 60, 999, 70, 80][..], BASE + 60..BASE + 64),
        (last, &[30, 60, 50, 60], last + 30..u64::MAX),
    ] {
        let count = ranges.len() as u32 / 2;
        let head = words(&[1, count, !0, 2, 3, count]);
        let payload = [head, words(ranges), b"f\0/a\0".to_vec()].concat();
        let data = with_item_at(start, tag::INLINED, &payload);
        let call = only(&data).inlined().next().unwrap();
        assert!(call.ranges.eq([expected]));
    }
}

#[test]
fn a_made_unwind_header_leads_to_the_frames() {
    // As assemblers write it: a CIE with `zR`, pcrel sdata4, and two FDEs, the higher one first.
    let mut eh_frame = vec![0x14, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b];
    eh_frame.extend([0x0c, 7, 8, 0x90, 1, 0, 0]);
    for (at, location) in [(24_i32, -32_i32), (44, -64)] {
        eh_frame.extend(16_i32.to_le_bytes());
        eh_frame.extend((at + 4).to_le_bytes());
        eh_frame.extend((location - (at + 8)).to_le_bytes());
        eh_frame.extend(32_i32.to_le_bytes());
        eh_frame.extend([0; 4]);
    }
    eh_frame.extend([0; 4]);
    let bytes = some_code(64);
    let mut writer = writer();
    let code = ExtendedCode { timestamp: 2_000_000, address: BASE, ..ExtendedCode::default() };
    let described = ExtendedCode { bytes: Some(&bytes), eh_frame: &eh_frame, ..code };
    writer.extended(&described).unwrap();
    let data = writer.into_sink();
    let unwind = only(&data).unwind().unwrap();
    let len = eh_frame.len() as i32;
    let (head, table) = unwind.eh_frame_hdr.split_at(4);
    assert_eq!(head, [1, 0x1b, 3, 0x3b]);
    let table: Vec<_> =
        table.as_chunks::<4>().0.iter().map(|word| i32::from_le_bytes(*word)).collect();
    assert_eq!(table, [-len - 4, 2, -64 - len, 44 - len, -32 - len, 24 - len]);
    assert!(!rules(&check(&data)).contains(&"unwinding-malformed"));
}

#[test]
fn names_that_the_format_has_no_room_for_are_refused() {
    let bytes = some_code(8);
    let nul = [line(BASE, b"a\0b", 1)];
    let mut writer = writer();
    for code in [
        ExtendedCode { name: b"a\0b", ..all(&[], &[], &[]) },
        ExtendedCode { name: b"a\0b", bytes: Some(&bytes), ..all(&[], &[], &[]) },
        all(&nul, &[], &[]),
        all(&[], &nul, &[]),
    ] {
        assert_eq!(writer.extended(&code), Err(WriteError::NulInName));
    }
    let inlined = [Inlined { parent: Some(0), ..Inlined::default() }];
    let refused = writer.extended(&all(&[], &[], &inlined));
    assert_eq!(refused, Err(WriteError::ParentBehind { index: 0 }));
    assert_eq!(writer.sink().len(), 40);
}
