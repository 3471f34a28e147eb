//! Reads the executable memory of the recorded processes while perf records: code that a runtime announces without bytes, or not at
//! all, is gone when its process ends.
//!
//! It is read by [`polling`](super::polling): most often at the beginning, when most code is compiled. What was read is written to one file, which `inject`
//! reads: see `captured.rs` of `jitscribe-inject`.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jit_code::elf_machine;
use jitdump::{Endian, IoSink, Load, Writer, WriterConfig};
use rustix::time::ClockId;

use super::polling::{Asked, Poll, Polling};
use super::scope::Scope;
use crate::foreign::{Conversation, Limit, Patience, Task};
use crate::process::{ReadExecutable, Reading, nanoseconds};

/// The limit, in bytes, for the file.
const WRITTEN: u64 = 256 << 20;

/// How long a worker may take. One that takes longer is not asked again.
const PATIENCE: Patience = Patience {
    silence: Limit::of(Duration::from_secs(1)),
    whole: Limit::of(Duration::from_secs(5)),
    bytes: 128 << 20,
    memory: 1 << 30,
    all: Limit::NEVER,
};

/// The thread that reads memory.
#[derive(Debug)]
pub struct MemoryReader {
    polling: Option<Polling<MemoryDump>>,
    path: PathBuf,
}

impl MemoryReader {
    /// Begins to read the memory of the processes in `scope` or, if perf starts the command, of its processes. The file is written to
    /// `folder`. Nothing is read if it cannot be created.
    pub fn start(scope: &Scope, folder: &Path) -> Self {
        let path = folder.join("memory.dump");
        let dump = MemoryDump::create(&path).ok();
        Self { polling: dump.map(|dump| Polling::start("memory", scope, dump, false)), path }
    }

    /// Reads once more what still runs, and returns the file, if anything was read.
    pub fn finish(self) -> Vec<PathBuf> {
        drop(self.polling);
        // The header alone is smaller.
        let is_used = self.path.metadata().is_ok_and(|file| file.len() > 4096);
        if is_used { vec![self.path] } else { Vec::new() }
    }
}

impl Poll for MemoryDump {
    type Worker = Conversation;

    const LONGEST: Duration = Duration::from_millis(250);
    const WITHOUT: Duration = Self::LONGEST;

    fn begin(&mut self, pid: u32) -> io::Result<Conversation> {
        Conversation::begin(Task::Executable(ReadExecutable { pid }), PATIENCE)
    }

    fn ask(&mut self, pid: u32, worker: &mut Conversation) -> io::Result<ControlFlow<(), Asked>> {
        let time = nanoseconds(ClockId::Monotonic);
        let answer = worker.ask(b"read", PATIENCE)?;
        let (readings, took) = Reading::all(&answer.bytes);
        let mut readings = readings.peekable();
        let asked = Asked { has_any: readings.peek().is_some(), is_whole: true, took };
        Ok(match self.write(pid, time, readings) {
            Ok(()) => ControlFlow::Continue(asked),
            Err(_) => ControlFlow::Break(()),
        })
    }

    fn end_round(&mut self) -> ControlFlow<()> {
        match self.flush() {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// The file.
#[derive(Debug)]
struct MemoryDump {
    writer: Writer<IoSink<BufWriter<File>>>,
    written: u64,
    records: u64,
}

impl MemoryDump {
    fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let config = WriterConfig {
            endian: Endian::NATIVE,
            machine: elf_machine::NATIVE.into(),
            // Each record names its own process. No process has this number: 0 is what perf calls those outside of its namespace.
            pid: u32::MAX,
            timestamp: nanoseconds(ClockId::Monotonic),
            flags: 0,
        };
        let writer =
            Writer::new(IoSink(BufWriter::new(file)), &config).map_err(io::Error::other)?;
        Ok(Self { writer, written: 0, records: 0 })
    }

    /// Writes what was read of process `pid` at `time`.
    fn write<'r>(
        &mut self,
        pid: u32,
        time: u64,
        readings: impl Iterator<Item = Reading<'r>>,
    ) -> io::Result<()> {
        for reading in readings {
            let (address, bytes, missing) = match reading {
                Reading::Changed { address, bytes } => (address, bytes, 0),
                Reading::Unchanged { address, size } => (address, &[][..], size),
            };
            self.written = self.written.saturating_add(bytes.len() as u64 + 128);
            if self.written > WRITTEN {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.records += 1;
            let load = Load {
                pid,
                tid: pid,
                vma: address,
                code_addr: address,
                code_index: self.records,
                name: b"memory",
                code: bytes,
                padding: &[],
                missing,
            };
            self.writer.load(time, &load).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::Write::flush(&mut self.writer.sink_mut().0)
    }
}
