//! Parts of dumps, for the tests within the crate.

use alloc::vec::Vec;

use crate::debug_info::{DebugEntry, EntryName};
use crate::endian::Endian;
use crate::load::Load;
use crate::writer::{Writer, WriterConfig};

pub(crate) fn writer() -> Writer<Vec<u8>> {
    let endian = Endian::Little;
    let config = WriterConfig { endian, machine: 62, pid: 7, timestamp: 1_000, flags: 0 };
    Writer::new(Vec::new(), &config).unwrap()
}

pub(crate) fn load<'a>(address: u64, index: u64, name: &'a [u8], code: &'a [u8]) -> Load<'a> {
    Load {
        pid: 7,
        tid: 7,
        vma: address,
        code_addr: address,
        code_index: index,
        name,
        code,
        padding: &[],
        missing: 0,
    }
}

pub(crate) fn entry(addr: u64, line: u32, path: &[u8]) -> DebugEntry<'_> {
    DebugEntry { addr, line, discrim: 1, name: EntryName::Path(path) }
}
