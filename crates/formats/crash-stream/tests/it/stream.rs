//! What is written is read again, and no bytes make a reader panic.

use jitdump::extension::{code, log, tag, tail};
use jitdump::{CodeEvent, Dump, RecordId};
use jitscribe_crash_stream::layout::{HEADER_SIZE, MOST_CODE_BYTES, STREAM_TYPE};
use jitscribe_crash_stream::{
    CrashStream, Error, append, encode, find_stream, stack_words, with_code_modules,
};
use proptest::prelude::*;

/// A code of a snapshot without bytes.
#[derive(Clone, Debug)]
struct Code {
    address: u64,
    size: u64,
    name: String,
    died: u64,
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

/// The snapshot of a code log, as `docs/format.md` specifies it.
fn snapshot(codes: &[Code]) -> Vec<u8> {
    let mut bytes = vec![0; log::FIRST_CHUNK];
    put(&mut bytes, 0, &jitdump::MAGIC.to_ne_bytes());
    put(&mut bytes, 4, &1_u32.to_ne_bytes());
    put(&mut bytes, 8, &40_u32.to_ne_bytes());
    put(&mut bytes, 12, &62_u32.to_ne_bytes());
    put(&mut bytes, 20, &7_u32.to_ne_bytes());
    for (index, one) in (0..).zip(codes) {
        let item = tail::FIRST_PAYLOAD;
        let name = item + code::SIZE;
        let size = name + 8 + one.name.len().next_multiple_of(8);
        let mut group = vec![0; size];
        put(&mut group, 0, &RecordId::DEBUG_INFO.0.to_ne_bytes());
        put(&mut group, 4, &(size as u32).to_ne_bytes());
        put(&mut group, 8, &(1000 + index as u64).to_ne_bytes());
        put(&mut group, 16, &one.address.to_ne_bytes());
        let items = (size - tail::OFFSET_WITHOUT_ENTRIES - tail::HEADER_SIZE) as u32;
        put(&mut group, tail::OFFSET_WITHOUT_ENTRIES, &tail::MAGIC.to_ne_bytes());
        put(&mut group, tail::OFFSET_WITHOUT_ENTRIES + 4, &items.to_ne_bytes());
        put(&mut group, item - 8, &tag::CODE.to_ne_bytes());
        put(&mut group, item - 4, &(code::SIZE as u32).to_ne_bytes());
        put(&mut group, item + code::DIED, &one.died.to_ne_bytes());
        put(&mut group, item + code::CODE_SIZE, &one.size.to_ne_bytes());
        put(&mut group, item + code::CODE_INDEX, &(index as u64).to_ne_bytes());
        put(&mut group, item + code::GROUP_SIZE, &(size as u32).to_ne_bytes());
        put(&mut group, item + code::FLAGS, &[code::WITHOUT_BYTES]);
        put(&mut group, name, &tag::NAME.to_ne_bytes());
        put(&mut group, name + 4, &(one.name.len() as u32).to_ne_bytes());
        put(&mut group, name + 8, one.name.as_bytes());
        bytes.extend_from_slice(&group);
    }
    bytes
}

/// A minidump with one thread, whose stack has these words, and one module.
fn minidump(words: &[u64], module: std::ops::Range<u64>) -> Vec<u8> {
    let mut bytes = vec![0; 32 + 2 * 12];
    put(&mut bytes, 0, b"MDMP");
    put(&mut bytes, 8, &2_u32.to_ne_bytes());
    put(&mut bytes, 12, &32_u32.to_ne_bytes());
    let stack = bytes.len() as u32;
    words.iter().for_each(|word| bytes.extend_from_slice(&word.to_ne_bytes()));
    let threads = bytes.len() as u32;
    let mut list = vec![0; 4 + 48];
    put(&mut list, 0, &1_u32.to_ne_bytes());
    put(&mut list, 4 + 24, &0x7000_u64.to_ne_bytes());
    put(&mut list, 4 + 32, &(8 * words.len() as u32).to_ne_bytes());
    put(&mut list, 4 + 36, &stack.to_ne_bytes());
    bytes.extend_from_slice(&list);
    let modules = bytes.len() as u32;
    let mut list = vec![0; 4 + 108];
    put(&mut list, 0, &1_u32.to_ne_bytes());
    put(&mut list, 4, &module.start.to_ne_bytes());
    put(&mut list, 12, &((module.end - module.start) as u32).to_ne_bytes());
    bytes.extend_from_slice(&list);
    for (number, (kind, size, at)) in
        [(3_u32, 52_u32, threads), (4, 112, modules)].iter().enumerate()
    {
        for (field, value) in [kind, size, at].into_iter().enumerate() {
            put(&mut bytes, 32 + 12 * number + 4 * field, &value.to_ne_bytes());
        }
    }
    bytes
}

/// Address, size and name of each code in a stream.
fn codes(stream: &CrashStream<'_>) -> Vec<(u64, u64, String)> {
    let dump = Dump::parse(stream.dump).unwrap();
    let loads = dump.codes().map(|event| match event.unwrap() {
        CodeEvent::Load(load) => load,
        other => panic!("{other:?}"),
    });
    loads
        .map(|load| (load.address, load.size, String::from_utf8(load.name.to_vec()).unwrap()))
        .collect()
}

fn one(address: u64, size: u64, name: &str) -> Code {
    Code { address, size, name: name.to_owned(), died: 0 }
}

#[test]
fn codes_to_which_a_stack_refers_are_written_and_read() {
    let mut all = vec![
        one(0x1000, 16, "first"),
        one(0x1010, 16, "second"),
        one(0x2000, 8, "not on the stack"),
        one(0x3000, 8, "called at its end"),
        one(0x4000, 8, "gone"),
    ];
    all[4].died = 2000;
    let dump = minidump(&[0x1015, 0, u64::MAX, 0x3008, 0x4001, 0x100f], 0x9000..0x9100);
    let read = |at: u64, bytes: &mut [u8]| {
        bytes.fill(at as u8 ^ 0x5a);
        at != 0x1010
    };
    let stream = encode(&snapshot(&all), stack_words(&dump).unwrap(), read).unwrap();
    let parsed = CrashStream::parse(&stream).unwrap();
    let expected =
        [(0x1000, 16, "first"), (0x1010, 16, "second"), (0x3000, 8, "called at its end")];
    let expected: Vec<_> = expected.map(|(at, size, name)| (at, size, name.to_owned())).into();
    assert_eq!(codes(&parsed), expected);
    let bytes: Vec<_> = parsed.code_bytes().collect();
    assert_eq!(bytes, [(0x1000, &[0x5a; 16][..]), (0x3000, &[0x5a; 8])]);
    assert_eq!((parsed.header.codes, parsed.header.code_bytes, parsed.header.left_out), (3, 2, 0));

    let reported = append(&dump, &stream).unwrap();
    assert_eq!(find_stream(&reported, STREAM_TYPE).unwrap(), Some(&stream[..]));
    assert_eq!(&reported[32..dump.len()], &dump[32..]);
    assert_eq!(append(&reported, &stream), Err(Error::HasStream));
    // As a crash reporter writes it that reserves more.
    let reserved = [&stream[..], &[0; 100]].concat();
    assert_eq!(codes(&CrashStream::parse(&reserved).unwrap()), expected);
    let unused = append(&dump, &[0; 100]).unwrap();
    assert!(CrashStream::find(&unused).unwrap().is_none());
    assert_eq!(with_code_modules(&unused).unwrap(), None);
    assert_eq!(with_code_modules(&dump).unwrap(), None);
}

#[test]
fn large_code_is_cut() {
    let all = [one(0x1000, 1 << 30, "large")];
    let stream = encode(&snapshot(&all), [0x1234], |_, _| true).unwrap();
    let parsed = CrashStream::parse(&stream).unwrap();
    let sizes: Vec<usize> = parsed.code_bytes().map(|(_, bytes)| bytes.len()).collect();
    assert_eq!(sizes, [MOST_CODE_BYTES as usize]);
}

#[test]
fn what_is_cut_is_said_to_be() {
    let stream = encode(&snapshot(&[one(16, 16, "f")]), [20], |_, _| false).unwrap();
    let dump = append(&minidump(&[20], 0..0), &stream).unwrap();
    for length in 0..dump.len() {
        assert!(CrashStream::find(&dump[..length]).is_err(), "{length}");
        if length > 32 {
            let what = CrashStream::find(&dump[..length]).unwrap_err().to_string();
            assert!(what.contains(" is cut: "), "{what}");
        }
    }
    for length in 0..stream.len() {
        assert!(CrashStream::parse(&stream[..length]).is_err(), "{length}");
    }
    let mut later = stream.clone();
    later[4] = 2;
    assert_eq!(CrashStream::parse(&later).err(), Some(Error::Version(2)));
    let damaged = encode(&snapshot(&[one(16, 16, "f")])[..4096 + 60], [20], |_, _| false);
    assert_eq!(damaged, Err(Error::NotASnapshot { at: 4096 }));
}

fn any_code() -> impl Strategy<Value = Code> {
    (0..0x1000_u64, 1..200_u64, "[a-z]{0,20}", prop::bool::weighted(0.2)).prop_map(
        |(address, size, name, is_dead)| Code {
            address: 0x10000 + 16 * address,
            size,
            name,
            died: if is_dead { 5000 } else { 0 },
        },
    )
}

proptest! {
    /// Compared with a plain search.
    #[test]
    fn exactly_the_codes_with_a_word_are_written(
        all in prop::collection::vec(any_code(), 0..40),
        words in prop::collection::vec(0x10000..0x20200_u64, 0..60),
        module in 0x10000..0x20000_u64,
    ) {
        let dump = minidump(&words, module..module + 0x400);
        let stream = encode(&snapshot(&all), stack_words(&dump).unwrap(), |_, _| true).unwrap();
        let parsed = CrashStream::parse(&stream).unwrap();
        let hit = |code: &&Code| {
            code.died == 0
                && words.iter().any(|word| (code.address..=code.address + code.size).contains(word))
        };
        let expected: Vec<_> = all
            .iter()
            .filter(hit)
            .map(|code| (code.address, code.size, code.name.clone()))
            .collect();
        prop_assert_eq!(codes(&parsed), expected.clone());
        prop_assert_eq!(parsed.code_bytes().count(), expected.len());

        let reported = append(&dump, &stream).unwrap();
        let prepared = with_code_modules(&reported).unwrap().unwrap();
        let list = find_stream(&prepared, 4).unwrap().unwrap();
        let modules: Vec<_> = list[4..]
            .chunks_exact(108)
            .map(|module| {
                let start = u64::from_ne_bytes(module[..8].try_into().unwrap());
                start..start + u64::from(u32::from_ne_bytes(module[8..12].try_into().unwrap()))
            })
            .collect();
        // No two of them overlap, and each address of a code is in one.
        for (number, one) in modules.iter().enumerate() {
            for other in &modules[..number] {
                prop_assert!(one.end <= other.start || other.end <= one.start);
            }
        }
        for (address, size, _) in expected {
            for at in [address, address + size / 2, address + size - 1] {
                prop_assert!(modules.iter().any(|module| module.contains(&at)));
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
    ) {
        let all = [one(0x1000, 16, "first"), one(0x2000, 16, "second")];
        let stream = encode(&snapshot(&all), [0x1001, 0x2001], |_, _| true).unwrap();
        let mut dump = append(&minidump(&[1, 2], 0x1008..0x1010), &stream).unwrap();
        for (at, value) in changes {
            let at = at.index(dump.len());
            dump[at] = value;
        }
        for bytes in [&dump[..], &bytes] {
            read_all(bytes);
        }
        let size = bytes.len().min(4);
        bytes[..size].copy_from_slice(&b"MDMP"[..size]);
        read_all(&bytes);
        let mut snapshot = snapshot(&all);
        snapshot.extend_from_slice(&bytes);
        let _ = encode(&snapshot, [0x1001], |_, _| true);
    }
}

fn read_all(bytes: &[u8]) {
    if let Ok(Some(stream)) = CrashStream::find(bytes) {
        assert!(stream.code_bytes().count() <= bytes.len() / 16);
    }
    if let Ok(stream) = CrashStream::parse(bytes) {
        assert!(stream.dump.len() + HEADER_SIZE <= bytes.len());
    }
    if let Ok(words) = stack_words(bytes) {
        words.for_each(drop);
    }
    let _ = with_code_modules(bytes);
    let _ = append(bytes, &[1, 2, 3]);
}
