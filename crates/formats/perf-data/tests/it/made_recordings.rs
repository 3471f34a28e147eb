//! Recordings assembled byte by byte: what cannot be recorded here, and what no recorder would write.

use crate::common::{IDENTIFIED, Maker, PLAIN, copy_to_file, copy_to_pipe, events, gist, mapping};
use perf_data::{
    BuildId, Cause, ChainEntry, ClockData, Context, End, Endian, Error, Features, FileIdentity,
    InlineBuildId, Input, Mmap, Record, Writer, feature, kind, misc,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use zstd::stream::raw::{Encoder, InBuffer, Operation, OutBuffer};

const BOTH: [Endian; 2] = [Endian::Little, Endian::Big];

/// A small recording with one of every kind of event that perf writes in a file.
fn small(make: Maker) -> (Vec<u8>, Vec<Vec<u8>>) {
    let events = vec![
        make.comm(5, "worker", &make.trailer(5, 100)),
        make.mmap(5, 0x40_0000, "/bin/worker", &make.trailer(5, 110)),
        make.sample(5, 0x40_0010, 120),
        make.event(kind::FINISHED_ROUND, 0, &[]),
        make.auxtrace(b"PT packets, not looked at"),
        make.sample(5, 0x40_0020, 130),
        make.event(12345, 7, b"a type of the future"),
        make.sample(5, 0x40_0030, 140),
    ];
    (events.concat(), events)
}

fn hostname(make: Maker) -> Vec<u8> {
    let mut text = make.u32(64).to_vec();
    text.extend(b"somewhere");
    text.resize(68, 0);
    text
}

#[test]
fn events_come_as_they_are_and_are_copied() {
    for make in BOTH.map(Maker) {
        let (data, parts) = small(make);
        let attrs = [(make.attr(PLAIN), vec![7, 8])];
        let features = [(feature::HOSTNAME, &hostname(make)[..]), (200, b"from the future")];
        let mut input = Input::from_bytes(make.file(&attrs, &data, &features)).unwrap();
        assert_eq!(input.endian(), make.0);
        let attr = &input.attrs().list()[0];
        assert_eq!((attr.ids(), attr.raw()), (&[7, 8][..], &attrs[0].0[..]));
        assert!(attr.sample_id_all() && attr.is_tracking() && !attr.use_clockid());
        assert_eq!(input.features().get(200), Some(&b"from the future"[..]));
        let (found, end) = events(&mut input);
        assert_eq!(end, End::Complete);
        let whole: Vec<Vec<u8>> = found.iter().map(|(_, e, p)| [&e[..], p].concat()).collect();
        assert_eq!(whole, parts);
        assert_eq!(found[4].2, b"PT packets, not looked at");

        let strip = |all: Vec<crate::common::Found>| -> Vec<_> {
            all.into_iter().map(|(_, event, payload)| (event, payload)).collect()
        };
        let found = strip(found);
        input.restart();
        let copy = copy_to_file(&mut input, |_| {}).unwrap();
        let mut again = Input::from_bytes(copy.clone()).unwrap();
        assert_eq!(gist(&again), gist(&input));
        assert_eq!(strip(events(&mut again).0), found);

        // As a pipe, and from the pipe back to a file.
        again.restart();
        let mut piped = Input::from_bytes(copy_to_pipe(&mut again).unwrap()).unwrap();
        assert!(piped.is_pipe());
        assert_eq!(gist(&piped), gist(&input));
        let (events_of_pipe, end) = events(&mut piped);
        assert_eq!((strip(events_of_pipe), end), (found, End::Complete));
        piped.restart();
        assert_eq!(copy_to_file(&mut piped, |_| {}).unwrap(), copy);
    }
}

#[test]
fn records_are_decoded_in_both_byte_orders() {
    for make in BOTH.map(Maker) {
        let (data, _) = small(make);
        let mut input = make.input(&data, &[]);
        let event = input.next_event().unwrap().unwrap();
        assert_eq!(event.timestamp(), Some(100));
        let Record::Comm(comm) = event.record().unwrap() else { panic!("{event:?}") };
        assert_eq!((comm.pid, comm.exec, comm.name), (5, true, &b"worker"[..]));

        let event = input.next_event().unwrap().unwrap();
        assert_eq!(event.timestamp(), Some(110));
        let Record::Mmap(map) = event.record().unwrap() else { panic!("{event:?}") };
        let file = FileIdentity::Inode { major: 8, minor: 1, inode: 77, generation: 1 };
        assert_eq!(map, mapping(5, [0x40_0000, 0x1000, 0], file, b"/bin/worker"));
        assert!(map.is_executable());
        let trailer = event.attrs().trailer(5, 5, 110);
        assert_eq!(map.encode(make.0, &trailer).unwrap(), event.bytes());

        let event = input.next_event().unwrap().unwrap();
        let Record::Sample(sample) = event.record().unwrap() else { panic!("{event:?}") };
        assert_eq!((sample.ip, sample.id.pid), (Some(0x40_0010), Some(5)));
        assert_eq!((sample.id.time, event.timestamp()), (Some(120), Some(120)));
        assert!(matches!(input.next_event().unwrap().unwrap().record(), Ok(Record::FinishedRound)));
    }
}

#[test]
fn a_sample_with_everything_in_front_of_its_chain_and_stack() {
    for make in BOTH.map(Maker) {
        // IP TID TIME READ CALLCHAIN ID CPU PERIOD RAW BRANCH_STACK REGS_USER STACK_USER
        let sample_type = PLAIN | 0x10 | 0x20 | 0x40 | 0x100 | 0x400 | 0x800 | 0x1000 | 0x2000;
        let mut attr = make.attr(sample_type);
        attr[32..40].copy_from_slice(&make.u64(1 | 4 | 8)); // TOTAL_TIME_ENABLED, ID, GROUP
        attr[72..80].copy_from_slice(&make.u64(1 << 17)); // HW_INDEX
        attr[80..88].copy_from_slice(&make.u64(0b101)); // two registers
        let mut body = [make.u64(0x1234).to_vec(), make.pair(3, 4)].concat();
        body.extend(make.u64s(&[99, 41])); // time, id
        body.extend(make.pair(1, 0)); // cpu
        body.extend(make.u64(1000)); // period
        body.extend(make.u64s(&[2, 55, 10, 41, 20, 42])); // read: count, enabled, 2 x (value, id)
        let user = u64::MAX - 511;
        body.extend(make.u64s(&[4, user, 0x1234, 0x2000, u64::MAX - 99])); // chain
        body.extend(make.u32(4));
        body.extend(b"raw!");
        body.extend(make.u64s(&[1, 0, 0x10, 0x20, 0])); // branch
        body.extend(make.u64s(&[2, 71, 72])); // registers
        body.extend(make.u64(16));
        body.extend(b"stack, 16 bytes.");
        body.extend(make.u64(6));
        let event = make.event(kind::SAMPLE, 2, &body);
        let file = make.file(&[(attr, vec![41])], &event, &[]);
        let mut input = Input::from_bytes(file).unwrap();
        let event = input.next_event().unwrap().unwrap();
        let Record::Sample(sample) = event.record().unwrap() else { panic!("{event:?}") };
        assert_eq!((sample.ip, sample.period), (Some(0x1234), Some(1000)));
        assert_eq!((sample.id.pid, sample.id.tid), (Some(3), Some(4)));
        assert_eq!((sample.id.time, sample.id.id, sample.id.cpu), (Some(99), Some(41), Some(1)));
        let chain: Vec<_> = sample.callchain.collect();
        assert_eq!(
            chain,
            [
                ChainEntry::Context(Context::User),
                ChainEntry::Address(0x1234),
                ChainEntry::Address(0x2000),
                ChainEntry::Context(Context::Unknown(u64::MAX - 99)),
            ]
        );
        let branches: Vec<_> = sample.branches.map(|branch| (branch.from, branch.to)).collect();
        assert_eq!(branches, [(0x10, 0x20)]);
        assert_eq!(sample.user_registers.collect::<Vec<_>>(), [71, 72]);
        assert_eq!(sample.user_stack, b"stack,");
        let words = |from: usize| event.body()[from..].first_chunk::<8>().unwrap();
        assert_eq!(words(sample.offsets.ip), &make.u64(0x1234));
        assert_eq!(words(sample.offsets.user_registers), &make.u64(71));
        assert_eq!(words(sample.offsets.user_stack), b"stack, 1");
    }
}

#[test]
fn events_of_different_layout_are_told_apart_by_id() {
    for make in BOTH.map(Maker) {
        // The second one samples addresses too.
        let attrs = [(make.attr(IDENTIFIED), vec![1, 2]), (make.attr(IDENTIFIED | 8), vec![3])];
        let sample = |id, address: &[u64]| {
            let mut body = make.u64s(&[id, 0x10]);
            body.extend([make.pair(5, 6), make.u64(70).to_vec(), make.u64s(address)].concat());
            make.event(kind::SAMPLE, 2, &[body, make.pair(2, 0)].concat())
        };
        let exit = |id| {
            let fields = [make.pair(5, 1), make.pair(6, 1), make.u64(80).to_vec()].concat();
            let trailer = [make.pair(5, 6), make.u64(80).to_vec(), make.pair(2, 0)].concat();
            make.event(kind::EXIT, 0, &[fields, trailer, make.u64(id).to_vec()].concat())
        };
        let data = [sample(2, &[]), sample(3, &[0xadd]), exit(3), exit(0)].concat();
        let mut input = Input::from_bytes(make.file(&attrs, &data, &[])).unwrap();
        let mut found = Vec::new();
        while let Some(event) = input.next_event().unwrap() {
            let address = match event.record().unwrap() {
                Record::Sample(sample) => sample.address,
                Record::Exit(task) => Some(u64::from(task.tid)),
                other => panic!("{other:?}"),
            };
            let id = event.sample_id().unwrap();
            assert_eq!((id.pid, id.tid, id.cpu), (Some(5), Some(6), Some(2)));
            found.push((event.attr().unwrap().ids()[0], address, id.id, id.time));
        }
        let (t, e) = (Some(70), Some(80));
        let expected = [
            (1, None, Some(2), t),
            (3, Some(0xadd), Some(3), t),
            (3, Some(6), Some(3), e),
            (1, Some(6), Some(0), e),
        ];
        assert_eq!(found, expected);
        // A synthesized trailer is found by its id, and contains what it was given.
        let trailer = input.attrs().trailer(9, 10, 11);
        let expected =
            [make.pair(9, 10), make.u64(11).to_vec(), make.pair(0, 0), make.u64(1).to_vec()];
        assert_eq!(trailer, expected.concat());
    }
}

#[test]
fn the_index_of_aux_data_follows_it() {
    for make in BOTH.map(Maker) {
        let data = [
            make.auxtrace(b"first"),
            make.sample(1, 2, 3),
            make.auxtrace(&[0xaa; 200_000]),
            make.auxtrace(b""),
        ];
        let start = 104 + 144 + 8;
        let mut offsets = vec![start];
        data.iter().for_each(|part| offsets.push(offsets.last().unwrap() + part.len() as u64));
        let index = make.u64s(&[3, offsets[0], 48, offsets[2], 48, offsets[3], 48]);
        let mut input = make.input(&data.concat(), &[(feature::AUXTRACE, &index)]);
        // One event is inserted before all others, the last one is left out.
        let mut out = std::io::Cursor::new(Vec::new());
        let mut writer = Writer::file(&mut out, &input).unwrap();
        let inserted = make.comm(1, "new", &input.attrs().trailer(1, 1, 1));
        writer.insert(&inserted).unwrap();
        let mut left = 3;
        while let Some(event) = input.next_event().unwrap() {
            if left > 0 {
                writer.write_event(&event).unwrap();
            }
            left -= 1;
        }
        writer.finish().unwrap();
        let mut copy = Input::from_bytes(out.into_inner()).unwrap();
        let shift = inserted.len() as u64;
        let expected = make.u64s(&[2, offsets[0] + shift, 48, offsets[2] + shift, 48]);
        assert_eq!(copy.features().get(feature::AUXTRACE), Some(&expected[..]));
        let found = events(&mut copy).0;
        assert_eq!((found[1].0, &found[1].2[..]), (offsets[0] + shift, &b"first"[..]));
        assert_eq!((found[3].0, &found[3].2[..]), (offsets[2] + shift, &[0xaa; 200_000][..]));
    }
}

#[test]
fn build_ids_are_appended_and_read_back() {
    for make in BOTH.map(Maker) {
        let mut input = make.input(&make.sample(1, 2, 3), &[]);
        let ids = [
            BuildId::of_user_file(b"/tmp/image.so", &[0xab; 20]),
            BuildId::of_user_file(b"/tmp/short.so", b"\x01\x02"),
        ];
        let mut out = std::io::Cursor::new(Vec::new());
        let mut writer = Writer::file(&mut out, &input).unwrap();
        writer.features_mut().unwrap().append_build_ids(&ids[..1], make.0);
        let event = input.next_event().unwrap().unwrap();
        writer.write_event(&event).unwrap();
        writer.features_mut().unwrap().append_build_ids(&ids[1..], make.0);
        writer.finish().unwrap();
        let mut copy = Input::from_bytes(out.into_inner()).unwrap();
        assert_eq!(copy.features().build_ids(make.0), ids);
        // Through a pipe they go as events.
        let piped = Input::from_bytes(copy_to_pipe(&mut copy).unwrap()).unwrap();
        assert_eq!(piped.features().build_ids(make.0), ids);
    }
}

#[test]
fn clock_data_of_either_byte_order() {
    for make in BOTH.map(Maker) {
        let clocks = make.u64s(&[1_700_000_000_000_000_000, 5]);
        let body = [&make.u32(1)[..], &make.u32(1)[..], &clocks[..]].concat();
        let of = |body: &[u8]| {
            let mut features = Features::default();
            features.set(feature::CLOCK_DATA, body.to_vec());
            features.clock_data(make.0)
        };
        let expected = ClockData { clock_id: 1, wall_clock: 1_700_000_000_000_000_000, time: 5 };
        assert_eq!(of(&body), Some(expected));
        assert_eq!(of(&body[..23]), None);
        let newer = [&make.u32(2)[..], &body[4..]].concat();
        assert_eq!(of(&newer), None);
    }
}

#[test]
fn strings_end_at_their_padding() {
    for make in BOTH.map(Maker) {
        let mut features = Features::default();
        features.set(feature::HOSTNAME, hostname(make));
        let words = [&make.u32(2)[..], &make.u32(4), b"perf", &make.u32(8), b"record\0\0"];
        features.set(feature::CMDLINE, words.concat());
        assert_eq!(features.string(feature::HOSTNAME, make.0), Some(&b"somewhere"[..]));
        assert_eq!(features.string(feature::ARCH, make.0), None);
        assert_eq!(features.command_line(make.0), [&b"perf"[..], b"record"]);
        features.set(feature::CMDLINE, words[..4].concat());
        assert_eq!(features.command_line(make.0), [&b"perf"[..]]);
    }
}

#[test]
fn features_of_a_pipe_stand_before_its_events() {
    let make = Maker(Endian::Little);
    let mut input = make.input(&make.sample(1, 2, 3), &[]);
    let mut writer = Writer::pipe(Vec::new(), &input);
    writer.features_mut().unwrap().set(feature::HOSTNAME, hostname(make));
    let event = input.next_event().unwrap().unwrap();
    writer.write_event(&event).unwrap();
    assert!(matches!(writer.features_mut(), Err(Error::FeaturesWritten)));
    assert!(matches!(writer.insert(b"\x01\0\0\0\0\0\x09\0"), Err(Error::NotAnEvent(8))));
    assert!(matches!(writer.insert(b""), Err(Error::NotAnEvent(0))));
}

#[test]
fn an_inline_build_id_is_kept() {
    for make in BOTH.map(Maker) {
        let id = FileIdentity::BuildId(InlineBuildId::new(b"0123456789").unwrap());
        let map = mapping(1, [0x1000, 0x2000, 0x3000], id, b"1234567");
        let map = Mmap { misc: misc::USER | misc::MMAP_BUILD_ID, ..map };
        let event = map.encode(make.0, &make.trailer(1, 9)).unwrap();
        assert_eq!(event.len() % 8, 0);
        let mut input = make.input(&event, &[]);
        let Record::Mmap(found) = input.next_event().unwrap().unwrap().record().unwrap() else {
            panic!("no map");
        };
        assert_eq!(found, map);
    }
    assert_eq!(InlineBuildId::new(&[0; 21]), None);
}

/// The next part of a stream, which a reader can decompress up to its end.
fn pack(encoder: &mut Encoder<'_>, data: &[u8]) -> Vec<u8> {
    let mut space = vec![0; 70_000];
    let mut out = OutBuffer::around(&mut space);
    let mut input = InBuffer::around(data);
    while input.pos() < data.len() {
        encoder.run(&mut input, &mut out).unwrap();
    }
    assert_eq!(encoder.flush(&mut out).unwrap(), 0);
    out.as_slice().to_vec()
}

/// Events split into records as `perf record -z` does: at arbitrary places; all records are one stream.
fn compressed(make: Maker, data: &[u8], piece: usize, padded: bool) -> Vec<u8> {
    let mut encoder = Encoder::new(1).unwrap();
    let record = |piece| {
        let packed = pack(&mut encoder, piece);
        if !padded {
            return make.event(kind::COMPRESSED, 0, &packed);
        }
        let mut body = [&make.u64(packed.len() as u64)[..], &packed].concat();
        body.resize(body.len().next_multiple_of(8), 0);
        make.event(kind::COMPRESSED2, 0, &body)
    };
    data.chunks(piece).flat_map(record).collect()
}

#[test]
fn compressed_events_come_out_of_any_cut() {
    for make in BOTH.map(Maker) {
        let samples: Vec<Vec<u8>> = (0..3000).map(|i| make.sample(1, i * 8, i)).collect();
        let data = samples.concat();
        for (piece, padded) in [(7, false), (4096, true), (61, true), (1 << 20, false)] {
            let mut records = compressed(make, &data, piece, padded);
            records.extend(make.event(kind::FINISHED_ROUND, 0, &[]));
            let features =
                [(feature::HOSTNAME, &hostname(make)[..]), (feature::COMPRESSED, b"about zstd")];
            let mut input = make.input(&records, &features);
            let (found, end) = events(&mut input);
            assert_eq!(end, End::Complete);
            assert_eq!(found.len(), 3001);
            assert!(found.iter().zip(&samples).all(|((_, event, _), sample)| event == sample));
            input.restart();
            let copy = copy_to_file(&mut input, |_| {}).unwrap();
            let copy = Input::from_bytes(copy).unwrap();
            assert_eq!(copy.features().get(feature::COMPRESSED), None);
            assert!(copy.features().get(feature::HOSTNAME).is_some());
        }
    }
}

/// Padding a record to 65,536 bytes makes perf write a size of 0, and no padding.
#[test]
fn a_compressed_record_whose_size_overflowed() {
    let make = Maker(Endian::Little);
    // Bytes that do not compress, so that the length can be chosen.
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(65_499)
    .collect();
    let event = make.event(12345, 0, &noise);
    let packed = pack(&mut Encoder::new(1).unwrap(), &event);
    assert!((65_513..65_520).contains(&packed.len()), "{}", packed.len());
    let record =
        [&make.u32(kind::COMPRESSED2)[..], &[0; 4], &make.u64(packed.len() as u64), &packed];
    let data = [record.concat(), make.sample(1, 2, 3)].concat();
    let mut input = make.input(&data, &[]);
    let (found, end) = events(&mut input);
    assert_eq!(end, End::Complete);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].1, event);
}

