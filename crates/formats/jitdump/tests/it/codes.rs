//! The unified level: what belongs together, and the quirks of known writers.

use crate::made::{
    EH_FRAME, EH_FRAME_HDR, code, config, entry, line, lines_by_name, load, loads, same, tables,
    writer,
};
use jitdump::{
    CodeEvent, CodeMove, DebugEntry, Dump, Endian, EntryName, HeaderClock, LineEntry, Load, Move,
    Quirks, RecordClock, UnwindOrder, UnwindingInfo, Writer, WriterConfig,
};

fn quirks(data: &[u8]) -> Quirks {
    Quirks::detect(&Dump::parse(data).unwrap())
}

#[test]
fn events_come_in_the_order_of_the_file() {
    let code = code(32);
    let mut writer = writer();
    writer.load(30, &load(0x1000, 7, b"old", &code)).unwrap();
    writer.load(20, &load(0x1000, 8, b"new", &code)).unwrap();
    let moved = Move {
        pid: 1,
        tid: 2,
        vma: 0,
        old_code_addr: 0x1000,
        new_code_addr: 0x3000,
        code_size: 32,
        code_index: 8,
    };
    writer.move_code(20, &moved).unwrap();
    writer.close(40).unwrap();
    let data = writer.into_sink();
    let mut codes = Dump::parse(&data).unwrap().codes();
    let Some(Ok(CodeEvent::Load(old))) = codes.next() else { panic!() };
    assert_eq!((old.timestamp, old.address, old.size, old.index), (30, 0x1000, 32, 7));
    assert_eq!((old.name, old.bytes, old.end()), (&b"old"[..], &code[..], 0x1020));
    assert_eq!((old.offset, old.pid, old.tid), (40, 700, 700));
    let Some(Ok(CodeEvent::Load(new))) = codes.next() else { panic!() };
    assert_eq!((new.timestamp, new.name), (20, &b"new"[..]));
    let Some(Ok(CodeEvent::Move(event))) = codes.next() else { panic!() };
    let expected = CodeMove {
        offset: event.offset,
        timestamp: 20,
        pid: 1,
        tid: 2,
        old_address: 0x1000,
        new_address: 0x3000,
        size: 32,
        index: 8,
    };
    assert_eq!(event, expected);
    let Some(Ok(CodeEvent::Close { timestamp: 40 })) = codes.next() else { panic!() };
    assert!(codes.next().is_none() && codes.end().is_some());
}

/// As .NET 10 writes blocks of stubs.
#[test]
fn a_load_may_lack_all_its_bytes() {
    let block = Load { missing: 0x1_0000, ..load(0x1000, 1, b"stubs", &[]) };
    let mut writer = writer();
    writer.load(10, &block).unwrap();
    writer.load(20, &load(0x9000_0000, 2, b"f", &code(32))).unwrap();
    let data = writer.into_sink();
    let dump = Dump::parse(&data).unwrap();
    let read: Vec<_> = dump.codes().map(Result::unwrap).collect();
    let [CodeEvent::Load(stubs), CodeEvent::Load(f)] = &read[..] else { panic!("{read:?}") };
    assert_eq!((stubs.address, stubs.size, stubs.bytes), (0x1000, 0x1_0000, &[][..]));
    assert!(stubs.is_without_bytes() && !f.is_without_bytes());
}

#[test]
fn debug_info_goes_to_the_load_of_its_address() {
    // Two threads that lock per record and not per code.
    let code = code(16);
    let mut writer = writer();
    writer.debug_info(1, 0x1000, [entry(0x1000, 1, b"a")]).unwrap();
    writer.debug_info(2, 0x2000, [entry(0x2000, 2, b"b")]).unwrap();
    writer.load(3, &load(0x3000, 1, b"none", &code)).unwrap();
    writer.load(4, &load(0x1000, 2, b"first", &code)).unwrap();
    writer.load(5, &load(0x2000, 3, b"second", &code)).unwrap();
    writer.load(6, &load(0x1000, 4, b"first again", &code)).unwrap();
    let data = writer.into_sink();
    assert_eq!(
        lines_by_name(&data),
        [
            (&b"none"[..], vec![]),
            (b"first", vec![line(0x1000, b"a", 1)]),
            (b"second", vec![line(0x2000, b"b", 2)]),
            (b"first again", vec![]),
        ]
    );
}

