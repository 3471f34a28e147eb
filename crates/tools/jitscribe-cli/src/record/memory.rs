//! Reads the executable memory of the recorded processes while perf records: code that a runtime announces without bytes, or not at
//! all, is gone when its process ends.
//!
//! A thread asks a worker for each process, at intervals that grow from [`FIRST`] to [`LONGEST`], and that are at least [`REST`]
//! times the processor time of the last reading. So reading takes at most 4 % of a processor, and is frequent at the beginning, when
//! most code is compiled. The recorded processes are not stopped. What was read is written to one file, which `inject` reads: see
//! `captured.rs` of `jitscribe-inject`.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use jit_code::elf_machine;
use jitdump::{Endian, IoSink, Load, Writer, WriterConfig};
use rustix::time::ClockId;

use super::recorded_processes::{is_gone, recorded_now};
use super::scope::Scope;
use crate::foreign::{Conversation, Limit, Patience, Task};
use crate::process::{ReadExecutable, Reading, nanoseconds};

/// The time until the first reading.
const FIRST: Duration = Duration::from_millis(10);
/// The longest time between two readings.
const LONGEST: Duration = Duration::from_millis(250);
/// How much longer than the processor time of a reading the time between two readings is at least.
const REST: u32 = 25;
/// The longest time between two readings, whatever they take.
const MOST_REST: Duration = Duration::from_secs(4);
/// The longest time between two attempts at one of many processes that has no executable memory of its own.
const RARELY: Duration = Duration::from_secs(30);
/// The maximum number of processes whose memory is read.
const PROCESSES: usize = 128;
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
    is_over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

impl MemoryReader {
    /// Begins to read the memory of the processes in `scope` or, if perf starts the command, of its processes. The file is written to
    /// `folder`. Nothing is read if it cannot be created.
    pub fn start(scope: &Scope, folder: &Path) -> Self {
        let path = folder.join("memory.dump");
        let is_over = Arc::new((Mutex::new(false), Condvar::new()));
        let (scope, is_its_end) = (scope.clone(), Arc::clone(&is_over));
        let thread = MemoryDump::create(&path).ok().and_then(|dump| {
            let mut rounds = Rounds::new(scope, dump);
            thread::Builder::new().name("memory".into()).spawn(move || rounds.run(&is_its_end)).ok()
        });
        Self { is_over, thread, path }
    }

    /// Reads once more what still runs, and returns the file, if anything was read.
    pub fn finish(mut self) -> Vec<PathBuf> {
        self.stop();
        // The header alone is smaller.
        let is_used = self.path.metadata().is_ok_and(|file| file.len() > 4096);
        if is_used { vec![self.path.clone()] } else { Vec::new() }
    }

    fn stop(&mut self) {
        let (is_over, changed) = &*self.is_over;
        *is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // If it panicked, there is less memory.
            _ = thread.join();
        }
    }
}

impl Drop for MemoryReader {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The readings so far.
struct Rounds {
    scope: Scope,
    dump: MemoryDump,
    workers: HashMap<u32, Conversation>,
    /// Processes that may not be read, or did not answer.
    refused: HashSet<u32>,
    /// Processes without executable memory of their own: when to ask again, and how long to wait then.
    without: HashMap<u32, (Instant, Duration)>,
    /// The processor time of the workers in this round.
    took: Duration,
}

impl Rounds {
    fn new(scope: Scope, dump: MemoryDump) -> Self {
        let (workers, refused, without) = (HashMap::new(), HashSet::new(), HashMap::new());
        Self { scope, dump, workers, refused, without, took: Duration::ZERO }
    }

    fn run(&mut self, end: &(Mutex<bool>, Condvar)) {
        let mut interval = FIRST;
        let mut wait = FIRST;
        loop {
            let (is_over, changed) = end;
            let is_over = is_over.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = changed.wait_timeout_while(is_over, wait, |is_over| !*is_over);
            let is_over = *waited.unwrap_or_else(PoisonError::into_inner).0;
            let before = nanoseconds(ClockId::ThreadCPUTime);
            self.took = Duration::ZERO;
            if self.read_all().is_err() || is_over {
                return;
            }
            let own = nanoseconds(ClockId::ThreadCPUTime).saturating_sub(before);
            let took = self.took.saturating_add(Duration::from_nanos(own));
            interval = (interval * 2).min(LONGEST);
            wait = interval.max(took.saturating_mul(REST).min(MOST_REST));
        }
    }

    /// Reads the memory of all processes once. Fails if the file is full or cannot be written.
    fn read_all(&mut self) -> io::Result<()> {
        let pids = recorded_now(&self.scope);
        self.workers.retain(|pid, _| pids.contains(pid));
        self.refused.retain(|pid| pids.contains(pid));
        self.without.retain(|pid, _| pids.contains(pid));
        for pid in pids {
            self.read(pid)?;
        }
        self.dump.flush()
    }

    fn read(&mut self, pid: u32) -> io::Result<()> {
        let now = Instant::now();
        let is_later = self.without.get(&pid).is_some_and(|&(next, _)| now < next);
        if is_later || self.refused.contains(&pid) {
            return Ok(());
        }
        let mut worker = match self.workers.remove(&pid) {
            Some(worker) => worker,
            None if self.workers.len() >= PROCESSES => return Ok(()),
            None => {
                let task = Task::Executable(ReadExecutable { pid });
                let Ok(worker) = Conversation::begin(task, PATIENCE) else { return Ok(()) };
                worker
            }
        };
        let time = nanoseconds(ClockId::Monotonic);
        match worker.ask(b"read", PATIENCE) {
            Ok(answer) => {
                let (readings, took) = Reading::all(&answer.bytes);
                self.took = self.took.saturating_add(took);
                let mut readings = readings.peekable();
                let is_one_of_many = matches!(self.scope, Scope::User(_) | Scope::All);
                if readings.peek().is_none() && is_one_of_many {
                    // Each worker takes memory, and few processes have a JIT compiler.
                    let longer = self.without.get(&pid).map_or(LONGEST, |(_, wait)| *wait * 2);
                    self.without.insert(pid, (now + longer, longer.min(RARELY)));
                } else {
                    self.without.remove(&pid);
                    self.workers.insert(pid, worker);
                }
                self.dump.write(pid, time, readings)
            }
            // It has ended, or runs another program, which gets another worker.
            Err(error) if is_gone(&error) => Ok(()),
            Err(_) => {
                self.refused.insert(pid);
                Ok(())
            }
        }
    }
}

/// The file.
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
