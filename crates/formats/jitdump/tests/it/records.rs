//! The raw level: records, cuts, holes and damage.

use crate::made::{code, entry, load, same, tables, writer, writer_for};
use jitdump::{
    Body, Dump, End, Endian, EntryName, Error, ErrorKind, HEADER_SIZE, Header, Move, Record,
    RecordId,
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
        assert_eq!(Header::parse(&data).unwrap().endian, endian);
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
fn a_header_larger_than_the_file_leaves_no_records() {
    let mut data = writer().into_sink();
    data[8] = 200;
    assert_eq!(all(&data), (vec![], End::CutOff { offset: 200, missing: None }));
}

#[test]
fn refusals_name_their_cause() {
    let data = writer().into_sink();
    let refused = |data: &[u8]| Dump::parse(data).unwrap_err().kind;
    assert_eq!(refused(&[b'x'; 64]), ErrorKind::BadMagic { found: *b"xxxx" });
    let other = [&data[..4], &[2], &data[5..]].concat();
    assert_eq!(refused(&other), ErrorKind::UnknownVersion { version: 2 });
    for cut in 0..HEADER_SIZE as usize {
        assert_eq!(refused(&data[..cut]), ErrorKind::HeaderCutOff { len: cut as u64 });
    }
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
fn a_damaged_record_is_one_error_and_what_follows_is_read() {
    let gap = |len: usize, zeros| ErrorKind::Gap { len: len as u64, zeros };
    let size = 56 + 7 + 300;
    let mut cases: Vec<(String, Vec<u8>, ErrorKind)> = Vec::new();
    let mut case = |what: &str, data, error| cases.push((what.to_owned(), data, error));
    for size in [16, 17, 64, 4096, 100_000] {
        case("a hole", three_codes(|middle| *middle = vec![0; size]), gap(size, true));
    }
    // The page with its header was lost, but not the page with its end.
    case("a hole in it", three_codes(|middle| middle[..200].fill(0)), gap(size, true));
    // Its length includes the record behind it.
    for size in [16, 17, 56, 100, 362] {
        case("half of it", three_codes(|middle| middle.truncate(size)), gap(size, false));
    }
    for garbage in [&[0xff; 100][..], &[0x5a; 3], b"\x02\0\0\0\x08\0\0\0 eight bytes in all "] {
        let data = three_codes(|middle| *middle = garbage.to_vec());
        case("garbage", data, gap(garbage.len(), false));
    }
    let beyond = three_codes(|middle| middle[4..8].copy_from_slice(&[0xff, 0xff, 0xff, 0]));
    case("a length beyond the file", beyond, gap(size, false));
    case(
        "more code than available",
        three_codes(|middle| middle[40..48].copy_from_slice(&[9; 8])),
        ErrorKind::CodeTooLarge { code_size: 0x0909_0909_0909_0909, available: 300 },
    );
    let no_nul = three_codes(|middle| middle[56..].fill(b'n'));
    case("a name without an end", no_nul, ErrorKind::NameNotTerminated);
    case(
        "a record without its fields",
        three_codes(|middle| {
            middle.truncate(50);
            middle[4..6].copy_from_slice(&[50, 0]);
        }),
        ErrorKind::RecordTooSmall { id: RecordId::LOAD, total_size: 50 },
    );
    for (what, data, error) in cases {
        assert_eq!(names(&data), [Ok(&b"before"[..]), Err(error), Ok(b"after")], "{what}");
        assert_eq!(all(&data).1, End::Complete { offset: data.len() as u64 }, "{what}");
    }
}

#[test]
fn zeros_to_the_end_are_unused_space_and_garbage_is_damage() {
    let (data, _) = one_of_each(Endian::Little);
    let offset = data.len() as u64;
    let unused = [&data[..], &[0; 5000]].concat();
    let (records, end) = all(&unused);
    assert!(records.iter().all(Result::is_ok));
    assert_eq!((records.len(), end), (6, End::Zeros { offset }));

    let damaged = [&data[..], &[0xa5; 500]].concat();
    let (records, end) = all(&damaged);
    let error = Error { offset, kind: ErrorKind::Gap { len: 500, zeros: false } };
    assert_eq!(records.last(), Some(&Err(error)));
    assert_eq!((records.len(), end), (7, End::Damaged { offset }));
}

/// For how long this thread ran, which does not depend on how busy the machine is. Only Linux tells.
fn seconds() -> u64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = times.split(' ').next().and_then(|time| time.parse::<u64>().ok());
    nanoseconds.unwrap_or(0) / 1_000_000_000
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
        let before = seconds();
        let count = Dump::parse(&data).unwrap().codes().count();
        assert!(seconds() - before < 20, "{pattern:?}: {count}");
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
