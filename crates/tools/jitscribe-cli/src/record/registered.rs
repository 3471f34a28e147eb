//! Reads, while perf records, the code that the recorded processes register with GDB's JIT interface: numba, JAX, PostgreSQL and others
//! announce their code in no other way, and PostgreSQL unregisters it after each query. Code that is announced in no way at all (LuaJIT's traces, PCRE2's expressions) is found
//! in their memory by the same workers.
//!
//! The lists are read by [`polling`](super::polling). The code is copied when it is first seen. At the end, what was seen is written as one jitdump for
//! each process.
//!
//! The interface has no times. A code counts from the poll before the one that saw it: then, it was not there. With `--exact-times`, a
//! [breakpoint](super::breakpoints) says when the list has changed, and the list is read at once.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jitdump::{CodeEvent, CodeLoad, Dump, Writer, WriterConfig};
use rustix::time::ClockId;

use super::breakpoints::Breakpoints;
use super::polling::{Asked, Poll, Polling};
use super::recorded_processes::is_gone;
use super::scope::Scope;
use crate::files::Named;
use crate::foreign::{Limit, Patience, Reservation};
use crate::process::{
    Announced, RegisteredCode, RegistrationTimes, SearchedFiles, nanoseconds, started,
};
use crate::{Error, Result, note};

/// The limit, in bytes, for what is held of all processes.
const HELD: usize = 256 << 20;

/// The most bytes that are scanned at one poll for code that is announced in no way. This takes some 10 ms.
const SCAN: u64 = 16 << 20;

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
pub struct RegisteredReader(Polling<Lists>);

impl RegisteredReader {
    /// Begins to read the lists of the processes in `scope` or, if perf starts the command, of its processes. What processes that the
    /// user named have registered so far is read at once.
    pub fn start(scope: &Scope, exact_times: bool) -> Self {
        let lists = Lists { timing: exact_times.then(Timing::default), ..Lists::default() };
        Self(Polling::start("registered", scope, lists, scope.is_named()))
    }

    /// Reads the lists once more, and writes what was seen to dumps in `folder`, except for code that is in the process's own dump among
    /// `announced`. Returns the dumps and their processes.
    pub fn finish(mut self, folder: &Path, announced: &[Named]) -> Vec<Named> {
        let Some(lists) = self.0.stop() else { return Vec::new() };
        if lists.is_full {
            note::warning(
                "a process has registered more code with GDB's JIT interface, or has more in its memory, than is read: the rest has no names",
            );
        }
        if let Some(timing) = &lists.timing {
            timing.report();
        }
        let mut dumps = Vec::new();
        say_found(&lists.codes);
        for (pid, codes) in lists.codes {
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
}

/// Says how much code was found.
fn say_found(codes: &BTreeMap<u32, Codes>) {
    let found: Vec<(u32, u64)> = codes
        .iter()
        .map(|(pid, codes)| (*pid, codes.found))
        .filter(|(_, found)| *found > 0)
        .collect();
    match found.as_slice() {
        [] => {}
        [(pid, count)] => note::say(found_text(*count, &format!("process {pid}"))),
        all => {
            let count = all.iter().map(|(_, found)| found).sum();
            note::say(found_text(count, &format!("{} processes", all.len())));
        }
    }
}

/// Says that code was found, not announced.
pub fn found_text(count: u64, whose: &str) -> String {
    let codes = if count == 1 { "code" } else { "codes" };
    format!(
        "{count} {codes} found in the memory of {whose}, not announced (LuaJIT's traces, PCRE2's expressions)"
    )
}

/// What the lists had so far.
#[derive(Debug, Default)]
struct Lists {
    codes: BTreeMap<u32, Codes>,
    files: SearchedFiles,
    is_full: bool,
    held: usize,
    /// With `--exact-times`.
    timing: Option<Timing>,
}

/// What came of the request for exact times.
#[derive(Debug, Default)]
struct Timing {
    /// How many changes of lists breakpoints have seen.
    changes: usize,
    /// A process in which no breakpoint could be set, and why.
    refused: Option<(u32, io::Error)>,
}

/// The polls of one process.
struct Polls {
    worker: RegisteredCode,
    /// The time of the last one.
    last: Option<u64>,
    /// The functions that the process calls after each change of a list.
    called: Vec<u64>,
    breakpoints: Breakpoints,
}

impl Polls {
    /// When the process has changed its lists since the last poll, as far as breakpoints say it. Sets them where there are none.
    fn changes(&mut self, pid: u32, timing: Option<&mut Timing>) -> Vec<u64> {
        let Some(timing) = timing else { return Vec::new() };
        let changes = self.breakpoints.calls();
        if let Err(error) = self.breakpoints.set(pid, &self.called)
            && !is_gone(&error)
        {
            timing.refused.get_or_insert((pid, error));
        }
        timing.changes = timing.changes.saturating_add(changes.len());
        changes
    }
}

/// The codes of one process.
#[derive(Debug, Default)]
struct Codes {
    /// Jitdumps.
    dumps: Vec<(Vec<u8>, Reservation)>,
    /// When codes were seen to be gone, by their numbers.
    gone: HashMap<u64, u64>,
    /// How many codes were found, not registered.
    found: u64,
}

impl Poll for Lists {
    type Worker = Polls;

    const LONGEST: Duration = Duration::from_millis(20);
    const WITHOUT: Duration = Duration::from_millis(100);

    fn begin(&mut self, pid: u32) -> io::Result<Polls> {
        let worker = RegisteredCode::begin(pid, PATIENCE)?;
        Ok(Polls { worker, last: None, called: Vec::new(), breakpoints: Breakpoints::default() })
    }

    fn ask(&mut self, pid: u32, polls: &mut Polls) -> io::Result<ControlFlow<(), Asked>> {
        let changes = polls.changes(pid, self.timing.as_mut());
        let time = nanoseconds(ClockId::Monotonic);
        let since = polls.last.map(|last| last.saturating_add(1));
        let earliest = changes.first().copied().or(since);
        let earliest = earliest.or_else(|| started(pid)).unwrap_or(time).min(time);
        let times = RegistrationTimes { earliest, last: changes.last().copied() };
        let polled = polls.worker.poll(times, SCAN, &mut self.files)?;
        if polls.last.replace(time).is_none() {
            // If there was another worker, it read another program's code: that is gone.
            self.codes.remove(&pid);
        }
        polls.called.clone_from(&polled.called);
        self.is_full |= polled.is_full;
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
            codes.found = codes.found.saturating_add(polled.found);
            codes.gone.extend(polled.gone.iter().map(|code| (*code, time)));
        }
        Ok(ControlFlow::Continue(Asked {
            has_any: polled.has_any,
            is_whole: polled.is_whole,
            took: polled.took,
        }))
    }

    fn alarms(polls: &Polls) -> Vec<BorrowedFd<'_>> {
        polls.breakpoints.descriptors().collect()
    }
}

