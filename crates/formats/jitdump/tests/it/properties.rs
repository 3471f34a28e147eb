//! Properties of every input.

use crate::made::{any_endian, any_name, read_all, writer_for};
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
    Move(Move),
    DebugInfo(u64, Vec<(u64, u32, u32, Option<Vec<u8>>)>),
    UnwindingInfo { frame: Vec<u8>, header: Vec<u8>, mapped_size: u64, first: bool, padding: u8 },
    Unknown(u32, Vec<u8>),
    Close,
}

fn made() -> impl Strategy<Value = Made> {
    let bytes = |len| vec(any::<u8>(), 0..len);
    let load = (any::<[u64; 3]>(), any::<(u32, u32)>(), any_name(0), bytes(80), bytes(9)).prop_map(
        |(fixed, ids, name, code, padding)| Made::Load { fixed, ids, name, code, padding },
    );
    let moved = (any::<[u64; 5]>(), any::<(u32, u32)>()).prop_map(|(all, (pid, tid))| {
        let [vma, old_code_addr, new_code_addr, code_size, code_index] = all;
        Made::Move(Move { pid, tid, vma, old_code_addr, new_code_addr, code_size, code_index })
    });
    let entry = (any::<u64>(), any::<u32>(), any::<u32>(), proptest::option::of(any_name(0)));
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
        1 => moved,
        3 => (any::<u64>(), vec(entry, 0..6)).prop_map(|(at, all)| Made::DebugInfo(at, all)),
        2 => tables,
        1 => (5_u32.., bytes(40)).prop_map(|(id, bytes)| Made::Unknown(id, bytes)),
        1 => Just(Made::Close),
    ]
}

impl Made {
    /// The record as a reader should find it; `None` for DEBUG_INFO, which has [entries](Self::entries).
    fn body(&self) -> Option<Body<'_>> {
        Some(match self {
            Self::Load { fixed: [vma, code_addr, code_index], ids, name, code, padding } => {
                Body::Load(Load {
                    pid: ids.0,
                    tid: ids.1,
                    vma: *vma,
                    code_addr: *code_addr,
                    code_index: *code_index,
                    name,
                    code,
                    padding,
                    // A record that has nothing behind its name may still claim code.
                    missing: if code.is_empty() && padding.is_empty() { 0x400 } else { 0 },
                })
            }
            Self::Move(moved) => Body::Move(*moved),
            Self::DebugInfo(..) => return None,
            Self::UnwindingInfo { frame, header, mapped_size, first, padding } => {
                let order = if *first { UnwindOrder::FrameFirst } else { UnwindOrder::HeaderFirst };
                Body::UnwindingInfo(UnwindingInfo {
                    eh_frame: frame,
                    eh_frame_hdr: header,
                    mapped_size: *mapped_size,
                    order,
                    padding: &[0; 8][..usize::from(*padding)],
                })
            }
            Self::Unknown(id, bytes) => Body::Unknown { id: *id, bytes },
            Self::Close => Body::Close,
        })
    }

    /// The address and the entries of DEBUG_INFO.
    fn entries(&self) -> (u64, Vec<DebugEntry<'_>>) {
        let Self::DebugInfo(code_addr, entries) = self else { panic!("{self:?}") };
        let entries = entries.iter().map(|(addr, line, discrim, name)| DebugEntry {
            addr: *addr,
            line: *line,
            discrim: *discrim,
            name: name.as_deref().map_or(EntryName::Same, EntryName::Path),
        });
        (*code_addr, entries.collect())
    }
}

/// Writes them and returns the offset behind each.
fn write(endian: Endian, all: &[Made]) -> (Vec<u8>, Vec<usize>) {
    let mut writer = writer_for(endian);
    let mut ends = Vec::new();
    for (time, made) in (1_000..).zip(all) {
        match made.body() {
            Some(Body::Load(load)) => writer.load(time, &load),
            Some(Body::Move(moved)) => writer.move_code(time, &moved),
            Some(Body::UnwindingInfo(info)) => writer.unwinding_info(time, &info),
            Some(Body::Unknown { id, bytes }) => writer.unknown(time, id, bytes),
            Some(Body::Close) => writer.close(time),
            Some(Body::DebugInfo(_)) | None => {
                let (code_addr, entries) = made.entries();
                writer.debug_info(time, code_addr, entries)
            }
        }
        .unwrap();
        ends.push(writer.sink().len());
    }
    (writer.into_sink(), ends)
}

fn is_what_was_made(record: &Record<'_>, made: &Made) -> bool {
    match (record.body, made.body()) {
        (Body::DebugInfo(info), None) => {
            let (code_addr, entries) = made.entries();
            info.code_addr == code_addr
                && info.nr_entry == entries.len() as u64
                && info.behind_entries().is_empty()
                && info.entries().map(Result::unwrap).eq(entries)
        }
        (body, made) => Some(body) == made,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_without_panic(
        endian in any_endian(),
        body in vec(prop_oneof![3 => Just(0_u8), 2 => 0..70_u8, 1 => any::<u8>()], 0..2000),
    ) {
        let (mut data, _) = write(endian, &[]);
        data.extend(body);
        read_all(&data);
    }

    #[test]
    fn any_damage_is_read_without_panic(
        endian in any_endian(),
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
    fn what_is_written_is_read(endian in any_endian(), all in vec(made(), 0..12)) {
        let (data, ends) = write(endian, &all);
        let dump = Dump::parse(&data).unwrap();
        let mut records = dump.records();
        let read: Vec<_> = records.by_ref().map(Result::unwrap).collect();
        prop_assert_eq!(records.end(), Some(End::Complete { offset: data.len() as u64 }));
        prop_assert_eq!(read.len(), all.len());
        prop_assert!(read.iter().map(|record| record.timestamp).eq((1_000..).take(all.len())));
        let starts = std::iter::once(40).chain(ends).take(all.len());
        prop_assert!(read.iter().map(|record| record.offset as usize).eq(starts));
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
    fn a_cut_dump_yields_a_prefix(endian in any_endian(), all in vec(made(), 1..6)) {
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
