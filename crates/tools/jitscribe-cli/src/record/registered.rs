//! Reads, while perf records, the code that the recorded processes register with GDB's JIT interface: numba, JAX, PostgreSQL and others
//! announce their code in no other way, and PostgreSQL unregisters it after each query.
//!
//! A thread asks a worker for each process at intervals from [`FIRST`] to [`LONGEST`], or to [`RARELY`] while no process has a list, and
//! that are at least [`REST`] times the processor time of the last round. The code is copied when it is first seen. At the end, what was
//! seen is written as one jitdump for each process.
//!
//! The interface has no times. A code counts from the poll before the one that saw it: then, it was not there.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use jitdump::{CodeEvent, Dump, Writer, WriterConfig};
use rustix::time::ClockId;

use super::recorded_processes::{is_gone, recorded_now};
use super::scope::Scope;
use crate::files::Named;
use crate::foreign::{Limit, Patience, Reservation};
use crate::process::{HeadsByFile, RegisteredCode, beneath, nanoseconds, started};
use crate::{Error, Result, note};

/// The time until the first poll of a command.
const FIRST: Duration = Duration::from_millis(10);
/// The longest time between two polls if a process has a list.
const LONGEST: Duration = Duration::from_millis(20);
/// The same if none has.
const WITHOUT: Duration = Duration::from_millis(100);
/// How much longer than the processor time of a round the time between two rounds is at least.
const REST: u32 = 25;
/// The longest time between two rounds, whatever they take.
const MOST_REST: Duration = Duration::from_secs(4);
/// The longest time between two attempts at one of many processes that has no list.
const RARELY: Duration = Duration::from_secs(30);
/// The maximum number of processes that are read.
const PROCESSES: usize = 128;
/// The limit, in bytes, for what is held of all processes.
const HELD: usize = 256 << 20;

/// How long a worker may take. One that takes longer is not asked again.
const PATIENCE: Patience = Patience {
    silence: Limit::of(Duration::from_secs(2)),
    whole: Limit::of(Duration::from_secs(10)),
    bytes: 512 << 20,
    memory: 2 << 30,
    all: Limit::NEVER,
};

/// The thread that reads the lists.
#[derive(Debug)]
pub struct RegisteredReader {
    is_over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<Rounds>>,
}

impl RegisteredReader {
    /// Begins to read the lists of the processes in `scope` or, if perf starts the command, of its processes. What processes that the
    /// user named have registered so far is read at once.
    pub fn start(scope: &Scope) -> Self {
        let is_over = Arc::new((Mutex::new(false), Condvar::new()));
        let is_its_end = Arc::clone(&is_over);
        let mut rounds = Rounds::new(scope.clone());
        if scope.is_named() {
            rounds.poll_all();
        }
        let run = move || {
            rounds.run(&is_its_end);
            rounds
        };
        let thread = thread::Builder::new().name("registered".into()).spawn(run).ok();
        Self { is_over, thread }
    }

    /// Reads the lists once more, and writes what was seen to dumps in `folder`, except for code that is in the process's own dump among
    /// `announced`. Returns the dumps and their processes.
    pub fn finish(mut self, folder: &Path, announced: &[Named]) -> Vec<Named> {
        let Some(rounds) = self.stop() else { return Vec::new() };
        if rounds.is_full {
            note::warning(
                "a process has registered more code with GDB's JIT interface than is read: the rest has no names",
            );
        }
        let mut dumps = Vec::new();
        for (pid, codes) in rounds.codes {
            let own = announced.iter().filter(|dump| dump.pid == Some(pid));
            let own: Vec<_> = own.filter_map(|dump| fs::read(&dump.path).ok()).collect();
            match codes.write(pid, folder, &own) {
                Ok(path) => dumps.extend(path.map(|path| Named { pid: Some(pid), path })),
                Err(error) => note::warning(format_args!(
                    "skipped the code that process {pid} registered with GDB's JIT interface: {error}"
                )),
            }
        }
        dumps
    }

    fn stop(&mut self) -> Option<Rounds> {
        let (is_over, changed) = &*self.is_over;
        *is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        // If it panicked, there is no such code.
        self.thread.take()?.join().ok()
    }
}

impl Drop for RegisteredReader {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The polls so far.
#[derive(Debug)]
struct Rounds {
    scope: Scope,
    workers: HashMap<u32, Polls>,
    codes: BTreeMap<u32, Codes>,
    files: HeadsByFile,
    /// Processes that may not be read, or did not answer.
    refused: HashSet<u32>,
    /// Processes without a list: when to ask again, and how long to wait then.
    without: HashMap<u32, (Instant, Duration)>,
    /// The processor time of the workers in this round.
    took: Duration,
    has_lists: bool,
    is_full: bool,
    held: usize,
}

/// The polls of one process.
#[derive(Debug)]
struct Polls {
    worker: RegisteredCode,
    /// The time of the last one.
    last: Option<u64>,
}

/// The codes of one process.
#[derive(Debug, Default)]
struct Codes {
    /// Jitdumps.
    dumps: Vec<(Vec<u8>, Reservation)>,
    /// When codes were seen to be gone, by their numbers.
    gone: HashMap<u64, u64>,
}

impl Rounds {
    fn new(scope: Scope) -> Self {
        Self {
            scope,
            workers: HashMap::new(),
            codes: BTreeMap::new(),
            files: HeadsByFile::default(),
            refused: HashSet::new(),
            without: HashMap::new(),
            took: Duration::ZERO,
            has_lists: false,
            is_full: false,
            held: 0,
        }
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
            self.poll_all();
            if is_over {
                return;
            }
            let own = nanoseconds(ClockId::ThreadCPUTime).saturating_sub(before);
            let took = self.took.saturating_add(Duration::from_nanos(own));
            interval = (interval * 2).min(if self.has_lists { LONGEST } else { WITHOUT });
            wait = interval.max(took.saturating_mul(REST).min(MOST_REST));
        }
    }