#[test]
fn little_compressed_data_may_become_much() {
    let make = Maker(Endian::Little);
    let zeros = make.event(12345, 0, &vec![0; 60_000]);
    let count = 5000;
    let data: Vec<u8> = std::iter::repeat_n(&zeros, count).flatten().copied().collect();
    let records = compressed(make, &data, data.len(), false);
    assert!(records.len() < 1 << 16, "{}", records.len());
    let mut input = make.input(&records, &[]);
    let mut found = 0;
    while let Some(event) = input.next_event().unwrap() {
        assert_eq!(event.bytes().len(), zeros.len());
        found += 1;
    }
    // It is reported as damage once it expands to more than 4,096 times its size plus 16 MiB; what came before is
    // returned.
    let end = input.end();
    assert!(matches!(end, End::Damaged { cause: Cause::ZstdBomb, .. }), "{end:?}");
    assert!(found * zeros.len() > 16 << 20 && found < count, "{found} of {count}");
}

/// A compressed recording that is cut anywhere yields the content of its complete records.
#[test]
fn compressed_and_cut_at_every_offset() {
    let make = Maker(Endian::Little);
    let samples: Vec<Vec<u8>> = (0..40).map(|i| make.sample(1, i * 8, i)).collect();
    let records = compressed(make, &samples.concat(), 100, false);
    let file = make.plain(&records, &[]);
    let front = file.len() - records.len();
    let mut most = 0;
    for cut in front..file.len() {
        let mut input = Input::from_bytes(file[..cut].to_vec()).unwrap();
        let (found, end) = events(&mut input);
        assert!(found.iter().zip(&samples).all(|((_, event, _), sample)| event == sample));
        assert!(found.len() >= most, "cut {cut}");
        most = found.len();
        assert!(matches!(end, End::CutOff { file: 0, .. }), "cut {cut}: {end:?}");
    }
    // Without the last of 16 records: 1,500 of 1,600 bytes.
    assert_eq!(most, 37);
}

