//! Properties of every input.

use crate::made::read_all;
use jitdump::{
    Body, DebugEntry, Dump, End, Endian, EntryName, Load, Move, Record, UnwindOrder, UnwindingInfo,
    Writer, WriterConfig,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// One record to write, with what the reader's types borrow.
#[derive(Clone, Debug)]
enum Made {
    Load { fixed: [u64; 3], ids: (u32, u32), name: Vec<u8>, code: Vec<u8>, padding: Vec<u8> },
    Move([u64; 5], (u32, u32)),
    DebugInfo(u64, Vec<(u64, u32, u32, Option<Vec<u8>>)>),
    UnwindingInfo { frame: Vec<u8>, header: Vec<u8>, mapped_size: u64, first: bool, padding: u8 },
    Unknown(u32, Vec<u8>),
    Close,
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    vec(1_u8.., 0..20).prop_filter("means the same file", |name| name != b"\xff")
}

fn made() -> impl Strategy<Value = Made> {
    let bytes = |len| vec(any::<u8>(), 0..len);
    let load = (any::<[u64; 3]>(), any::<(u32, u32)>(), name(), bytes(80), bytes(9)).prop_map(
        |(fixed, ids, name, code, padding)| Made::Load { fixed, ids, name, code, padding },
    );
    let entry = (any::<u64>(), any::<u32>(), any::<u32>(), proptest::option::of(name()));
    // Sections with valid beginnings, in either order.
    let tables = (bytes(30), bytes(16), any::<u64>(), any::<bool>(), 0..8_u8).prop_map(
        |(tail, header_tail, mapped_size, first, padding)| {
            let frame = [&[20, 0, 0, 0, 0, 0, 0, 0], &tail[..]].concat();
            let header = [&[1, 0x1b, 0x03, 0x3b], &header_tail[..]].concat();
            Made::UnwindingInfo { frame, header, mapped_size, first, padding }
        },
    );
    prop_oneof![
        4 => load,
        1 => (any::<[u64; 5]>(), any::<(u32, u32)>()).prop_map(|(all, ids)| Made::Move(all, ids)),
        3 => (any::<u64>(), vec(entry, 0..6)).prop_map(|(at, all)| Made::DebugInfo(at, all)),
        2 => tables,
        1 => (5_u32.., bytes(40)).prop_map(|(id, bytes)| Made::Unknown(id, bytes)),
        1 => Just(Made::Close),
    ]
}

/// Writes them and returns the offset behind each.
fn write(endian: Endian, all: &[Made]) -> (Vec<u8>, Vec<usize>) {
    let config = WriterConfig { endian, machine: 62, pid: 7, timestamp: 5, flags: 0 };
    let mut writer = Writer::new(Vec::new(), &config).unwrap();
    let mut ends = Vec::new();
    for (time, made) in (1_000..).zip(all) {
        match made {
            Made::Load {
                fixed: [vma, code_addr, code_index],
                ids: (pid, tid),
                name,
                code,
                padding,
            } => writer.load(
                time,
                &Load {
                    pid: *pid,
                    tid: *tid,
                    vma: *vma,
                    code_addr: *code_addr,
                    code_index: *code_index,
                    name,
                    code,
                    padding,
                    missing: missing(code, padding),
                },
            ),
            Made::Move([vma, old_code_addr, new_code_addr, code_size, code_index], (pid, tid)) => {
                writer.move_code(
                    time,
                    &Move {
                        pid: *pid,
                        tid: *tid,
                        vma: *vma,
                        old_code_addr: *old_code_addr,
                        new_code_addr: *new_code_addr,
                        code_size: *code_size,
                        code_index: *code_index,
                    },
                )
            }
            Made::DebugInfo(code_addr, entries) => {
                let entries = entries.iter().map(|(addr, line, discrim, name)| DebugEntry {
                    addr: *addr,
                    line: *line,
                    discrim: *discrim,
                    name: name.as_deref().map_or(EntryName::Same, EntryName::Path),
                });
                writer.debug_info(time, *code_addr, entries)
            }
            Made::UnwindingInfo { frame, header, mapped_size, first, padding } => writer
                .unwinding_info(
                    time,
                    &UnwindingInfo {
                        eh_frame: frame,
                        eh_frame_hdr: header,
                        mapped_size: *mapped_size,
                        order: if *first {
                            UnwindOrder::FrameFirst
                        } else {
                            UnwindOrder::HeaderFirst
                        },
                        padding: &[0; 8][..usize::from(*padding)],
                    },
                ),
            Made::Unknown(id, bytes) => writer.unknown(time, *id, bytes),
            Made::Close => writer.close(time),
        }
        .unwrap();
        ends.push(writer.sink().len());
    }
    (writer.into_sink(), ends)
}

/// A record that has nothing behind its name may still claim code.
fn missing(code: &[u8], padding: &[u8]) -> u64 {
    if code.is_empty() && padding.is_empty() { 0x400 } else { 0 }
}

fn is_what_was_made(record: &Record<'_>, made: &Made) -> bool {
    match (&record.body, made) {
        (Body::Load(load), Made::Load { fixed, ids, name, code, padding }) => {
            [load.vma, load.code_addr, load.code_index] == *fixed
                && (load.pid, load.tid) == *ids
                && load.name == name
                && load.code == code
                && load.padding == padding
                && load.missing == missing(code, padding)
        }
        (Body::Move(moved), Made::Move(all, ids)) => {
            let Move { pid, tid, vma, old_code_addr, new_code_addr, code_size, code_index } =
                *moved;
            [vma, old_code_addr, new_code_addr, code_size, code_index] == *all && (pid, tid) == *ids
        }
        (Body::DebugInfo(info), Made::DebugInfo(code_addr, entries)) => {
            info.code_addr == *code_addr
                && info.behind_entries().is_empty()
                && info.entries().map(Result::unwrap).eq(entries.iter().map(
                    |(addr, line, discrim, name)| DebugEntry {
                        addr: *addr,
                        line: *line,
                        discrim: *discrim,
                        name: name.as_deref().map_or(EntryName::Same, EntryName::Path),
                    },
                ))
        }
        (
            Body::UnwindingInfo(info),
            Made::UnwindingInfo { frame, header, mapped_size, first, padding },
        ) => {
            info.eh_frame == frame
                && info.eh_frame_hdr == header
                && info.mapped_size == *mapped_size
                && (info.order == UnwindOrder::FrameFirst) == *first
                && info.padding.len() == usize::from(*padding)
        }
        (Body::Unknown { id, bytes }, Made::Unknown(made_id, made_bytes)) => {
            id == made_id && bytes == made_bytes
        }
        (Body::Close, Made::Close) => true,
        _ => false,
    }
}

fn endian() -> impl Strategy<Value = Endian> {
    prop_oneof![Just(Endian::Little), Just(Endian::Big)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_without_panic(
        endian in endian(),
        body in vec(prop_oneof![3 => Just(0_u8), 2 => 0..70_u8, 1 => any::<u8>()], 0..2000),
    ) {
        let (mut data, _) = write(endian, &[]);
        data.extend(body);
        read_all(&data);
    }

    #[test]
    fn any_damage_is_read_without_panic(
        endian in endian(),
        all in vec(made(), 0..10),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        hole in (any::<prop::sample::Index>(), 0..200_usize),
    ) {
        let (mut data, _) = write(endian, &all);
        let len = data.len();
        for (at, byte) in damage {
            data[at.index(len)] = byte;
        }
        let start = hole.0.index(len);
        data[start..(start + hole.1).min(len)].fill(0);
        read_all(&data);
    }

    #[test]
    fn what_is_written_is_read(endian in endian(), all in vec(made(), 0..12)) {
        let (data, _) = write(endian, &all);
        let dump = Dump::parse(&data).unwrap();
        let mut records = dump.records();
        let read: Vec<_> = records.by_ref().map(Result::unwrap).collect();
        prop_assert_eq!(records.end(), Some(End::Complete { offset: data.len() as u64 }));
        prop_assert_eq!(read.len(), all.len());
        for (record, made) in read.iter().zip(&all) {
            prop_assert!(is_what_was_made(record, made), "{:?} from {:?}", record, made);
        }
        let mut copy = Writer::new(Vec::new(), &WriterConfig::from(dump.header())).unwrap();
        for record in &read {
            copy.record(record).unwrap();
        }
        prop_assert_eq!(copy.sink(), &data);
        read_all(&data);
    }

    #[test]
    fn a_cut_dump_yields_a_prefix(endian in endian(), all in vec(made(), 1..6)) {
        let (data, ends) = write(endian, &all);
        let whole: Vec<_> = Dump::parse(&data).unwrap().records().map(Result::unwrap).collect();
        for cut in 40..data.len() {
            let mut records = Dump::parse(&data[..cut]).unwrap().records();
            let read: Vec<_> = records.by_ref().map(Result::unwrap).collect();
            let count = ends.iter().filter(|end| **end <= cut).count();
            prop_assert_eq!(&read[..], &whole[..count], "cut at {}", cut);
            let offset = if count == 0 { 40 } else { ends[count - 1] };
            match records.end().unwrap() {
                End::Complete { offset: end } => prop_assert_eq!((end, cut), (cut as u64, offset)),
                End::CutOff { offset: start, missing } => {
                    prop_assert_eq!(start, offset as u64);
                    let expected = (cut - offset >= 16).then(|| (ends[count] - cut) as u64);
                    prop_assert_eq!(missing, expected);
                }
                end => prop_assert!(false, "{:?} when cut at {}", end, cut),
            }
        }
    }
}
