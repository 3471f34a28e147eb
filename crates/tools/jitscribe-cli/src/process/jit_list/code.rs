//! The code that an object describes, as records of a jitdump.

use std::ops::Range;

use code_timeline::ranges;
use disassembly::Frames;
use gdb_jit_list::{Function, ReadAt, Symfile};
use jit_code::{Unwind, elf_machine};
use jitdump::{Endian, ExtendedCode, LineEntry, Writer, WriterConfig};
use rustix::time::ClockId;
use unwind_info::{Machine, behind_code};

use crate::process::logs::nanoseconds;

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
    /// The clock of times; `None` if it is not known when code was read.
    clock: Option<ClockId>,
    next: u64,
    copied: u64,
}

impl CodeWriter {
    pub fn new(pid: u32, clock: Option<ClockId>) -> Self {
        Self { pid, clock, next: 0, copied: 0 }
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

    /// Writes the functions of an object that are in `executable` memory, with their bytes from `memory`. `None` if the object has functions, of which none
    /// is there: LLVM registers an object before it makes the code executable. drjit copies its code elsewhere: then the object never describes code.
    pub fn write(
        &mut self,
        object: &[u8],
        memory: &impl ReadAt,
        executable: &[Range<u64>],
        time: u64,
        writer: &mut Writer<Vec<u8>>,
    ) -> Option<Vec<WrittenCode>> {
        let mut written = Vec::new();
        // The code of jitscribe's own library is in its log.
        let Some(symfile) = Symfile::parse(object).filter(|symfile| !symfile.is_of_jitscribe())
        else {
            return Some(written);
        };
        let is_code = |function: &Function<'_>| {
            let Range { start, end } = function.range();
            ranges::contain(executable, start) && ranges::contain(executable, end - 1)
        };
        let mut functions = symfile.functions();
        let has_functions = !functions.is_empty();
        functions.retain(is_code);
        if has_functions && functions.is_empty() {
            return None;
        }
        let lines = symfile.lines();
        let frames = symfile.frames();
        for function in functions {
            let Range { start, end } = function.range();
            if self.is_full() {
                break;
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
            let eh_frame = frames.of(&(start..end)).unwrap_or_else(|| followed(&bytes));
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
                seen: self.clock.map(nanoseconds),
                lines: &lines,
                eh_frame: &eh_frame,
                ..ExtendedCode::default()
            });
            if done.is_ok() {
                written.push(WrittenCode { index, range: start..end, hash: hash(&bytes) });
            }
        }
        Some(written)
    }
}

/// Unwind info for code without it, from its instructions; empty if they do not say enough.
fn followed(code: &[u8]) -> Vec<u8> {
    let mut tables = Vec::new();
    let frames = Frames::of(elf_machine::NATIVE, code);
    if let (Some(frames), Some(machine)) = (frames, Machine::host()) {
        let size = code.len() as u64;
        let rows = frames.rows();
        if let Ok(sizes) = behind_code(machine, size, &Unwind::Rows(&rows), &mut tables) {
            tables.truncate(sizes.eh_frame);
        }
    }
    tables
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
