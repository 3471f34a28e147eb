//! Dumps made for tests.

#![allow(dead_code, reason = "each test takes what it needs")]

use jitdump::{
    Body, CodeEvent, CodeLoad, DebugEntry, Dump, Endian, EntryName, LineEntry, Load, Quirks,
    UnwindOrder, UnwindingInfo, Writer, WriterConfig,
    check::{Report, check},
};
use proptest::prelude::*;

pub const PID: u32 = 700;
pub const X86_64: u32 = 62;

pub fn config(endian: Endian) -> WriterConfig {
    WriterConfig { endian, machine: X86_64, pid: PID, timestamp: 1_000_000, flags: 0 }
}

pub fn writer() -> Writer<Vec<u8>> {
    writer_for(Endian::Little)
}

pub fn writer_for(endian: Endian) -> Writer<Vec<u8>> {
    Writer::new(Vec::new(), &config(endian)).unwrap()
}

/// Code of `size` bytes, none of them zero.
pub fn code(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8 | 1).collect()
}

pub fn load<'a>(address: u64, index: u64, name: &'a [u8], code: &'a [u8]) -> Load<'a> {
    Load {
        pid: PID,
        tid: PID,
        vma: address,
        code_addr: address,
        code_index: index,
        name,
        code,
        padding: &[],
        missing: 0,
    }
}

pub fn entry(addr: u64, line: u32, path: &[u8]) -> DebugEntry<'_> {
    DebugEntry { addr, line, discrim: 0, name: EntryName::Path(path) }
}

pub fn same(addr: u64, line: u32) -> DebugEntry<'static> {
    DebugEntry { addr, line, discrim: 0, name: EntryName::Same }
}

pub fn line(address: u64, file: &[u8], line: u32) -> LineEntry<'_> {
    LineEntry { address, file, line, column: 0 }
}

/// A CIE and an FDE with valid beginnings of sections, and no further meaning.
pub const EH_FRAME: [u8; 16] = [8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
pub const EH_FRAME_HDR: [u8; 20] =
    [1, 0x1b, 0x03, 0x3b, 9, 9, 9, 9, 1, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9];

pub fn tables() -> UnwindingInfo<'static> {
    UnwindingInfo {
        eh_frame: &EH_FRAME,
        eh_frame_hdr: &EH_FRAME_HDR,
        mapped_size: 48,
        order: UnwindOrder::FrameFirst,
        padding: &[0; 4],
    }
}

/// The loads of an undamaged dump.
pub fn loads<'a>(dump: &Dump<'a>) -> Vec<CodeLoad<'a>> {
    dump.codes()
        .filter_map(|event| match event.unwrap() {
            CodeEvent::Load(code) => Some(code),
            _ => None,
        })
        .collect()
}

/// The code of an undamaged dump that has one.
pub fn only(data: &[u8]) -> CodeLoad<'_> {
    let dump = Dump::parse(data).unwrap();
    let [code] = loads(&dump)[..] else { panic!("{} codes", loads(&dump).len()) };
    code
}

/// The rules with a finding.
pub fn rules(report: &Report) -> Vec<&'static str> {
    report.findings.iter().map(|finding| finding.rule).collect()
}

/// Name and lines of each code.
pub fn lines_by_name(data: &[u8]) -> Vec<(&[u8], Vec<LineEntry<'_>>)> {
    let dump = Dump::parse(data).unwrap();
    loads(&dump).iter().map(|code| (code.name, code.lines().collect())).collect()
}

/// Either byte order.
pub fn any_endian() -> impl Strategy<Value = Endian> {
    prop_oneof![Just(Endian::Little), Just(Endian::Big)]
}

/// A name of a code or file with at least this length.
pub fn any_name(least: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(1_u8.., least..20)
        .prop_filter("means the same file", |name| name != b"\xff")
}

/// Reads everything in every way.
pub fn read_all(data: &[u8]) {
    let Ok(dump) = Dump::parse(data) else { return };
    let mut records = dump.records();
    let mut end = 0;
    for record in &mut records {
        match record {
            Ok(record) => {
                assert!(record.offset >= end, "records overlap");
                end = record.offset + u64::from(record.total_size);
                if let Body::DebugInfo(info) = record.body {
                    let _ = (info.entries().count(), info.behind_entries());
                    for item in info.tail().iter().flat_map(|tail| tail.items()) {
                        assert!(item.payload.len() < data.len());
                        let _ = item.body();
                    }
                }
            }
            Err(error) => assert!(error.offset >= end, "an error within a record"),
        }
    }
    assert!(end <= data.len() as u64 && records.end().is_some());
    let _ = dump.logged_code().map(|code| (code.lines().count(), code.inlined().count()));
    for event in dump.codes().flatten() {
        if let CodeEvent::Load(code) = event {
            for line in code.lines() {
                assert!((code.address..code.end()).contains(&line.address));
            }
            if !code.is_without_bytes() {
                assert_eq!(code.bytes.len() as u64, code.size);
            }
            assert!(code.died().is_none_or(|died| died >= code.timestamp));
            for (index, call) in code.inlined().enumerate() {
                assert!(call.parent.is_none_or(|parent| (parent as usize) < index));
                for range in call.ranges {
                    assert!(code.address <= range.start && range.end <= code.end());
                }
            }
            let _ = (code.ir_lines().count(), code.unwind(), code.kind(), code.tier());
            let _ = dump.code_at(&code.place(), &Quirks::none(&dump));
        }
    }
    let report = check(data);
    assert!(report.findings.iter().all(|finding| finding.count >= finding.offsets.len() as u64));
}