#[test]
fn debug_info_of_an_inner_address_goes_to_the_load_right_behind_it() {
    let code = code(64);
    let mut writer = writer();
    writer.debug_info(1, 0x1010, [entry(0x1010, 1, b"a")]).unwrap();
    writer.unwinding_info(1, &tables()).unwrap();
    writer.load(2, &load(0x1000, 1, b"f", &code)).unwrap();
    writer.debug_info(3, 0x9000, [entry(0x1010, 1, b"a")]).unwrap();
    writer.load(4, &load(0x2000, 1, b"g", &code)).unwrap();
    let data = writer.into_sink();
    assert_eq!(lines_by_name(&data), [(&b"f"[..], vec![line(0x1010, b"a", 1)]), (b"g", vec![])]);
}

#[test]
fn stale_debug_info_is_assigned_to_no_code() {
    let code = code(16);
    let stale = |between: &dyn Fn(&mut Writer<Vec<u8>>)| {
        let mut writer = writer();
        writer.load(1, &load(0x9000, 1, b"first", &code)).unwrap();
        writer.debug_info(1, 0x1000, [entry(0x1000, 1, b"a")]).unwrap();
        between(&mut writer);
        writer.load(2, &load(0x1000, 1, b"f", &code)).unwrap();
        let data = writer.into_sink();
        let dump = Dump::parse(&data).unwrap();
        let last = dump.codes().filter_map(Result::ok).last();
        let Some(CodeEvent::Load(code)) = last else { panic!("{last:?}") };
        assert_eq!(code.name, b"f");
        code.has_debug_info()
    };
    let others = |count| {
        let code = code.clone();
        move |writer: &mut Writer<Vec<u8>>| {
            for at in 0..count {
                writer.load(2, &load(0x10_0000 + at * 16, at, b"other", &code)).unwrap();
            }
        }
    };
    assert!(stale(&|_| ()));
    assert!(stale(&others(200)));
    assert!(!stale(&others(300)), "too far away");
    assert!(!stale(&|writer| writer.close(1).unwrap()), "another run of the writer");
    assert!(!stale(&|writer| writer.sink_mut().extend([0; 4096])), "a hole");
    assert!(
        !stale(&|writer| writer.load(1, &load(0xff8, 1, b"over it", &code)).unwrap()),
        "its place was taken"
    );
}

#[test]
fn unwind_tables_go_to_the_next_load_alone() {
    let code = code(16);
    let mut writer = writer();
    writer.unwinding_info(1, &tables()).unwrap();
    writer.debug_info(1, 0x1000, []).unwrap();
    writer.load(2, &load(0x1000, 1, b"f", &code)).unwrap();
    writer.load(3, &load(0x2000, 2, b"g", &code)).unwrap();
    let by_the_book = UnwindingInfo { order: UnwindOrder::HeaderFirst, mapped_size: 0, ..tables() };
    writer.unwinding_info(4, &by_the_book).unwrap();
    writer.load(5, &load(0x3000, 3, b"h", &code)).unwrap();
    writer.unwinding_info(6, &tables()).unwrap();
    writer.sink_mut().extend([0; 100]);
    writer.load(7, &load(0x4000, 4, b"behind a hole", &code)).unwrap();
    let data = writer.into_sink();
    let dump = Dump::parse(&data).unwrap();
    let unwinds: Vec<_> = dump
        .codes()
        .filter_map(|event| match event {
            Ok(CodeEvent::Load(code)) => Some(code.unwind()),
            _ => None,
        })
        .collect();
    let [Some(f), None, Some(h), None] = unwinds[..] else { panic!("{unwinds:?}") };
    assert_eq!((f.eh_frame, f.eh_frame_hdr, f.mapped_size), (&EH_FRAME[..], &EH_FRAME_HDR[..], 48));
    assert_eq!((f.eh_frame_offset, f.eh_frame_hdr_offset), (0, 16));
    assert_eq!((h.eh_frame, h.eh_frame_hdr, h.mapped_size), (&EH_FRAME[..], &EH_FRAME_HDR[..], 0));
    assert_eq!((h.eh_frame_offset, h.eh_frame_hdr_offset), (20, 0));
}