    /// Polls all processes once.
    fn poll_all(&mut self) {
        (self.took, self.has_lists) = (Duration::ZERO, false);
        let pids = recorded_now(&self.scope);
        self.workers.retain(|pid, _| pids.contains(pid));
        self.refused.retain(|pid| pids.contains(pid));
        self.without.retain(|pid, _| pids.contains(pid));
        for pid in pids {
            self.poll(pid);
        }
    }

    fn poll(&mut self, pid: u32) {
        let now = Instant::now();
        let is_later = self.without.get(&pid).is_some_and(|&(next, _)| now < next);
        if is_later || self.refused.contains(&pid) {
            return;
        }
        let mut polls = match self.workers.remove(&pid) {
            Some(polls) => polls,
            None if self.workers.len() >= PROCESSES => return,
            None => {
                let Ok(worker) = RegisteredCode::begin(pid, PATIENCE) else { return };
                // If there was a worker, it read another program's code: that is gone.
                self.codes.remove(&pid);
                Polls { worker, last: None }
            }
        };
        let time = nanoseconds(ClockId::Monotonic);
        let since = polls.last.map(|last| last.saturating_add(1));
        let since = since.or_else(|| started(pid)).unwrap_or(time).min(time);
        match polls.worker.poll(since, &mut self.files) {
            Ok(polled) => {
                self.took = self.took.saturating_add(polled.took);
                self.is_full |= polled.is_full;
                self.has_lists |= polled.has_lists;
                if polled.new > 0 || !polled.gone.is_empty() {
                    let codes = self.codes.entry(pid).or_default();
                    for (dump, held) in polled.dumps {
                        if self.held.saturating_add(dump.len()) > HELD {
                            self.is_full = true;
                            continue;
                        }
                        self.held = self.held.saturating_add(dump.len());
                        codes.dumps.push((dump, held));
                    }
                    codes.gone.extend(polled.gone.iter().map(|code| (*code, time)));
                }
                polls.last = Some(time);
                let is_one_of_many = matches!(self.scope, Scope::User(_) | Scope::All);
                if !polled.has_lists && is_one_of_many {
                    // Each worker takes memory, and few processes have a list.
                    let longer = self.without.get(&pid).map_or(WITHOUT, |(_, wait)| *wait * 2);
                    self.without.insert(pid, (now + longer, longer.min(RARELY)));
                } else {
                    self.without.remove(&pid);
                    self.workers.insert(pid, polls);
                }
            }
            // It has ended, or runs another program, which gets another worker.
            Err(error) if is_gone(&error) => {}
            Err(_) => {
                self.refused.insert(pid);
            }
        }
    }
}

impl Codes {
    /// Writes the codes that were not announced into a new folder in `folder`. Returns the path of the dump, if there is code in it.
    fn write(&self, pid: u32, folder: &Path, announced: &[Vec<u8>]) -> Result<Option<PathBuf>> {
        let dumps: Vec<Dump<'_>> =
            self.dumps.iter().filter_map(|(dump, _)| Dump::parse(dump).ok()).collect();
        let Some(first) = dumps.first() else { return Ok(None) };
        let folder = folder.join(format!("registered-{pid}"));
        let path = folder.join(format!("jit-{pid}.dump"));
        let failed = |error: String| Error::Format { path: path.clone(), cause: error };
        let config = WriterConfig::from(first.header());
        let mut writer =
            Writer::new(Vec::new(), &config).map_err(|error| failed(error.to_string()))?;
        // They are in the order of their times.
        for event in dumps.iter().flat_map(Dump::codes) {
            let Ok(CodeEvent::Load(code)) = event else { continue };
            let gone = self.gone.get(&code.index).copied();
            let _ = writer.code_as(&code, None, gone, code.index);
        }
        let announced: Vec<&[u8]> = announced.iter().map(Vec::as_slice).collect();
        let Some(dump) = beneath(writer.sink(), &announced) else { return Ok(None) };
        if Dump::parse(&dump).is_ok_and(|dump| dump.codes().next().is_none()) {
            return Ok(None);
        }
        fs::create_dir(&folder).map_err(Error::file(&folder))?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(&dump)).map_err(Error::file(&path))?;
        Ok(Some(path))
    }
}
