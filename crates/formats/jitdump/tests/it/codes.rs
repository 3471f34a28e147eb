//! The unified level: what belongs together, and the quirks of known writers.
//!
//! The conformance files ask most of it, of this reader and of others: here is what they do not ask.

use crate::made::{
    code, config, entry, line, lines_by_name, load, loads, only, tables, writer, writer_for,
};
use jitdump::{
    CodeEvent, Dump, Endian, HeaderClock, Load, Move, Quirks, RecordClock, UnwindOrder,
    UnwindingInfo, Writer, WriterConfig,
};

fn quirks(data: &[u8]) -> Quirks {
    Quirks::detect(&Dump::parse(data).unwrap())
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
fn debug_info_far_before_its_load_is_stale() {
    let code = code(16);
    for (between, is_used) in [(0, true), (200, true), (300, false)] {
        let mut writer = writer();
        writer.load(1, &load(0x9000, 1, b"first", &code)).unwrap();
        writer.debug_info(1, 0x1000, [entry(0x1000, 1, b"a")]).unwrap();
        for at in 0..between {
            writer.load(2, &load(0x10_0000 + at * 16, at, b"other", &code)).unwrap();
        }
        writer.load(2, &load(0x1000, 1, b"f", &code)).unwrap();
        let data = writer.into_sink();
        let last = *loads(&Dump::parse(&data).unwrap()).last().unwrap();
        assert_eq!((last.name, last.has_debug_info()), (&b"f"[..], is_used), "{between} codes");
    }
}

#[test]
fn unwind_tables_do_not_cross_a_hole_and_have_offsets() {
    let code = code(16);
    let mut writer = writer();
    writer.unwinding_info(1, &tables()).unwrap();
    writer.debug_info(1, 0x1000, []).unwrap();
    writer.load(2, &load(0x1000, 1, b"f", &code)).unwrap();
    let by_the_book = UnwindingInfo { order: UnwindOrder::HeaderFirst, ..tables() };
    writer.unwinding_info(4, &by_the_book).unwrap();
    writer.load(5, &load(0x3000, 3, b"h", &code)).unwrap();
    writer.unwinding_info(6, &tables()).unwrap();
    writer.sink_mut().extend([0; 100]);
    writer.load(7, &load(0x4000, 4, b"behind a hole", &code)).unwrap();
    let data = writer.into_sink();
    let codes = Dump::parse(&data).unwrap().codes();
    let offsets = codes.filter_map(|event| match event {
        Ok(CodeEvent::Load(code)) => {
            Some(code.unwind().map(|it| (it.eh_frame_offset, it.eh_frame_hdr_offset)))
        }
        _ => None,
    });
    assert_eq!(offsets.collect::<Vec<_>>(), [Some((0, 16)), Some((20, 0)), None]);
}

/// Address, file and line.
type Lines = Vec<(u64, Vec<u8>, u32)>;

/// Lines of the only code.
fn lines(data: &[u8]) -> Lines {
    only(data).lines().map(|line| (line.address, line.file.to_vec(), line.line)).collect()
}

/// What `conformance/src/cases/debug_info.rs` does not ask.
#[test]
fn lines_lie_within_the_code() {
    type Entries = &'static [(u64, u32, &'static [u8])];
    let cases: [(&str, Entries, Entries); 6] = [
        (
            "the last before the code, and one that comes late",
            &[
                (0x0ff0, 1, b"before"),
                (0x0ff8, 2, b"last before"),
                (0x1010, 3, b"in"),
                (0x1040, 4, b"end"),
                (0x1050, 5, b"behind"),
                (0x1020, 6, b"late"),
            ],
            &[(0x1000, 2, b"last before"), (0x1010, 3, b"in"), (0x1020, 6, b"late")],
        ),
        ("one at the start", &[(0x0ff8, 2, b"before"), (0x1000, 3, b"a")], &[(0x1000, 3, b"a")]),
        ("none but one before", &[(0x0ff8, 2, b"a")], &[(0x1000, 2, b"a")]),
        ("none within", &[(0x1048, 2, b"a"), (u64::MAX, 2, b"a")], &[]),
        (
            "Erlang: no line before the code, and where it ends",
            &[(0x0fd0, 0, b""), (0x0ff0, 7, b"m.erl"), (0x1010, 8, b"m.erl"), (0x1040, 0, b"")],
            &[(0x1000, 7, b"m.erl"), (0x1010, 8, b"m.erl")],
        ),
        (
            "no line, twice in the middle",
            &[(0x1000, 7, b"m"), (0x1010, 0, b""), (0x1018, 0, b""), (0x1020, 8, b"m")],
            &[(0x1000, 7, b"m"), (0x1010, 0, b"m"), (0x1020, 8, b"m")],
        ),
    ];
    let code = code(64);
    for (what, entries, expected) in cases {
        let mut writer = writer();
        let entries = entries.iter().map(|(at, line, file)| entry(*at, *line, file));
        writer.debug_info(1, 0x1000, entries).unwrap();
        writer.load(2, &load(0x1000, 1, b"f", &code)).unwrap();
        let expected: Lines =
            expected.iter().map(|(at, line, file)| (*at, file.to_vec(), *line)).collect();
        assert_eq!(lines(writer.sink()), expected, "{what}");
    }
}

