//! Writing a dump.

mod extended;
mod unwind_header;
mod with_positions;

use alloc::vec::Vec;
use core::fmt;

use crate::debug_info::{DebugEntry, EntryName};
use crate::endian::{Endian, to_u64};
use crate::header::{HEADER_SIZE, Header, MAGIC};
use crate::load::{Load, Move};
use crate::record::{Body, Record};
use crate::record_id::{RECORD_HEADER_SIZE, RecordId};
use crate::sink::Sink;
use crate::source_positions::SourcePositionsBuilder;
use crate::unwinding::{UnwindOrder, UnwindingInfo};

pub use extended::{ExtendedCode, Inlined};
pub use with_positions::with_source_positions;

/// The header of a new dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterConfig {
    /// Byte order; that of this machine is [`Endian::NATIVE`].
    pub endian: Endian,
    /// ELF `e_machine` of the code: 62 for x86-64, 183 for AArch64.
    pub machine: u32,
    /// Id of the process that loads the code.
    pub pid: u32,
    /// The current time, by the clock that the records use.
    pub timestamp: u64,
    /// 0 for timestamps of `CLOCK_MONOTONIC` in nanoseconds, or
    /// [`FLAG_ARCH_TIMESTAMP`](crate::FLAG_ARCH_TIMESTAMP).
    pub flags: u64,
}

impl From<&Header> for WriterConfig {
    /// The configuration to write a dump like another one.
    fn from(header: &Header) -> Self {
        Self {
            endian: header.endian,
            machine: header.elf_mach,
            pid: header.pid,
            timestamp: header.timestamp,
            flags: header.flags,
        }
    }
}

/// Why a record was not written. Unless the sink failed, nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError<E> {
    /// The sink failed.
    Sink(E),
    /// The record would have more than 2^32 - 1 bytes.
    TooLarge {
        /// The size it would have.
        size: u64,
    },
    /// A name contains a NUL, which ends a name in the file.
    NulInName,
    /// A file name is the single byte `0xff`, which readers interpret as "same file as before".
    NameMeansSame,
    /// An inlined call whose parent does not precede it.
    ParentBehind {
        /// Number of the call, from 0.
        index: usize,
    },
}

impl<E: fmt::Display> fmt::Display for WriteError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sink(error) => error.fmt(f),
            Self::TooLarge { size } => write!(f, "a jitdump record of {size} bytes is too large"),
            Self::NulInName => f.write_str("a name in a jitdump cannot contain a NUL"),
            Self::NameMeansSame => {
                f.write_str("a file name that consists of the byte 0xff cannot be written")
            }
            Self::ParentBehind { index } => write!(
                f,
                "the parent of an inlined call must precede it; that of call {index} does not"
            ),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for WriteError<E> {}

/// Writes a dump: first the header, then one record per call, each in one piece.
///
/// Readers expect DEBUG_INFO and UNWINDING_INFO directly before the LOAD of their code, and `perf` assigns the tables
/// to whatever LOAD comes next. If several threads write, hold one lock while you write all records of a code.
#[derive(Debug)]
pub struct Writer<S> {
    sink: S,
    endian: Endian,
    /// The record being encoded; kept for its capacity.
    buffer: Vec<u8>,
}