#[test]
fn files_of_a_directory_are_merged_by_time() {
    let make = Maker(Endian::Little);
    let directory = tempfile::tempdir().unwrap();
    let write =
        |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes).unwrap();
    let front = [make.comm(1, "made up", &make.trailer(1, 0)), make.event(12345, 0, &[])];
    let features = [(feature::DIR_FORMAT, &make.u64(1)[..]), (feature::HOSTNAME, &hostname(make))];
    write("data", &make.plain(&front.concat(), &features));
    // One processor has the even times and the others the odd ones; data.10 comes behind data.2.
    let count = 30_000;
    let of = |remainder: u64, modulus: u64| -> Vec<u8> {
        let times = (1..=count).filter(|time| time % modulus == remainder);
        times.flat_map(|time| make.sample(1, remainder, time)).collect()
    };
    write("data.0", &of(0, 2));
    write("data.2", &of(1, 4));
    write("data.10", &[of(3, 4), vec![9, 0, 0]].concat());
    write("data.old", b"not of the recording");

    let mut input = Input::open(directory.path()).unwrap();
    for _ in 0..2 {
        let (mut times, mut rounds, mut since_round) = (Vec::new(), 0, 0);
        let mut kinds = Vec::new();
        while let Some(event) = input.next_event().unwrap() {
            since_round += event.bytes().len();
            assert!(since_round < (1 << 20) + 100);
            kinds.push(event.kind());
            match event.kind() {
                kind::SAMPLE => times.push(event.timestamp().unwrap()),
                kind::FINISHED_ROUND => (rounds, since_round) = (rounds + 1, 0),
                _ => {}
            }
        }
        assert_eq!(kinds[..2], [kind::COMM, 12345]);
        assert!(times.iter().copied().eq(1..=count));
        assert_eq!(rounds, count * 40 / (1 << 20));
        let offset = of(3, 4).len() as u64;
        assert_eq!(input.end(), End::CutOff { file: 3, offset });
        input.restart();
        assert_eq!(input.end(), End::NotReached);
    }
    let copy = Input::from_bytes(copy_to_file(&mut input, |_| {}).unwrap()).unwrap();
    assert_eq!(copy.features().get(feature::DIR_FORMAT), None);
    assert!(copy.features().get(feature::HOSTNAME).is_some());
}