#[test]
fn same_file_means_the_entry_before() {
    let code = code(64);
    let mut writer = writer();
    let entries =
        [entry(0x1000, 1, b"a"), same(0x1004, 2), entry(0x1008, 3, b"b"), same(0x100c, 4)];
    writer.debug_info(1, 0x1000, entries).unwrap();
    writer.load(2, &load(0x1000, 1, b"f", &code)).unwrap();
    writer.debug_info(3, 0x2000, [same(0x2000, 5)]).unwrap();
    writer.load(4, &load(0x2000, 2, b"none before", &code)).unwrap();
    let data = writer.into_sink();
    assert_eq!(
        lines_by_name(&data),
        [
            (
                &b"f"[..],
                vec![
                    line(0x1000, b"a", 1),
                    line(0x1004, b"a", 2),
                    line(0x1008, b"b", 3),
                    line(0x100c, b"b", 4)
                ]
            ),
            (b"none before", vec![line(0x2000, b"", 5)]),
        ]
    );
}

/// Lines of a code of 64 bytes at 0x1000 with these entries.
fn lines_of(entries: &[DebugEntry<'_>]) -> Vec<(u64, Vec<u8>, u32)> {
    let code = code(64);
    let mut writer = writer();
    writer.debug_info(1, 0x1000, entries.iter().copied()).unwrap();
    writer.load(2, &load(0x1000, 1, b"f", &code)).unwrap();
    let data = writer.into_sink();
    let dump = Dump::parse(&data).unwrap();
    loads(&dump)[0].lines().map(|line| (line.address, line.file.to_vec(), line.line)).collect()
}

#[test]
fn lines_lie_within_the_code() {
    let lines = lines_of(&[
        entry(0x0ff0, 1, b"before"),
        entry(0x0ff8, 2, b"last before"),
        entry(0x1010, 3, b"in"),
        entry(0x1040, 4, b"end"),
        entry(0x1050, 5, b"behind"),
        entry(0x1020, 6, b"late"),
    ]);
    assert_eq!(
        lines,
        [
            (0x1000, b"last before".to_vec(), 2),
            (0x1010, b"in".to_vec(), 3),
            (0x1020, b"late".to_vec(), 6)
        ]
    );
    let exact = lines_of(&[entry(0x0ff8, 2, b"before"), entry(0x1000, 3, b"start")]);
    assert_eq!(exact, [(0x1000, b"start".to_vec(), 3)]);
    assert_eq!(lines_of(&[entry(0x0ff8, 2, b"a")]), [(0x1000, b"a".to_vec(), 2)]);
    assert_eq!(lines_of(&[entry(0x1048, 2, b"a"), entry(u64::MAX, 2, b"a")]), []);
}

#[test]
fn entries_without_line_and_file_end_lines_or_say_nothing() {
    // qemu: nothing but such entries.
    assert_eq!(lines_of(&[entry(0x1000, 0, b""), entry(0x1010, 0, b"")]), []);
    // Erlang: before the code, and where it ends.
    let erlang = [
        entry(0x0fd0, 0, b""),
        entry(0x0ff0, 7, b"m.erl"),
        entry(0x1010, 8, b"m.erl"),
        entry(0x1040, 0, b""),
    ];
    assert_eq!(lines_of(&erlang), [(0x1000, b"m.erl".to_vec(), 7), (0x1010, b"m.erl".to_vec(), 8)]);
    // In the middle.
    let middle = [
        entry(0x1000, 7, b"m"),
        entry(0x1010, 0, b""),
        entry(0x1018, 0, b""),
        entry(0x1020, 8, b"m"),
    ];
    assert_eq!(
        lines_of(&middle),
        [(0x1000, b"m".to_vec(), 7), (0x1010, b"m".to_vec(), 0), (0x1020, b"m".to_vec(), 8)]
    );
}

/// A dump of `count` codes of 100 bytes whose entries are at the given distances from the code.
fn debugged(endian: Endian, count: u64, distances: &[i64]) -> Vec<u8> {
    let code = code(100);
    let mut writer = Writer::new(Vec::new(), &config(endian)).unwrap();
    for index in 0..count {
        let address = 0x7f00_0000_0000 + index * 0x100;
        let entries = distances
            .iter()
            .zip(1..)
            .map(|(distance, line)| entry(address.wrapping_add_signed(*distance), line, b"a.js"));
        writer.debug_info(index, address, entries).unwrap();
        writer.load(index, &load(address, index, b"f", &code)).unwrap();
    }
    writer.into_sink()
}

#[test]
fn debug_addresses_that_count_an_elf_header_are_told_and_mended() {
    for endian in [Endian::Little, Endian::Big] {
        for bias in [0x40, 0x34] {
            let data = debugged(endian, 20, &[bias, bias + 9, bias + 99]);
            assert_eq!(quirks(&data).debug_addr_bias, bias as u64);
            let dump = Dump::parse(&data).unwrap();
            for code in loads(&dump) {
                let offsets: Vec<u64> =
                    code.lines().map(|line| line.address - code.address).collect();
                assert_eq!(offsets, [0, 9, 99]);
            }
        }
    }
}

#[test]
fn a_few_codes_tell_the_bias_only_if_one_overruns() {
    assert_eq!(quirks(&debugged(Endian::Little, 1, &[0x40, 0x40 + 99])).debug_addr_bias, 0x40);
    assert_eq!(quirks(&debugged(Endian::Little, 1, &[0x40, 0x50])).debug_addr_bias, 0);
    assert_eq!(quirks(&debugged(Endian::Little, 7, &[0x40, 0x50])).debug_addr_bias, 0);
    assert_eq!(quirks(&debugged(Endian::Little, 8, &[0x40, 0x50])).debug_addr_bias, 0x40);
}

#[test]
fn addresses_without_bias_are_left_alone() {
    for distances in [
        &[0, 9, 99][..],
        // Past the end, as Erlang's.
        &[-0x30, 0x10, 0x64],
        // A prologue without lines.
        &[0x20, 0x50],
        &[0x44, 0x50],
        // Far away.
        &[0x10_0000],
        &[],
    ] {
        let data = debugged(Endian::Little, 50, distances);
        assert_eq!(quirks(&data).debug_addr_bias, 0, "{distances:?}");
    }
}

/// A DEBUG_INFO record written by hand, for names the writer refuses.
fn raw_debug_info(code_addr: u64, entries: &[(u64, u32, &[u8])], padding: usize) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(code_addr.to_le_bytes());
    body.extend((entries.len() as u64).to_le_bytes());
    for (addr, line, name) in entries {
        body.extend(addr.to_le_bytes());
        body.extend(line.to_le_bytes());
        body.extend(0_u32.to_le_bytes());
        body.extend(*name);
        body.push(0);
    }
    body.extend(vec![0; padding]);
    let mut record = Vec::new();
    record.extend(2_u32.to_le_bytes());
    record.extend((body.len() as u32 + 16).to_le_bytes());
    record.extend(5_u64.to_le_bytes());
    record.extend(body);
    record
}

