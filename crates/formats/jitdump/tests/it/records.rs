//! The raw level: records, cuts, holes and damage.

use crate::made::{EH_FRAME, EH_FRAME_HDR, code, entry, load, same, tables, writer, writer_for};
use jitdump::{
    Body, Dump, End, Endian, EntryName, Error, ErrorKind, HEADER_SIZE, Header, Move, Record,
    RecordId, UnwindOrder, UnwindingInfo,
};

fn all<'a>(data: &'a [u8]) -> (Vec<Result<Record<'a>, Error>>, End) {
    let mut records = Dump::parse(data).unwrap().records();
    let found = records.by_ref().collect();
    (found, records.end().unwrap())
}

fn whole(data: &[u8]) -> Vec<Record<'_>> {
    let (records, end) = all(data);
    assert_eq!(end, End::Complete { offset: data.len() as u64 });
    records.into_iter().map(Result::unwrap).collect()
}

/// One record of each type, and the offsets where they begin, with the end.
fn one_of_each(endian: Endian) -> (Vec<u8>, Vec<usize>) {
    let mut writer = writer_for(endian);
    let code = code(40);
    let mut offsets = vec![writer.sink().len()];
    writer.unwinding_info(10, &tables()).unwrap();
    offsets.push(writer.sink().len());
    writer.debug_info(11, 0x1000, [entry(0x1000, 1, b"a.c"), same(0x1010, 2)]).unwrap();
    offsets.push(writer.sink().len());
    writer.load(12, &load(0x1000, 1, b"fib", &code)).unwrap();
    offsets.push(writer.sink().len());
    let moved = Move {
        pid: 1,
        tid: 2,
        vma: 3,
        old_code_addr: 0x1000,
        new_code_addr: 0x2000,
        code_size: 40,
        code_index: 1,
    };
    writer.move_code(13, &moved).unwrap();
    offsets.push(writer.sink().len());
    writer.unknown(14, 0x5343, b"extension").unwrap();
    offsets.push(writer.sink().len());
    writer.close(15).unwrap();
    offsets.push(writer.sink().len());
    (writer.into_sink(), offsets)
}

#[test]
fn the_magic_number_tells_the_byte_order() {
    let little = writer_for(Endian::Little).into_sink();
    let big = writer_for(Endian::Big).into_sink();
    assert_eq!(&little[..8], b"DTiJ\x01\0\0\0");
    assert_eq!(&big[..8], b"JiTD\0\0\0\x01");
    for (data, endian) in [(little, Endian::Little), (big, Endian::Big)] {
        assert_eq!(
            Header::parse(&data).unwrap(),
            Header {
                endian,
                version: 1,
                total_size: 40,
                elf_mach: 62,
                pad1: 0,
                pid: 700,
                timestamp: 1_000_000,
                flags: 0
            }
        );
    }
}

#[test]
fn every_record_is_read_in_both_byte_orders() {
    for endian in [Endian::Little, Endian::Big] {
        let (data, offsets) = one_of_each(endian);
        let records = whole(&data);
        let ids: Vec<u32> = records.iter().map(|record| record.body.id().0).collect();
        assert_eq!(ids, [4, 2, 0, 1, 0x5343, 3]);
        let starts: Vec<usize> = records.iter().map(|record| record.offset as usize).collect();
        assert_eq!(starts, offsets[..6]);
        let times: Vec<u64> = records.iter().map(|record| record.timestamp).collect();
        assert_eq!(times, [10, 11, 12, 13, 14, 15]);

        assert_eq!(records[0].body, Body::UnwindingInfo(tables()));
        let Body::DebugInfo(info) = records[1].body else { panic!("{:?}", records[1]) };
        assert_eq!((info.code_addr, info.nr_entry), (0x1000, 2));
        let entries: Vec<_> = info.entries().map(Result::unwrap).collect();
        assert_eq!(entries, [entry(0x1000, 1, b"a.c"), same(0x1010, 2)]);
        assert_eq!(records[2].body, Body::Load(load(0x1000, 1, b"fib", &code(40))));
        let Body::Move(moved) = records[3].body else { panic!("{:?}", records[3]) };
        assert_eq!((moved.old_code_addr, moved.new_code_addr), (0x1000, 0x2000));
        assert_eq!((moved.pid, moved.tid, moved.vma), (1, 2, 3));
        assert_eq!(records[4].body, Body::Unknown { id: 0x5343, bytes: b"extension" });
        assert_eq!(records[5].body, Body::Close);
    }
}