impl<S: Sink> Writer<S> {
    /// Writes the header.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn new(sink: S, config: &WriterConfig) -> Result<Self, WriteError<S::Error>> {
        let mut writer = Self { sink, endian: config.endian, buffer: Vec::new() };
        for field in [MAGIC, 1, HEADER_SIZE, config.machine, 0, config.pid] {
            writer.u32(field);
        }
        writer.u64(config.timestamp);
        writer.u64(config.flags);
        writer.sink.write_record(&writer.buffer).map_err(WriteError::Sink)?;
        Ok(writer)
    }

    /// Continues a dump whose header `sink` already has.
    pub fn append(sink: S, endian: Endian) -> Self {
        Self { sink, endian, buffer: Vec::new() }
    }

    /// Records that a code was loaded, or replaced what was at its address.
    ///
    /// # Errors
    /// When the name contains a NUL, the record gets too large, or the sink fails.
    pub fn load(&mut self, timestamp: u64, load: &Load<'_>) -> Result<(), WriteError<S::Error>> {
        self.buffer.clear();
        self.put_load(timestamp, load)?;
        self.flush()
    }

    fn put_load(&mut self, timestamp: u64, load: &Load<'_>) -> Result<(), WriteError<S::Error>> {
        let start = self.begin(RecordId::LOAD, timestamp);
        self.u32(load.pid);
        self.u32(load.tid);
        self.u64(load.vma);
        self.u64(load.code_addr);
        self.u64(load.code_size());
        self.u64(load.code_index);
        self.c_str(load.name)?;
        self.bytes(load.code);
        self.bytes(load.padding);
        self.end(start)
    }

    /// Records that a code was moved.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn move_code(&mut self, timestamp: u64, moved: &Move) -> Result<(), WriteError<S::Error>> {
        self.buffer.clear();
        let start = self.begin(RecordId::MOVE, timestamp);
        self.u32(moved.pid);
        self.u32(moved.tid);
        self.u64(moved.vma);
        self.u64(moved.old_code_addr);
        self.u64(moved.new_code_addr);
        self.u64(moved.code_size);
        self.u64(moved.code_index);
        self.end(start)?;
        self.flush()
    }

    /// Writes the source lines of the code at `code_addr`, whose LOAD must follow.
    ///
    /// [`EntryName::Same`] saves space, but `perf` before 6.12 takes it for a file of that name.
    ///
    /// # Errors
    /// When a name cannot be written, the record gets too large, or the sink fails.
    pub fn debug_info<'e>(
        &mut self,
        timestamp: u64,
        code_addr: u64,
        entries: impl IntoIterator<Item = DebugEntry<'e>>,
    ) -> Result<(), WriteError<S::Error>> {
        self.buffer.clear();
        let start = self.put_debug_info(timestamp, code_addr, entries)?;
        self.end(start)?;
        self.flush()
    }

    fn put_debug_info<'e>(
        &mut self,
        timestamp: u64,
        code_addr: u64,
        entries: impl IntoIterator<Item = DebugEntry<'e>>,
    ) -> Result<usize, WriteError<S::Error>> {
        let start = self.begin(RecordId::DEBUG_INFO, timestamp);
        self.u64(code_addr);
        let count_at = self.buffer.len();
        self.u64(0);
        let mut count = 0_u64;
        for entry in entries {
            self.u64(entry.addr);
            self.u32(entry.line);
            self.u32(entry.discrim);
            match entry.name {
                EntryName::Same => self.bytes(b"\xff\0"),
                EntryName::Path(b"\xff") => return Err(WriteError::NameMeansSame),
                EntryName::Path(path) => self.c_str(path)?,
            }
            count = count.saturating_add(1);
        }
        self.patch(count_at, &self.endian.put_u64(count));
        Ok(start)
    }

    /// Writes the unwind tables of the code whose LOAD must follow.
    ///
    /// # Errors
    /// When the record gets too large, or the sink fails.
    pub fn unwinding_info(
        &mut self,
        timestamp: u64,
        info: &UnwindingInfo<'_>,
    ) -> Result<(), WriteError<S::Error>> {
        self.buffer.clear();
        self.put_unwinding_info(timestamp, info)?;
        self.flush()
    }

    fn put_unwinding_info(
        &mut self,
        timestamp: u64,
        info: &UnwindingInfo<'_>,
    ) -> Result<(), WriteError<S::Error>> {
        let start = self.begin(RecordId::UNWINDING_INFO, timestamp);
        self.u64(info.unwinding_size());
        self.u64(to_u64(info.eh_frame_hdr.len()));
        self.u64(info.mapped_size);
        let (first, second) = match info.order {
            UnwindOrder::FrameFirst => (info.eh_frame, info.eh_frame_hdr),
            UnwindOrder::HeaderFirst => (info.eh_frame_hdr, info.eh_frame),
        };
        self.bytes(first);
        self.bytes(second);
        self.bytes(info.padding);
        self.end(start)
    }

    /// Writes the source positions of the code at `code_addr`, whose LOAD must follow: an extension that samply reads.
    /// perf warns of the first such record and skips them.
    ///
    /// # Errors
    /// When the record gets too large, or the sink fails.
    pub fn source_positions(
        &mut self,
        timestamp: u64,
        code_addr: u64,
        positions: &SourcePositionsBuilder,
    ) -> Result<(), WriteError<S::Error>> {
        self.buffer.clear();
        let start = self.begin(RecordId::SOURCE_POSITIONS, timestamp);
        positions.encode(code_addr, self.endian, &mut self.buffer);
        self.end(start)?;
        self.flush()
    }

    /// Writes CLOSE, the last record of a dump that is closed properly.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn close(&mut self, timestamp: u64) -> Result<(), WriteError<S::Error>> {
        self.buffer.clear();
        let start = self.begin(RecordId::CLOSE, timestamp);
        self.end(start)?;
        self.flush()
    }

    /// Writes a record of a type that version 1 does not define. Readers skip it; `perf` warns.
    ///
    /// # Errors
    /// When the record gets too large, or the sink fails.
    pub fn unknown(
        &mut self,
        timestamp: u64,
        id: u32,
        bytes: &[u8],
    ) -> Result<(), WriteError<S::Error>> {
        self.buffer.clear();
        let start = self.begin(RecordId(id), timestamp);
        self.bytes(bytes);
        self.end(start)?;
        self.flush()
    }

    /// Writes a record that was read from another dump, including padding and tail.
    ///
    /// # Errors
    /// Those of the method for its type. Debug entries that do not fit into their record are left out, and so is a
    /// tail in the other byte order.
    pub fn record(&mut self, record: &Record<'_>) -> Result<(), WriteError<S::Error>> {
        let timestamp = record.timestamp;
        match &record.body {
            Body::Load(load) => self.load(timestamp, load),
            Body::Move(moved) => self.move_code(timestamp, moved),
            Body::DebugInfo(info) => {
                self.buffer.clear();
                let entries = info.entries().map_while(Result::ok);
                let start = self.put_debug_info(timestamp, info.code_addr, entries)?;
                if info.endian() == self.endian && info.entries().all(|entry| entry.is_ok()) {
                    self.bytes(info.behind_entries());
                }
                self.end(start)?;
                self.flush()
            }
            Body::Close => self.close(timestamp),
            Body::UnwindingInfo(info) => self.unwinding_info(timestamp, info),
            Body::Unknown { id, bytes } => self.unknown(timestamp, *id, bytes),
        }
    }

    /// The sink.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// The sink, for example to flush it.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Returns the sink.
    pub fn into_sink(self) -> S {
        self.sink
    }

    /// Begins a record at the end of the buffer, and returns its position.
    fn begin(&mut self, id: RecordId, timestamp: u64) -> usize {
        let start = self.buffer.len();
        self.u32(id.0);
        self.u32(0);
        self.u64(timestamp);
        start
    }

    /// Ends the record that begins at `start`.
    fn end(&mut self, start: usize) -> Result<(), WriteError<S::Error>> {
        let size = to_u64(self.buffer.len().saturating_sub(start));
        let total_size = self.size(size)?;
        self.patch(start.saturating_add(4), &self.endian.put_u32(total_size));
        Ok(())
    }

    /// Converts a size to the type of a record's size field.
    #[expect(clippy::unused_self, reason = "to name the sink's error")]
    fn size(&self, size: u64) -> Result<u32, WriteError<S::Error>> {
        u32::try_from(size).map_err(|_| WriteError::TooLarge { size })
    }

    fn flush(&mut self) -> Result<(), WriteError<S::Error>> {
        self.sink.write_record(&self.buffer).map_err(WriteError::Sink)
    }

    /// Overwrites the bytes at `at`, which were not known when they were written.
    fn patch(&mut self, at: usize, bytes: &[u8]) {
        for (place, byte) in self.buffer.iter_mut().skip(at).zip(bytes) {
            *place = *byte;
        }
    }

    fn u16(&mut self, value: u16) {
        self.buffer.extend_from_slice(&self.endian.put_u16(value));
    }

    fn u32(&mut self, value: u32) {
        self.buffer.extend_from_slice(&self.endian.put_u32(value));
    }

    fn u64(&mut self, value: u64) {
        self.buffer.extend_from_slice(&self.endian.put_u64(value));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    fn c_str(&mut self, text: &[u8]) -> Result<(), WriteError<S::Error>> {
        if text.contains(&0) {
            return Err(WriteError::NulInName);
        }
        self.bytes(text);
        self.bytes(&[0]);
        Ok(())
    }
}

// `begin` writes a record's header of this size.
const _: () = assert!(RECORD_HEADER_SIZE == 16);
