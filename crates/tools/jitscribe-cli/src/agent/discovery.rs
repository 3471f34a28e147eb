//! Examines processes for code logs and for memory with code, in a thread of its own: a process may delay its examination.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use code_agent::{FoundLog, ProcessFacts, ProcessKey};
use rustix::time::ClockId;

use super::look_age::LookAge;
use super::memory_file::MemoryFile;
use super::proc_files::{Stat, container, inner};
use crate::foreign::Patience;
use crate::process::{ExaminedProcess, Log, examine_all, nanoseconds};
use crate::{Error, Result};

/// What was found in a process.
#[derive(Debug)]
pub struct Examined {
    /// The process.
    pub key: ProcessKey,
    /// What was found; `None` if it could not be examined.
    pub found: Option<Found>,
}

/// What is known of a process.
#[derive(Debug)]
pub struct Found {
    /// The process.
    pub facts: ProcessFacts,
    /// Its logs.
    pub logs: Vec<FoundLog<MemoryFile>>,
    /// Whether it has memory with code that files may describe.
    pub has_code_memory: bool,
}

/// The thread that examines processes.
#[derive(Debug)]
pub struct Discovery {
    requests: Sender<Vec<u32>>,
    results: Receiver<Examined>,
    /// Becomes readable when there are results.
    pub bell: UnixStream,
    /// Since when the thread has given no sign.
    pub age: Arc<LookAge>,
}

impl Discovery {
    /// Starts the thread.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start() -> Result<Self> {
        let failed = |error: std::io::Error| {
            Error::Refused(format!("the thread that examines processes cannot be started: {error}"))
        };
        let (bell, mut ringer) = UnixStream::pair().map_err(failed)?;
        bell.set_nonblocking(true).map_err(failed)?;
        ringer.set_nonblocking(true).map_err(failed)?;
        let (requests, requested) = channel::<Vec<u32>>();
        let (sender, results) = channel();
        let age = Arc::new(LookAge::default());
        let looks = Arc::clone(&age);
        let work = move || {
            while let Ok(pids) = requested.recv() {
                examine(&pids, |examined| {
                    // One that was given up says nothing of the helper.
                    if examined.found.is_some() {
                        looks.sign(nanoseconds(ClockId::Monotonic));
                    }
                    let _ = sender.send(examined);
                    // It rings already if there is no space.
                    let _ = ringer.write(&[1]);
                });
                looks.end();
            }
        };
        thread::Builder::new().name("examine".to_owned()).spawn(work).map_err(failed)?;
        Ok(Self { requests, results, bell, age })
    }

    /// Has processes examined.
    pub fn examine(&self, pids: Vec<u32>) {
        if !pids.is_empty() {
            self.age.begin(nanoseconds(ClockId::Monotonic));
            let _ = self.requests.send(pids);
        }
    }

    /// What was found since the last call.
    pub fn results(&self) -> impl Iterator<Item = Examined> {
        let mut room = [0; 256];
        while std::io::Read::read(&mut &self.bell, &mut room).is_ok_and(|count| count == room.len())
        {
        }
        self.results.try_iter()
    }
}

/// Examines processes. A process that has ended is left out.
pub fn examine(pids: &[u32], mut done: impl FnMut(Examined)) {
    let starts: std::collections::HashMap<u32, u64> =
        pids.iter().filter_map(|pid| Some((*pid, Stat::read(*pid)?.start))).collect();
    let pids: Vec<u32> = starts.keys().copied().collect();
    examine_all(&pids, false, Patience::ONE_OF_MANY, |pid, examined| {
        let Some(&start) = starts.get(&pid) else { return };
        // Another process has its id now.
        if Stat::read(pid).is_none_or(|stat| stat.start != start) {
            return;
        }
        let key = ProcessKey { pid, start };
        let found = examined.ok().map(|ExaminedProcess { owner, logs, has_code_memory }| {
            let (owner, inner_pid, container) = (owner.user, inner(pid), container(pid));
            let facts = ProcessFacts { owner, inner_pid, container };
            let logs = logs.into_iter().filter_map(found_log).collect();
            Found { facts, logs, has_code_memory }
        });
        done(Examined { key, found });
    });
}

fn found_log(log: Log) -> Option<FoundLog<MemoryFile>> {
    let identity = log.file_identity();
    let (file, until) = log.into_memory_file()?;
    Some(FoundLog { identity, source: MemoryFile(file), until })
}