impl Timing {
    /// Says what came of it.
    fn report(&self) {
        if let Some((pid, error)) = &self.refused {
            note::warning(format_args!(
                "--exact-times: no breakpoint can be set in process {pid}: {error}; its code has the times at which it was seen"
            ));
        }
        match self.changes {
            0 => note::say(
                "--exact-times: no process registered or unregistered code with GDB's JIT interface",
            ),
            changes => note::say(format_args!(
                "--exact-times: {changes} changes of the code that is registered with GDB's JIT interface have exact times"
            )),
        }
    }
}

impl Codes {
    /// Writes the codes that were not announced into a new folder in `folder`. Returns the path of the dump, if there is code in it.
    fn write(&self, pid: u32, folder: &Path, announced: &[Vec<u8>]) -> Result<Option<PathBuf>> {
        let announced: Vec<Dump<'_>> =
            announced.iter().filter_map(|dump| Dump::parse(dump).ok()).collect();
        let announced = Announced::of(&announced);
        let dumps: Vec<Dump<'_>> =
            self.dumps.iter().filter_map(|(dump, _)| Dump::parse(dump).ok()).collect();
        let Some(first) = dumps.first() else { return Ok(None) };
        let folder = folder.join(format!("registered-{pid}"));
        let path = folder.join(format!("jit-{pid}.dump"));
        let failed = |error: String| Error::Format { path: path.clone(), cause: error };
        let config = WriterConfig::from(first.header());
        let mut writer =
            Writer::new(Vec::new(), &config).map_err(|error| failed(error.to_string()))?;
        let mut has_code = false;
        let codes = dumps.iter().flat_map(Dump::codes).filter_map(|event| match event {
            Ok(CodeEvent::Load(code)) => Some(code),
            _ => None,
        });
        let mut codes: Vec<CodeLoad<'_>> = codes.collect();
        // Code that was not executable at once is read later.
        codes.sort_by_key(|code| code.timestamp);
        for code in codes {
            let gone = self.gone.get(&code.index).copied();
            if !announced.hide(&code, gone) {
                has_code = true;
                let _ = writer.code_as(&code, None, gone, code.index);
            }
        }
        if !has_code {
            return Ok(None);
        }
        fs::create_dir(&folder).map_err(Error::file(&folder))?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(writer.sink())).map_err(Error::file(&path))?;
        Ok(Some(path))
    }
}