#[test]
fn damage_in_compressed_data_keeps_what_was_before() {
    let make = Maker(Endian::Little);
    let data: Vec<u8> = (0..300).flat_map(|i| make.sample(1, i, i)).collect();
    let good = compressed(make, &data, 4000, false);
    let bad = make.event(kind::COMPRESSED, 0, b"this is no zstd block at all");
    let start = 104 + 144 + 8;
    let mut input = make.input(&[&good[..], &bad].concat(), &[]);
    let (found, end) = events(&mut input);
    assert_eq!(found.len(), 300);
    let offset = start + good.len() as u64;
    assert_eq!(end, End::Damaged { file: 0, offset, cause: Cause::Zstd });
    assert!(input.next_event().unwrap().is_none());
}

#[test]
fn an_event_smaller_than_its_header_ends_the_events() {
    for size in [0_u16, 7] {
        let make = Maker(Endian::Little);
        let bad = [&make.u32(9)[..], &make.u16(0), &make.u16(size), &[0; 8]].concat();
        let data = [make.sample(1, 2, 3), bad].concat();
        let mut input = make.input(&data, &[]);
        let (found, end) = events(&mut input);
        assert_eq!(found.len(), 1);
        let offset = found[0].0 + found[0].1.len() as u64;
        assert_eq!(end, End::Damaged { file: 0, offset, cause: Cause::EventSize(size) });
    }
}