#[test]
fn file_names_from_freed_memory_are_mended() {
    // The first 16 bytes as glibc leaves them in a freed block, and as node 18 and 20 write them.
    let whole = b"/srv/app/long/dir/work.js";
    let mut garbled = whole.to_vec();
    garbled[..16].copy_from_slice(b"\x79\xf1\x81\x02\x40\x56\0\0\xa1\xd9\xd8\x02\xc3\x5e\xbd\xd3");
    let code = code(64);
    let dump_of = |name: &[u8], entries: &[(u64, u32, &[u8])], padding| {
        let mut writer = writer();
        writer.sink_mut().extend(raw_debug_info(0x1000, entries, padding));
        writer.load(6, &load(0x1000, 1, name, &code)).unwrap();
        writer.into_sink()
    };
    let lines = |data: &[u8]| -> Vec<(u64, Vec<u8>, u32)> {
        let dump = Dump::parse(data).unwrap();
        loads(&dump)[0].lines().map(|l| (l.address, l.file.to_vec(), l.line)).collect()
    };
    let expected = |file: &[u8]| {
        vec![(0x1000, file.to_vec(), 4), (0x1010, file.to_vec(), 5), (0x1020, file.to_vec(), 6)]
    };
    let all: [(u64, u32, &[u8]); 3] =
        [(0x1000, 4, &garbled), (0x1010, 5, &garbled), (0x1020, 6, &garbled)];
    let once: [(u64, u32, &[u8]); 3] =
        [(0x1000, 4, &garbled), (0x1010, 5, b"\xff"), (0x1020, 6, b"\xff")];
    for entries in [all, once] {
        for padding in 0..8 {
            let data = dump_of(b"JS:^fib /srv/app/long/dir/work.js:4:13", &entries, padding);
            assert_eq!(lines(&data), expected(whole));
            let data = dump_of(b"Function:^fib /srv/app/long/dir/work.js:4", &entries, padding);
            assert_eq!(lines(&data), expected(whole));
            // Nothing to repair it from: the remaining part is used.
            let data = dump_of(b"fib", &entries, padding);
            assert_eq!(lines(&data), expected(&whole[16..]));
        }
    }
    // Entries that are far from the code from the start are not such a case.
    let data = dump_of(b"fib", &[(0x55_0000_1000, 4, b"a.js"), (0x1010, 5, b"b.js")], 0);
    assert_eq!(lines(&data), [(0x1010, b"b.js".to_vec(), 5)]);
}