#[test]
fn a_dump_cut_anywhere_yields_its_whole_records() {
    for endian in [Endian::Little, Endian::Big] {
        let (data, offsets) = one_of_each(endian);
        let full = whole(&data);
        for cut in 0..data.len() {
            if cut < HEADER_SIZE as usize {
                let error = Dump::parse(&data[..cut]).unwrap_err();
                assert_eq!(error.kind, ErrorKind::HeaderCutOff { len: cut as u64 });
                continue;
            }
            let (records, end) = all(&data[..cut]);
            let records: Vec<_> = records.into_iter().map(Result::unwrap).collect();
            let count = offsets[1..].iter().filter(|offset| **offset <= cut).count();
            assert_eq!(records, full[..count], "cut at {cut}");
            let start = offsets[count] as u64;
            let expected = if start == cut as u64 {
                End::Complete { offset: start }
            } else if cut as u64 - start < 16 {
                End::CutOff { offset: start, missing: None }
            } else {
                let missing = Some(offsets[count + 1] as u64 - cut as u64);
                End::CutOff { offset: start, missing }
            };
            assert_eq!(end, expected, "cut at {cut}");
        }
    }
}

#[test]
fn reading_goes_on_where_a_growing_dump_was_cut_off() {
    let (data, offsets) = one_of_each(Endian::Little);
    let (_, end) = all(&data[..offsets[3] + 20]);
    let End::CutOff { offset, .. } = end else { panic!("{end:?}") };
    let rest: Vec<_> =
        Dump::parse(&data).unwrap().records_from(offset).map(Result::unwrap).collect();
    assert_eq!(rest, whole(&data)[3..]);
}

#[test]
fn a_larger_header_is_skipped() {
    let (mut data, _) = one_of_each(Endian::Little);
    data[8] = 48;
    data.splice(40..40, [0xee; 8]);
    assert_eq!(whole(&data).len(), 6);
}

#[test]
fn a_header_that_was_never_sized_has_forty_bytes() {
    let (mut data, _) = one_of_each(Endian::Little);
    data[8] = 0;
    assert_eq!(whole(&data).len(), 6);
}

#[test]
fn a_header_larger_than_the_file_leaves_no_records() {
    let mut data = writer().into_sink();
    data[8] = 200;
    assert_eq!(all(&data), (vec![], End::CutOff { offset: 200, missing: None }));
}

#[test]
fn a_version_not_known_is_refused() {
    let mut data = writer().into_sink();
    data[4] = 2;
    let kind = Dump::parse(&data).unwrap_err().kind;
    assert_eq!(kind, ErrorKind::UnknownVersion { version: 2 });
    let kind = Dump::parse(&[b'x'; 64]).unwrap_err().kind;
    assert_eq!(kind, ErrorKind::BadMagic { found: *b"xxxx" });
}

#[test]
fn code_follows_the_name_and_padding_the_code() {
    let code = code(5);
    let mut padded = load(0x1000, 0, b"f", &code);
    padded.padding = &[7; 11];
    let mut writer = writer();
    writer.load(1, &padded).unwrap();
    let data = writer.into_sink();
    assert_eq!(whole(&data)[0].body, Body::Load(padded));
    assert_eq!(data.len(), 40 + 56 + 2 + 5 + 11);
}

#[test]
fn unwinding_data_is_told_apart_by_content() {
    let mut writer = writer();
    let by_the_book = UnwindingInfo { order: UnwindOrder::HeaderFirst, ..tables() };
    let header_only = UnwindingInfo { eh_frame: &[], mapped_size: 0, ..tables() };
    let frame_only = UnwindingInfo { eh_frame_hdr: &[], ..tables() };
    writer.unwinding_info(1, &tables()).unwrap();
    writer.unwinding_info(1, &by_the_book).unwrap();
    writer.unwinding_info(1, &header_only).unwrap();
    writer.unwinding_info(1, &frame_only).unwrap();
    let data = writer.into_sink();
    let found: Vec<_> = whole(&data)
        .iter()
        .map(|record| match record.body {
            Body::UnwindingInfo(info) => {
                (info.eh_frame, info.eh_frame_hdr, info.eh_frame_offset(), info.mapped_size)
            }
            _ => panic!("{record:?}"),
        })
        .collect();
    assert_eq!(
        found,
        [
            (&EH_FRAME[..], &EH_FRAME_HDR[..], 0, 48),
            (&EH_FRAME[..], &EH_FRAME_HDR[..], 20, 48),
            (&[][..], &EH_FRAME_HDR[..], 0, 0),
            (&EH_FRAME[..], &[][..], 0, 48),
        ]
    );
}