#[test]
fn hostile_headers_are_refused() {
    let make = Maker(Endian::Little);
    let good = make.plain(&make.sample(1, 2, 3), &[]);
    let cause = |at: usize, value: u64| {
        let mut bytes = good.clone();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        match Input::from_bytes(bytes) {
            Err(Error::Malformed { cause, .. }) => cause,
            other => panic!("{other:?}"),
        }
    };
    let ids_size = 104 + 128 + 8;
    for (at, value, expected) in [
        (0, 0, Cause::Magic),
        (0, u64::from_le_bytes(*b"PERFFILE"), Cause::OldFormat),
        (8, 17, Cause::HeaderSize(17)),
        (16, 15, Cause::AttrSize(15)),
        (16, u64::MAX, Cause::AttrSize(u64::MAX)),
        (32, u64::MAX, Cause::SectionOutside),
        (32, 1 << 40, Cause::SectionOutside),
        (ids_size, 1 << 40, Cause::IdsOverlap),
    ] {
        assert_eq!(cause(at, value), expected, "{value:#x} at {at}");
    }
    assert!(matches!(Input::from_bytes(Vec::new()), Err(Error::Malformed { offset: 0, .. })));
}

#[test]
fn a_longer_header_is_kept() {
    let make = Maker(Endian::Little);
    let mut file = make.plain(&make.sample(1, 2, 3), &[]);
    // Insert 16 bytes behind the known header and move every offset.
    file.splice(104..104, *b"future of header");
    for (at, value) in [(8, 120), (24, 120), (40, 104 + 144 + 8 + 16), (120 + 128, 120 + 144)] {
        file[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
    }
    let mut input = Input::from_bytes(file.clone()).unwrap();
    let copy = copy_to_file(&mut input, |_| {}).unwrap();
    assert_eq!(copy[8..16], 120_u64.to_le_bytes());
    assert_eq!(&copy[104..120], b"future of header");
    let mut again = Input::from_bytes(copy).unwrap();
    assert_eq!(gist(&again), gist(&input));
    assert_eq!(events(&mut again).0.len(), 1);
}

#[test]
fn a_recording_without_events_is_complete() {
    let make = Maker(Endian::Little);
    let mut input = make.input(&[], &[(feature::HOSTNAME, &hostname(make))]);
    assert_eq!(events(&mut input), (Vec::new(), End::Complete));
    assert_eq!(input.features().get(feature::HOSTNAME), Some(&hostname(make)[..]));
}

/// Cut at every offset: all complete events, then the place of the cut; and a copy that is complete.
#[test]
fn cut_at_every_offset() {
    for make in BOTH.map(Maker) {
        let (data, parts) = small(make);
        let file = make.plain(&data, &[(feature::HOSTNAME, &hostname(make))]);
        let mut pipe =
            make.event(kind::HEADER_ATTR, 0, &[make.attr(PLAIN), make.u64(7).to_vec()].concat());
        let pipe_front = 16 + pipe.len();
        pipe.extend_from_slice(&data);
        let pipe = make.pipe(&pipe);
        for (whole, front) in [(&file, 104 + 144 + 8), (&pipe, pipe_front)] {
            let mut ends = vec![front];
            parts.iter().for_each(|part| ends.push(ends.last().unwrap() + part.len()));
            for cut in 0..whole.len() {
                let opened = Input::from_bytes(whole[..cut].to_vec());
                if cut < front {
                    if let Ok(mut input) = opened {
                        assert!(events(&mut input).0.is_empty(), "cut {cut}");
                    }
                    continue;
                }
                let mut input = opened.unwrap();
                let (found, end) = events(&mut input);
                let count = ends.iter().filter(|&&end| end <= cut).count() - 1;
                assert_eq!(found.len(), count, "cut {cut}");
                let is_pipe = input.is_pipe();
                let at_a_boundary = cut == ends[count] && is_pipe;
                let expected = if at_a_boundary || count == parts.len() {
                    End::Complete
                } else {
                    End::CutOff { file: 0, offset: ends[count] as u64 }
                };
                assert_eq!(end, expected, "cut {cut}");
                input.restart();
                let copy = copy_to_file(&mut input, |_| {}).unwrap();
                let mut copy = Input::from_bytes(copy).unwrap();
                let (again, end) = events(&mut copy);
                assert_eq!((again.len(), end), (count, End::Complete), "cut {cut}");
            }
        }
    }
}

fn any_event() -> impl Strategy<Value = Vec<u8>> {
    (0_u32..100, any::<u16>(), vec(any::<u8>(), 0..80))
        .prop_filter("has no payload, and is not compressed", |(kind, ..)| {
            ![66, 71, 81, 83].contains(kind)
        })
        .prop_map(|(kind, misc, body)| Maker(Endian::Little).event(kind, misc, &body))
}

proptest! {
    #[test]
    fn any_events_round_trip(
        events_in in vec(any_event(), 0..40),
        sample_type in any::<u64>(),
        ids in vec(any::<u64>(), 0..5),
        features_in in btree_map(any::<u8>(), vec(any::<u8>(), 0..50), 0..6),
    ) {
        let make = Maker(Endian::Little);
        let features: Vec<(u8, &[u8])> = features_in.iter().map(|(n, bytes)| (*n, &bytes[..])).collect();
        let attrs = [(make.attr(sample_type), ids.clone()), (make.attr(PLAIN), vec![1])];
        let file = make.file(&attrs, &events_in.concat(), &features);
        let mut input = Input::from_bytes(file).unwrap();
        prop_assume!(!(events_in.is_empty() && features.is_empty()));
        let copy = copy_to_file(&mut input, |event| drop(event.record())).unwrap();
        prop_assert_eq!(input.end(), End::Complete);
        let mut again = Input::from_bytes(copy).unwrap();
        let found: Vec<Vec<u8>> = events(&mut again).0.into_iter().map(|(_, bytes, _)| bytes).collect();
        prop_assert_eq!(found, events_in);
        prop_assert_eq!(again.attrs().list(), input.attrs().list());
        for (number, bytes) in features_in {
            let kept = ![feature::AUXTRACE, feature::COMPRESSED, feature::DIR_FORMAT].contains(&number);
            prop_assert!(!kept || again.features().get(number) == Some(&bytes[..]));
        }
    }

    /// Some bytes of a good recording changed: no panic, and whatever is read can be written.
    #[test]
    fn damaged_recordings_do_no_harm(
        big in any::<bool>(),
        as_pipe in any::<bool>(),
        sample_type in prop_oneof![Just(PLAIN), Just(IDENTIFIED), any::<u64>()],
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let make = Maker(if big { Endian::Big } else { Endian::Little });
        let (mut data, _) = small(make);
        data.extend(compressed(make, &data.clone()[..300], 50, big));
        let attrs = [(make.attr(sample_type), vec![7]), (make.attr(PLAIN), vec![8, 9])];
        let mut file = make.file(&attrs, &data, &[(feature::HOSTNAME, &hostname(make)), (feature::AUXTRACE, &[0; 40])]);
        if as_pipe {
            file = copy_to_pipe(&mut Input::from_bytes(file).unwrap()).unwrap();
        }
        for (index, value) in changes {
            let at = index.index(file.len());
            file[at] = value;
        }
        if let Ok(mut input) = Input::from_bytes(file) {
            let look = |event: &perf_data::Event<'_>| {
                if let Ok(Record::Sample(sample)) = event.record() {
                    let _ = (sample.callchain.count(), sample.branches.count());
                }
                let _ = (event.attr(), event.sample_id());
            };
            let copy = copy_to_file(&mut input, look).unwrap();
            prop_assert!(input.end() != End::NotReached);
            let _ = input.features().build_ids(input.endian());
            let _ = input.features().clock_data(input.endian());
            let _ = input.features().string(feature::HOSTNAME, input.endian());
            let _ = input.features().command_line(input.endian());
            prop_assert!(Input::from_bytes(copy).is_ok());
            input.restart();
            copy_to_pipe(&mut input).unwrap();
        }
    }
}