/// node names the files of a script's functions from freed memory, which can be a tenth of a dump's codes.
#[test]
fn garbled_names_do_not_hide_a_bias() {
    let code = code(100);
    // What is read as the next address, from the eighth byte on, is below all code as a signed number.
    let garbled = *b"\x79\xf1\x81\x02\x40\x56\0\0\xa1\xd9\xd8\x02\xc3\x5e\xbd\xd3/work.js";
    for garbled_in in [2, 10] {
        let mut writer = writer();
        for index in 0..40 {
            let address = 0x7f00_0000_0000 + index * 0x100;
            let name = if index % garbled_in == 0 { &garbled[..] } else { b"a.js" };
            let entries = [0x40, 0x50, 0x60].map(|distance| (address + distance, 7, name));
            writer.sink_mut().extend(raw_debug_info(address, &entries, 0));
            writer.load(6, &load(address, index, b"f", &code)).unwrap();
        }
        assert_eq!(quirks(&writer.into_sink()).debug_addr_bias, 0x40, "one in {garbled_in}");
    }
}

#[test]
fn what_follows_the_last_entry_is_no_part_of_its_name() {
    let code = code(64);
    let mut writer = writer();
    let start = writer.sink().len();
    writer.debug_info(5, 0x1000, [entry(0x1000, 1, b"a.js")]).unwrap();
    writer.sink_mut().extend(b"extension");
    let size = (writer.sink().len() - start) as u32;
    writer.sink_mut()[start + 4..][..4].copy_from_slice(&size.to_le_bytes());
    writer.load(6, &load(0x1000, 1, b"f", &code)).unwrap();
    let data = writer.into_sink();
    assert_eq!(lines_by_name(&data), [(&b"f"[..], vec![line(0x1000, b"a.js", 1)])]);
}

#[test]
fn columns_are_kept() {
    let code = code(64);
    let mut writer = writer();
    let with_column =
        DebugEntry { addr: 0x1000, line: 3, discrim: 14, name: EntryName::Path(b"a") };
    writer.debug_info(1, 0x1000, [with_column]).unwrap();
    writer.load(2, &load(0x1000, 1, b"f", &code)).unwrap();
    let data = writer.into_sink();
    let expected = LineEntry { address: 0x1000, file: b"a", line: 3, column: 14 };
    assert_eq!(lines_by_name(&data), [(&b"f"[..], vec![expected])]);
}