#[test]
fn an_entry_beyond_the_record_ends_the_entries() {
    let mut writer = writer();
    writer.debug_info(1, 0x1000, [entry(0x1000, 1, b"a.c"), entry(0x1004, 2, b"b.c")]).unwrap();
    writer.close(2).unwrap();
    let mut data = writer.into_sink();
    data[40 + 24..][..8].copy_from_slice(&(1_u64 << 33).to_le_bytes());
    let records = whole(&data);
    let Body::DebugInfo(info) = records[0].body else { panic!("{:?}", records[0]) };
    let entries: Vec<_> = info.entries().collect();
    assert_eq!(entries.len(), 3);
    assert_eq!(entries[1].unwrap().name, EntryName::Path(b"b.c"));
    let error = entries[2].unwrap_err();
    assert_eq!(error.offset, 32 + 2 * 20);
    assert_eq!(error.kind, ErrorKind::EntryCutOff { index: 2, nr_entry: 1 << 33 });
}

/// Three codes; `damage` may change the middle one in any way.
fn three_codes(damage: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let code = code(300);
    let mut middle = Vec::new();
    let mut writer = writer();
    writer.load(5_000, &load(0x1000, 1, b"before", &code)).unwrap();
    let start = writer.sink().len();
    writer.load(6_000, &load(0x2000, 2, b"middle", &code)).unwrap();
    middle.extend(writer.sink_mut().drain(start..));
    damage(&mut middle);
    writer.sink_mut().extend(middle);
    writer.load(7_000, &load(0x3000, 3, b"after", &code)).unwrap();
    writer.close(8_000).unwrap();
    writer.into_sink()
}

fn names(data: &[u8]) -> Vec<Result<&[u8], ErrorKind>> {
    all(data)
        .0
        .into_iter()
        .filter_map(|record| match record {
            Ok(Record { body: Body::Load(load), .. }) => Some(Ok(load.name)),
            Ok(_) => None,
            Err(error) => Some(Err(error.kind)),
        })
        .collect()
}

#[test]
fn a_hole_of_zeros_is_one_error_and_what_follows_is_read() {
    for size in [16, 17, 64, 4096, 100_000] {
        let data = three_codes(|middle| *middle = vec![0; size]);
        let gap = ErrorKind::Gap { len: size as u64, zeros: true };
        assert_eq!(names(&data), [Ok(&b"before"[..]), Err(gap), Ok(b"after")], "{size}");
        let (_, end) = all(&data);
        assert_eq!(end, End::Complete { offset: data.len() as u64 });
    }
}

#[test]
fn a_hole_in_a_record_costs_that_record() {
    // The page with its header was lost, but not the page with its end.
    let data = three_codes(|middle| middle[..200].fill(0));
    let len = 56 + 7 + 300;
    let gap = ErrorKind::Gap { len, zeros: true };
    assert_eq!(names(&data), [Ok(&b"before"[..]), Err(gap), Ok(b"after")]);
}

#[test]
fn half_a_record_costs_that_record() {
    // Its length includes the record behind it.
    for size in [16, 17, 56, 100, 362] {
        let data = three_codes(|middle| middle.truncate(size));
        let gap = ErrorKind::Gap { len: size as u64, zeros: false };
        assert_eq!(names(&data), [Ok(&b"before"[..]), Err(gap), Ok(b"after")], "{size}");
    }
}

#[test]
fn garbage_is_one_error_and_what_follows_is_read() {
    for garbage in [&[0xff; 100][..], &[0x5a; 3], b"\x02\0\0\0\x08\0\0\0 eight bytes in all "] {
        let data = three_codes(|middle| *middle = garbage.to_vec());
        let gap = ErrorKind::Gap { len: garbage.len() as u64, zeros: false };
        assert_eq!(names(&data), [Ok(&b"before"[..]), Err(gap), Ok(b"after")]);
    }
}

