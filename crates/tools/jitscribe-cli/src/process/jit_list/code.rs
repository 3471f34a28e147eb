//! The code that an object describes, as records of a jitdump.

use std::ops::Range;

use code_timeline::ranges;
use disassembly::Frames;
use found_code::{FoundCode, Frame};
use gdb_jit_list::{Function, ReadAt, SourceLine, Symfile};
use jit_code::{Row, Unwind, elf_machine};
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

/// When an object was registered.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegisteredAt {
    /// The earliest time.
    pub earliest: u64,
    /// Whether it was then.
    pub is_exact: bool,
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
        time: RegisteredAt,
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
        let about = About { lines: symfile.lines(), frames: symfile.frames(), time };
        for function in functions {
            if let Some(bytes) = memory.bytes(function.range().start, function.size) {
                written.extend(self.write_function(&function, Some(&bytes), &about, writer));
            }
        }
        Some(written)
    }

    /// Writes the functions of an object that was unregistered before its code was read: without bytes, and not those in the code of `files`.
    pub fn write_unread(
        &mut self,
        object: &[u8],
        files: &[Range<u64>],
        time: RegisteredAt,
        writer: &mut Writer<Vec<u8>>,
    ) -> Vec<WrittenCode> {
        let symfile = Symfile::parse(object).filter(|symfile| !symfile.is_of_jitscribe());
        let Some(symfile) = symfile else { return Vec::new() };
        let mut functions = symfile.functions();
        functions.retain(|function| ranges::overlapping(files, &function.range()).is_empty());
        let about = About { lines: symfile.lines(), frames: symfile.frames(), time };
        let write = |function| self.write_function(function, None, &about, writer);
        functions.iter().filter_map(write).collect()
    }

    /// Writes a function with its bytes, if they are known.
    fn write_function(
        &mut self,
        function: &Function<'_>,
        bytes: Option<&[u8]>,
        about: &About,
        writer: &mut Writer<Vec<u8>>,
    ) -> Option<WrittenCode> {
        if self.is_full() {
            return None;
        }
        let Range { start, end } = function.range();
        self.copied = self.copied.saturating_add(function.size);
        let lines = about.lines_in(start..end);
        let frames = about.frames.of(&(start..end));
        let eh_frame = frames.or_else(|| bytes.map(followed)).unwrap_or_default();
        let index = self.next;
        self.next += 1;
        let seen = self.clock.filter(|_| bytes.is_some() && !about.time.is_exact);
        // If the format cannot represent a name or a file, only that code is lost.
        let done = writer.extended(&ExtendedCode {
            timestamp: about.time.earliest,
            pid: self.pid,
            tid: self.pid,
            address: start,
            size: function.size,
            index,
            name: function.name,
            bytes,
            seen: seen.map(nanoseconds),
            lines: &lines,
            eh_frame: &eh_frame,
            ..ExtendedCode::default()
        });
        let code = WrittenCode { index, range: start..end, hash: hash(bytes.unwrap_or_default()) };
        done.is_ok().then_some(code)
    }
}

/// What an object says of its functions.
struct About {
    lines: Vec<SourceLine>,
    frames: gdb_jit_list::Frames,
    time: RegisteredAt,
}

impl About {
    /// The lines of a function.
    fn lines_in(&self, range: Range<u64>) -> Vec<LineEntry<'_>> {
        let first = self.lines.partition_point(|line| line.address < range.start);
        let behind = self.lines.partition_point(|line| line.address < range.end);
        let lines = self.lines.get(first..behind).unwrap_or_default().iter();
        lines
            .map(|line| LineEntry {
                address: line.address,
                file: &line.file,
                line: line.line,
                column: line.column,
            })
            .collect()
    }
}

impl CodeWriter {
    /// Writes a code that was found, with its bytes from `memory`. `None` if it cannot be read or represented.
    ///
    /// Without the time at which it was seen: of such code, readers take the last change of its memory for the load. LuaJIT makes all of its code writable for
    /// each new trace, and the others stay.
    pub fn write_found(
        &mut self,
        code: &FoundCode,
        memory: &impl ReadAt,
        time: u64,
        writer: &mut Writer<Vec<u8>>,
    ) -> Option<u64> {
        if self.is_full() {
            return None;
        }
        self.copied = self.copied.saturating_add(code.size);
        let bytes = memory.bytes(code.address, code.size)?;
        let line =
            LineEntry { address: code.address, file: &code.file, line: code.line, column: 0 };
        let has_line = !code.file.is_empty() && code.line > 0;
        let eh_frame = match code.frame {
            Some(frame) if Machine::host() == Some(Machine::X86_64) => framed(frame, code.size),
            _ => followed(&bytes),
        };
        let index = self.next;
        self.next += 1;
        let done = writer.extended(&ExtendedCode {
            timestamp: time,
            pid: self.pid,
            tid: self.pid,
            address: code.address,
            index,
            name: &code.name,
            bytes: Some(&bytes),
            lines: if has_line { std::slice::from_ref(&line) } else { &[] },
            eh_frame: &eh_frame,
            ..ExtendedCode::default()
        });
        done.ok().map(|_| index)
    }
}

/// Unwind info of code with a frame that is the same at each instruction.
fn framed(frame: Frame, size: u64) -> Vec<u8> {
    /// DWARF's number of x86-64's stack pointer.
    const STACK_POINTER: u16 = 7;
    let mut tables = Vec::new();
    let Ok(distance) = i32::try_from(frame.size) else { return tables };
    let mut row = Row::new(0, STACK_POINTER, distance);
    row.saved = frame.saved;
    let rows = [row];
    match behind_code(Machine::X86_64, size, &Unwind::Rows(&rows), &mut tables) {
        Ok(sizes) => tables.truncate(sizes.eh_frame),
        Err(_) => tables.clear(),
    }
    tables
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
