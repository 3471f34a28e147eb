//! Jitdumps to read.

use jitdump::{Endian, ExtendedCode, Move, Writer, WriterConfig};

pub struct Made(Writer<Vec<u8>>);

impl Made {
    pub fn new() -> Self {
        let config =
            WriterConfig { endian: Endian::Little, machine: 62, pid: 7, timestamp: 0, flags: 0 };
        Self(Writer::new(Vec::new(), &config).unwrap())
    }

    pub fn load(&mut self, time: u64, address: u64, index: u64, name: &str, bytes: &[u8]) {
        self.whole(&Self::code(time, address, index, name, bytes));
    }

    pub fn code<'c>(
        time: u64,
        address: u64,
        index: u64,
        name: &'c str,
        bytes: &'c [u8],
    ) -> ExtendedCode<'c> {
        ExtendedCode {
            timestamp: time,
            pid: 7,
            tid: 7,
            address,
            size: bytes.len() as u64,
            index,
            name: name.as_bytes(),
            bytes: Some(bytes),
            ..ExtendedCode::default()
        }
    }

    pub fn whole(&mut self, code: &ExtendedCode<'_>) {
        self.0.extended(code).unwrap();
    }

    pub fn moved(&mut self, time: u64, index: u64, old: u64, new: u64, size: u64) {
        let moved = Move {
            pid: 7,
            tid: 7,
            vma: new,
            old_code_addr: old,
            new_code_addr: new,
            code_size: size,
            code_index: index,
        };
        self.0.move_code(time, &moved).unwrap();
    }

    pub fn bytes(self) -> Vec<u8> {
        self.0.into_sink()
    }
}
