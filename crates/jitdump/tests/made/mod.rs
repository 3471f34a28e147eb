//! Dumps made for tests.

#![allow(dead_code, reason = "each test takes what it needs")]

use jitdump::{
    CodeEvent, CodeLoad, DebugEntry, Dump, Endian, EntryName, LineEntry, Load, UnwindOrder,
    UnwindingInfo, Writer, WriterConfig,
};

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

/// A CIE and an FDE as sections begin, without sense beyond that.
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

/// The loads of a dump in which nothing is damaged.
pub fn loads<'a>(dump: &Dump<'a>) -> Vec<CodeLoad<'a>> {
    dump.codes()
        .filter_map(|event| match event.unwrap() {
            CodeEvent::Load(code) => Some(code),
            _ => None,
        })
        .collect()
}

/// Name and lines of each code.
pub fn lines_by_name(data: &[u8]) -> Vec<(&[u8], Vec<LineEntry<'_>>)> {
    let dump = Dump::parse(data).unwrap();
    loads(&dump).iter().map(|code| (code.name, code.lines().collect())).collect()
}