/// A dump of `count` codes of 100 bytes whose entries are at the given distances from the code.
fn debugged(endian: Endian, count: u64, distances: &[i64]) -> Vec<u8> {
    let code = code(100);
    let mut writer = writer_for(endian);
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
fn a_bias_is_detected_from_enough_codes() {
    for (what, count, distances, bias) in [
        ("V8, and code that begins with a line", 20, &[0x40, 0x40 + 9, 0x40 + 99][..], 0x40),
        ("V8 on 32-bit machines", 20, &[0x34, 0x34 + 9, 0x34 + 99], 0x34),
        ("one code, overrun", 1, &[0x40, 0x40 + 99], 0x40),
        ("one code, which may begin without a line", 1, &[0x40, 0x50], 0),
        ("too few such codes", 7, &[0x40, 0x50], 0),
        ("enough of them", 8, &[0x40, 0x50], 0x40),
        ("no bias", 50, &[0, 9, 99], 0),
        ("past the end, as Erlang's", 50, &[-0x30, 0x10, 0x64], 0),
        ("a prologue without lines", 50, &[0x20, 0x50], 0),
        ("a longer one", 50, &[0x44, 0x50], 0),
        ("far away", 50, &[0x10_0000], 0),
        ("no entries", 50, &[], 0),
    ] {
        for endian in [Endian::Little, Endian::Big] {
            let data = debugged(endian, count, distances);
            assert_eq!(quirks(&data).debug_addr_bias, bias, "{what}");
            for code in loads(&Dump::parse(&data).unwrap()).iter().filter(|_| bias > 0) {
                let found = code.lines().map(|line| (line.address - code.address + bias) as i64);
                assert_eq!(found.collect::<Vec<_>>(), distances, "{what}");
            }
        }
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
    let expected = |file: &[u8]| {
        vec![(0x1000, file.to_vec(), 4), (0x1010, file.to_vec(), 5), (0x1020, file.to_vec(), 6)]
    };
    let all: [(u64, u32, &[u8]); 3] =
        [(0x1000, 4, &garbled), (0x1010, 5, &garbled), (0x1020, 6, &garbled)];
    let once: [(u64, u32, &[u8]); 3] =
        [(0x1000, 4, &garbled), (0x1010, 5, b"\xff"), (0x1020, 6, b"\xff")];
    for (name, file) in [
        (&b"JS:^fib /srv/app/long/dir/work.js:4:13"[..], &whole[..]),
        (b"Function:^fib /srv/app/long/dir/work.js:4", whole),
        // Nothing to repair it from: the remaining part is used.
        (b"fib", &whole[16..]),
    ] {
        for (entries, padding) in [all, once].iter().flat_map(|it| (0..8).map(move |n| (it, n))) {
            assert_eq!(lines(&dump_of(name, entries, padding)), expected(file), "{padding}");
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
    let last = Dump::parse(&data).unwrap().codes().last();
    let Some(Ok(CodeEvent::Move(event))) = last else { panic!("{last:?}") };
    assert_eq!((event.old_address, event.new_address), (0x1000, 0x2000));
    // On other machines, an odd address is a normal address.
    let mut writer = crate::made::writer();
    writer.load(2, &load(0x1001, 1, b"f", &code)).unwrap();
    assert_eq!(only(writer.sink()).address, 0x1001);
}

#[test]
fn the_address_is_vma_only_without_code_addr() {
    let code = code(8);
    let mut writer = writer();
    writer.load(1, &Load { code_addr: 0, ..load(0x2000, 2, b"odd", &code) }).unwrap();
    let read = only(writer.sink());
    assert_eq!((read.address, read.size), (0x2000, 8));
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
    use HeaderClock::{Records, Unknown, WallMicroseconds, WallNanoseconds};
    use RecordClock::{Arch, Monotonic, Realtime};
    let wall = 1_795_225_001_506_971;
    for (what, header, flags, record, expected) in [
        ("node 18, CPython 3.13", wall, 0, 5_985_171_682_000, (WallMicroseconds, Monotonic)),
        // The first code is older than the header.
        ("JavaScriptCore", 4_249_012_082_000, 0, 4_249_011_087_000, (Records, Monotonic)),
        // In microseconds the same as a wall clock's.
        ("21 days of uptime", wall, 0, 1_795_225_001_600_000, (Records, Monotonic)),
        // Long before the first code.
        ("opened early", 4_249_012_082_000, 0, 44_249_012_082_000, (Records, Monotonic)),
        ("nanoseconds", wall * 1000, 0, 5_985_171_682_000, (WallNanoseconds, Monotonic)),
        ("seconds", 1_795_225_001, 0, wall * 1000, (Records, Realtime)),
        ("zero", 0, 0, 50_985_171_682_000, (Unknown, Monotonic)),
        ("the processor's", 900, 1, 1000, (Records, Arch)),
        ("LLVM 19: uninitialized flags", 900, 0x6172_6373_2d6d_0103, 1000, (Records, Monotonic)),
    ] {
        assert_eq!(clocks(header, flags, record), expected, "{what}");
    }
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
    for (machine, expected) in [(62, 183), (183, 183), (22, 22)] {
        assert_eq!(dump_of(machine, &function), expected);
    }
    // x86-64: push rbp; mov rbp, rsp; nops; pop rbp; ret
    let other = b"\x55\x48\x89\xe5\x0f\x1f\x80\0\0\0\0\x0f\x1f\x40\0\x66\x90\x5d\xc3\xcc";
    assert_eq!(dump_of(62, other), 62);
    assert_eq!(dump_of(62, &[0; 20]), 62);
}
