//! A small jitdump in which every event happens.

use jitdump::{
    DebugEntry, Endian, EntryName, Load, Move, UnwindOrder, UnwindingInfo, Writer, WriterConfig,
};

/// Where the code begins.
pub const BASE: u64 = 0x7f00_0000_1000;

const SECOND: u64 = 1_000_000_000;

/// An `.eh_frame` with a CIE and an FDE for 0x20 bytes of code right before it, and a terminator.
const EH_FRAME: &[u8] = &[
    0x14, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 0x10, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
    0x14, 0, 0, 0, 0x1c, 0, 0, 0, 0xc0, 0xff, 0xff, 0xff, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0,
];

fn load(index: u64, address: u64, size: usize, name: &'static [u8]) -> Load<'static> {
    const CODE: &[u8] = &[0xc3; 0x40];
    Load {
        pid: 7,
        tid: 8,
        vma: address,
        code_addr: address,
        code_index: index,
        name,
        code: &CODE[..size],
        padding: &[],
        missing: 0,
    }
}

/// The header of a dump.
pub fn header() -> Vec<u8> {
    let config =
        WriterConfig { endian: Endian::Little, machine: 62, pid: 7, timestamp: SECOND, flags: 0 };
    Writer::new(Vec::new(), &config).unwrap().into_sink()
}

/// What happens: `fib` with lines and unwind tables at 1.5 s; `sum` behind it at 1.6 s; `fib` made
/// anew in its place at 2 s, though a record behind that tells of other code there at 1.7 s; `sum`
/// moved away at 3 s; code with a nasty name at 4 s over a part of the new `fib`.
pub fn dump() -> Vec<u8> {
    let mut writer = Writer::append(header(), Endian::Little);
    let entry = |offset, line, name| DebugEntry { addr: BASE + offset, line, discrim: 5, name };
    let entries = [entry(0, 10, EntryName::Path(b"/src/fib.js")), entry(0x10, 11, EntryName::Same)];
    writer.debug_info(3 * SECOND / 2, BASE, entries).unwrap();
    let unwinding = UnwindingInfo {
        eh_frame: EH_FRAME,
        eh_frame_hdr: &[1, 0xff, 0xff, 0xff],
        mapped_size: 0,
        order: UnwindOrder::FrameFirst,
        padding: &[],
    };
    writer.unwinding_info(3 * SECOND / 2, &unwinding).unwrap();
    writer.load(3 * SECOND / 2, &load(0, BASE, 0x20, b"fib")).unwrap();
    writer.load(16 * SECOND / 10, &load(1, BASE + 0x20, 0x10, b"sum")).unwrap();
    writer.load(2 * SECOND, &load(2, BASE, 0x20, b"fib [opt]")).unwrap();
    writer.load(17 * SECOND / 10, &load(3, BASE, 0x20, b"gone")).unwrap();
    let moved = Move {
        pid: 7,
        tid: 8,
        vma: BASE + 0x1000,
        old_code_addr: BASE + 0x20,
        new_code_addr: BASE + 0x1000,
        code_size: 0x10,
        code_index: 1,
    };
    writer.move_code(3 * SECOND, &moved).unwrap();
    writer.load(4 * SECOND + 1, &load(4, BASE + 0x18, 0x10, b"a\x1b[31m\n")).unwrap();
    writer.close(5 * SECOND).unwrap();
    writer.into_sink()
}
