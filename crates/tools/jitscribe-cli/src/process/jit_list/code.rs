//! The code that an object describes, as records of a jitdump.

use std::ops::Range;

use code_timeline::ranges;
use gdb_jit_list::{ReadAt, Symfile};
use jit_code::elf_machine;
use jitdump::{Endian, ExtendedCode, LineEntry, Writer, WriterConfig};

/// The limit for the bytes of all code that is copied from one process.
const COPIED: u64 = 256 << 20;
/// The most functions of one process.
const FUNCTIONS: u64 = 1 << 20;

/// A code that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenCode {
    /// Its number in the dump.
    pub index: u64,
    /// Its addresses.
    pub range: Range<u64>,
    /// A hash of its bytes.
    pub hash: u64,
}

/// Writes codes of one process.
#[derive(Debug)]
pub struct CodeWriter {
    pid: u32,
    next: u64,
    copied: u64,
}

impl CodeWriter {
    pub fn new(pid: u32) -> Self {
        Self { pid, next: 0, copied: 0 }
    }

    /// A dump without codes.
    pub fn dump(&self, time: u64) -> Option<Writer<Vec<u8>>> {
        let config = WriterConfig {
            endian: Endian::NATIVE,
            machine: elf_machine::NATIVE.into(),
            pid: self.pid,
            timestamp: time,
            flags: 0,
        };
        Writer::new(Vec::new(), &config).ok()
    }

    /// Whether a limit is reached.
    pub fn is_full(&self) -> bool {
        self.copied >= COPIED || self.next >= FUNCTIONS
    }

    /// Writes the functions of an object that are in `executable` memory, with their bytes from `memory`. Returns what was written. drjit
    /// copies its code elsewhere: then the object names what is not code.
    pub fn write(
        &mut self,
        object: &[u8],
        memory: &impl ReadAt,
        executable: &[Range<u64>],
        time: u64,
        writer: &mut Writer<Vec<u8>>,
    ) -> Vec<WrittenCode> {
        let mut written = Vec::new();
        // The code of jitscribe's own library is in its log.
        let Some(symfile) = Symfile::parse(object).filter(|symfile| !symfile.is_of_jitscribe())
        else {
            return written;
        };
        let lines = symfile.lines();
        for function in symfile.functions() {
            let Range { start, end } = function.range();
            let is_code =
                ranges::contain(executable, start) && ranges::contain(executable, end - 1);
            if !is_code || self.is_full() {
                continue;
            }
            self.copied = self.copied.saturating_add(function.size);
            let Some(bytes) = memory.bytes(start, function.size) else { continue };
            let first = lines.partition_point(|line| line.address < start);
            let behind = lines.partition_point(|line| line.address < end);
            let lines = lines.get(first..behind).unwrap_or_default().iter();
            let lines: Vec<LineEntry<'_>> = lines
                .map(|line| LineEntry {
                    address: line.address,
                    file: &line.file,
                    line: line.line,
                    column: line.column,
                })
                .collect();
            let index = self.next;
            self.next += 1;
            // If the format cannot represent a name or a file, only that code is lost.
            let done = writer.extended(&ExtendedCode {
                timestamp: time,
                pid: self.pid,
                tid: self.pid,
                address: start,
                index,
                name: function.name,
                bytes: Some(&bytes),
                lines: &lines,
                ..ExtendedCode::default()
            });
            if done.is_ok() {
                written.push(WrittenCode { index, range: start..end, hash: hash(&bytes) });
            }
        }
        written
    }
}

/// A hash of a code's bytes.
pub fn hash(bytes: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

impl WrittenCode {
    /// Whether it is still there: some runtimes unregister code and keep it.
    pub fn is_there(&self, memory: &impl ReadAt, executable: &[Range<u64>]) -> bool {
        let Range { start, end } = self.range;
        ranges::contain(executable, start)
            && ranges::contain(executable, end - 1)
            && memory.bytes(start, end - start).is_some_and(|bytes| hash(&bytes) == self.hash)
    }
}