#[test]
fn the_thumb_bit_is_cleared() {
    let code = code(64);
    let arm = WriterConfig { machine: 40, ..config(Endian::Little) };
    let mut writer = Writer::new(Vec::new(), &arm).unwrap();
    // With the Thumb bit in one record and not in the other.
    writer.debug_info(1, 0x1000, [entry(0x1001, 1, b"a"), entry(0x1010, 2, b"a")]).unwrap();
    writer.load(2, &load(0x1001, 1, b"f", &code)).unwrap();
    let moved = Move {
        pid: 1,
        tid: 1,
        vma: 0x2001,
        old_code_addr: 0x1001,
        new_code_addr: 0x2001,
        code_size: 64,
        code_index: 1,
    };
    writer.move_code(3, &moved).unwrap();
    let data = writer.into_sink();
    assert!(quirks(&data).thumb);
    let is_thumb = |event: &_| matches!(event, Ok(CodeEvent::Load(load)) if load.is_thumb);
    assert_eq!(Dump::parse(&data).unwrap().codes().filter(is_thumb).count(), 1);
    let lines = vec![line(0x1000, b"a", 1), line(0x1010, b"a", 2)];
    assert_eq!(lines_by_name(&data), [(&b"f"[..], lines)]);
    let dump = Dump::parse(&data).unwrap();
    assert_eq!(loads(&dump)[0].address, 0x1000);
    let Some(Ok(CodeEvent::Move(event))) = dump.codes().last() else { panic!() };
    assert_eq!((event.old_address, event.new_address), (0x1000, 0x2000));
    // On other machines, an odd address is a normal address.
    let mut writer = crate::made::writer();
    writer.load(2, &load(0x1001, 1, b"f", &code)).unwrap();
    let data = writer.into_sink();
    assert_eq!(loads(&Dump::parse(&data).unwrap())[0].address, 0x1001);
}

#[test]
fn the_address_is_code_addr_and_vma_only_without_it() {
    let code = code(8);
    let mut writer = writer();
    writer.load(1, &Load { vma: 0, ..load(0x1000, 1, b"LLVM 14", &code) }).unwrap();
    writer.load(1, &Load { code_addr: 0, ..load(0x2000, 2, b"odd", &code) }).unwrap();
    writer.load(1, &load(0x3000, 2, b"same index", &[])).unwrap();
    let data = writer.into_sink();
    let dump = Dump::parse(&data).unwrap();
    let found: Vec<_> =
        loads(&dump).iter().map(|code| (code.address, code.size, code.lines().count())).collect();
    assert_eq!(found, [(0x1000, 8, 0), (0x2000, 8, 0), (0x3000, 0, 0)]);
}

/// A dump with these timestamps in header and first record.
fn clocks(header: u64, flags: u64, record: u64) -> (HeaderClock, RecordClock) {
    let config = WriterConfig { timestamp: header, flags, ..config(Endian::Little) };
    let mut writer = Writer::new(Vec::new(), &config).unwrap();
    writer.unknown(1, 77, b"").unwrap();
    writer.load(record, &load(0x1000, 1, b"f", &code(8))).unwrap();
    let quirks = quirks(&writer.into_sink());
    (quirks.header_clock, quirks.record_clock)
}