#[test]
fn a_bad_body_with_a_good_length_costs_only_itself() {
    let too_large = three_codes(|middle| middle[40..48].copy_from_slice(&[9; 8]));
    let kind = ErrorKind::CodeTooLarge { code_size: 0x0909_0909_0909_0909, available: 300 };
    assert_eq!(names(&too_large), [Ok(&b"before"[..]), Err(kind), Ok(b"after")]);

    let no_nul = three_codes(|middle| middle[56..].fill(b'n'));
    let kind = ErrorKind::NameNotTerminated;
    assert_eq!(names(&no_nul), [Ok(&b"before"[..]), Err(kind), Ok(b"after")]);

    let too_small = three_codes(|middle| {
        middle.truncate(50);
        middle[4] = 50;
        middle[5] = 0;
    });
    let kind = ErrorKind::RecordTooSmall { id: RecordId::LOAD, total_size: 50 };
    assert_eq!(names(&too_small), [Ok(&b"before"[..]), Err(kind), Ok(b"after")]);
}

#[test]
fn a_length_beyond_the_file_is_no_cut_if_records_follow() {
    let data = three_codes(|middle| middle[4..8].copy_from_slice(&[0xff, 0xff, 0xff, 0]));
    let gap = ErrorKind::Gap { len: 363, zeros: false };
    assert_eq!(names(&data), [Ok(&b"before"[..]), Err(gap), Ok(b"after")]);
}

#[test]
fn zeros_to_the_end_are_room_and_no_damage() {
    let (mut data, _) = one_of_each(Endian::Little);
    let offset = data.len() as u64;
    data.extend([0; 5000]);
    let (records, end) = all(&data);
    assert!(records.iter().all(Result::is_ok));
    assert_eq!((records.len(), end), (6, End::Zeros { offset }));
}

#[test]
fn garbage_to_the_end_is_damage() {
    let (mut data, _) = one_of_each(Endian::Little);
    let offset = data.len() as u64;
    data.extend([0xa5; 500]);
    let (records, end) = all(&data);
    let error = Error { offset, kind: ErrorKind::Gap { len: 500, zeros: false } };
    assert_eq!(records.last(), Some(&Err(error)));
    assert_eq!((records.len(), end), (7, End::Damaged { offset }));
}

#[test]
fn hostile_dumps_take_linear_time() {
    // Each of these made every byte a candidate for a record; a quadratic search would take hours.
    let len = 8 << 20;
    for pattern in [&[0u8][..], &[1], &[0, 0, 0, 0, 57, 0, 0, 0], &[2, 0, 0, 0, 32, 0, 0], &[4; 16]]
    {
        let mut data = writer().into_sink();
        data.extend(pattern.iter().cycle().take(len));
        data.push(9);
        let started = std::time::Instant::now();
        let count = Dump::parse(&data).unwrap().codes().count();
        assert!(started.elapsed().as_secs() < 20, "{pattern:?}: {count}");
    }
}

#[test]
fn fields_of_a_cut_off_record_are_not_taken_for_records() {
    // In a big-endian LOAD, the halves of code_size and code_index look like the header of another LOAD whose
    // timestamp is the index, and code of zeros contradicts nothing.
    let mut writer = writer_for(Endian::Big);
    let code = [0; 400];
    let time = 5_655_989_894_209;
    for index in 200..206 {
        writer.load(time + index, &load(0x7f40_7c12_ebe0, index, b"fib", &code)).unwrap();
    }
    let data = writer.into_sink();
    let size = 56 + 4 + 400;
    for cut in 40..data.len() {
        let (records, end) = all(&data[..cut]);
        assert_eq!(records.len(), (cut - 40) / size, "cut at {cut}");
        assert!(records.iter().all(Result::is_ok), "cut at {cut}");
        let start = (cut - (cut - 40) % size) as u64;
        let (End::CutOff { offset, .. } | End::Complete { offset }) = end else {
            panic!("{end:?}")
        };
        assert_eq!(offset, start, "cut at {cut}");
    }
}