#[test]
fn clocks_are_told_from_the_numbers() {
    let monotonic = RecordClock::Monotonic;
    // node 18, CPython 3.13
    let found = clocks(1_795_225_001_506_971, 0, 5_985_171_682_000);
    assert_eq!(found, (HeaderClock::WallMicroseconds, monotonic));
    // JavaScriptCore: the first code is older than the header.
    let found = clocks(4_249_012_082_000, 0, 4_249_011_087_000);
    assert_eq!(found, (HeaderClock::Records, monotonic));
    // 21 days of uptime, in microseconds the same as a wall clock's.
    let found = clocks(1_795_225_001_506_971, 0, 1_795_225_001_600_000);
    assert_eq!(found, (HeaderClock::Records, monotonic));
    // Opened long before the first code.
    let found = clocks(4_249_012_082_000, 0, 44_249_012_082_000);
    assert_eq!(found, (HeaderClock::Records, monotonic));
    let found = clocks(1_795_225_001_506_971_000, 0, 5_985_171_682_000);
    assert_eq!(found, (HeaderClock::WallNanoseconds, monotonic));
    let found = clocks(1_795_225_001, 0, 1_795_225_001_506_971_000);
    assert_eq!(found, (HeaderClock::Records, RecordClock::Realtime));
    let found = clocks(0, 0, 50_985_171_682_000);
    assert_eq!(found, (HeaderClock::Unknown, monotonic));
    let found = clocks(900, 1, 1000);
    assert_eq!(found, (HeaderClock::Records, RecordClock::Arch));
    // Flags that LLVM 19 left uninitialized.
    let found = clocks(900, 0x6172_6373_2d6d_0103, 1000);
    assert_eq!(found, (HeaderClock::Records, monotonic));
    let empty = quirks(&writer().into_sink());
    assert_eq!(empty.header_clock, HeaderClock::NoRecords);
}

#[test]
fn code_of_aarch64_is_known_under_the_wrong_machine() {
    let function =
        [0xa9bf_7bfd_u32, 0x9100_03fd, 0xd503_201f, 0xa8c1_7bfd, 0xd65f_03c0].map(u32::to_le_bytes);
    let function = function.concat();
    let dump_of = |machine, code: &[u8]| {
        let config = WriterConfig { machine, ..config(Endian::Little) };
        let mut writer = Writer::new(Vec::new(), &config).unwrap();
        for index in 0..10 {
            writer.load(1, &load(0x1000 + index * 0x40, index, b"f", code)).unwrap();
        }
        quirks(&writer.into_sink()).machine
    };
    assert_eq!(dump_of(62, &function), 183);
    assert_eq!(dump_of(183, &function), 183);
    assert_eq!(dump_of(22, &function), 22);
    // x86-64: push rbp; mov rbp, rsp; nops; pop rbp; ret
    let other = b"\x55\x48\x89\xe5\x0f\x1f\x80\0\0\0\0\x0f\x1f\x40\0\x66\x90\x5d\xc3\xcc";
    assert_eq!(dump_of(62, other), 62);
    assert_eq!(dump_of(62, &[0; 20]), 62);
}

#[test]
fn a_code_is_read_again_at_its_place() {
    let code = code(64);
    let mut writer = Writer::new(Vec::new(), &config(Endian::Little)).unwrap();
    writer.debug_info(1, 0x1000, [entry(0x1000, 1, b"a"), entry(0x1010, 2, b"a")]).unwrap();
    writer.load(2, &load(0x1000, 1, b"f", &code)).unwrap();
    writer.load(3, &load(0x2000, 2, b"g", &code)).unwrap();
    let data = writer.into_sink();
    let dump = Dump::parse(&data).unwrap();
    let codes = dump.codes();
    let quirks = *codes.quirks();
    let mut names = Vec::new();
    for event in codes {
        let Ok(CodeEvent::Load(first)) = event else { panic!("a load") };
        let again = dump.code_at(&first.place(), &quirks).expect("the same records");
        assert_eq!(
            (again.address, again.name, again.bytes),
            (first.address, first.name, first.bytes)
        );
        assert!(again.lines().eq(first.lines()));
        assert_eq!(again.unwind(), first.unwind());
        assert_eq!(again.place(), first.place());
        names.push((first.name, first.lines().count()));
    }
    assert_eq!(names, [(&b"f"[..], 2), (b"g", 0)]);
    let other = Writer::new(Vec::new(), &config(Endian::Little)).unwrap().into_sink();
    let Some(Ok(CodeEvent::Load(load))) = dump.codes().next() else { panic!("a load") };
    assert!(Dump::parse(&other).unwrap().code_at(&load.place(), &quirks).is_none());
}
