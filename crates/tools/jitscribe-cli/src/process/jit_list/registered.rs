//! The code that a process has registered, read by workers.

use std::io;
use std::time::Duration;

use super::files::{FileHeads, HeadsByFile, MappedFile};
use super::find::FindHeads;
use super::read::{Changes, ReadRegistered, Request, Times};
use crate::foreign::{self, Conversation, Patience, Reservation, Task};

/// The most files of one process that have lists.
const LISTS: usize = 32;
/// The most times that a process is asked at one poll, as it has mapped more files.
const AGAIN: usize = 20;

/// A process whose lists are read.
#[derive(Debug)]
pub struct RegisteredCode {
    pid: u32,
    worker: Conversation,
    patience: Patience,
    lists: Vec<FileHeads>,
    /// Files that could not be searched, and how often they are searched again.
    unsearched: (Vec<MappedFile>, u32),
}

/// What has changed since the last poll.
#[derive(Debug, Default)]
pub struct Polled {
    /// Jitdumps of the codes that are new.
    pub dumps: Vec<(Vec<u8>, Reservation)>,
    /// The numbers of codes that are gone.
    pub gone: Vec<u64>,
    /// How many codes are new.
    pub new: u64,
    /// Whether the process has lists.
    pub has_lists: bool,
    /// The addresses of the functions that it calls after each change of a list.
    pub called: Vec<u64>,
    /// Whether there may be more code, which is not read.
    pub is_full: bool,
    /// The processor time that the worker says it took.
    pub took: Duration,
}

impl RegisteredCode {
    /// Starts a worker for a process.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn begin(pid: u32, patience: Patience) -> io::Result<Self> {
        let worker = Conversation::begin(Task::Registered(ReadRegistered { pid }), patience)?;
        Ok(Self { pid, worker, patience, lists: Vec::new(), unsearched: (Vec::new(), 3) })
    }

    /// Reads the lists. Codes that are new were registered at `times`.
    ///
    /// # Errors
    /// If the process has ended or runs another program, may not be read, or the worker does not answer.
    pub fn poll(&mut self, times: Times, known: &mut HeadsByFile) -> io::Result<Polled> {
        let mut polled = Polled::default();
        if let (1.., 1..) = (self.unsearched.0.len(), self.unsearched.1) {
            self.unsearched.1 -= 1;
            let files = std::mem::take(&mut self.unsearched.0);
            self.search(files, known);
        }
        for _ in 0..AGAIN {
            let request = Request { times, files: self.lists.clone() };
            let answer = self.worker.ask(&serde_json::to_vec(&request)?, self.patience)?;
            let (changes, dump) = split(&answer.bytes).ok_or(io::ErrorKind::InvalidData)?;
            polled.gone.extend(&changes.gone);
            polled.called = changes.called;
            polled.new = polled.new.saturating_add(changes.new);
            polled.is_full |= changes.is_full;
            polled.took = polled.took.saturating_add(Duration::from_nanos(changes.took));
            if changes.new > 0 {
                polled.dumps.push((dump.to_vec(), answer.held));
            }
            if changes.files.is_empty() {
                break;
            }
            self.search(changes.files, known);
        }
        polled.has_lists = !self.lists.is_empty();
        Ok(polled)
    }

    /// Searches files for lists.
    fn search(&mut self, files: Vec<MappedFile>, known: &mut HeadsByFile) {
        let unknown: Vec<MappedFile> =
            files.iter().filter(|file| known.get(file).is_none()).cloned().collect();
        if !unknown.is_empty() {
            let task = Task::FindHeads(FindHeads { pid: self.pid, files: unknown.clone() });
            let answer = foreign::run(task, Vec::new(), self.patience).ok();
            let found: Option<Vec<FileHeads>> =
                answer.and_then(|answer| serde_json::from_slice(&answer.bytes).ok());
            match found {
                Some(found) => {
                    for file in unknown {
                        let heads = found.iter().find(|heads| heads.file == file).cloned();
                        known.remember(file, heads);
                    }
                }
                // The worker was late, or the process begins another program.
                None => self.unsearched.0.extend(unknown),
            }
        }
        for file in files {
            if let Some(Some(heads)) = known.get(&file)
                && self.lists.len() < LISTS
            {
                self.lists.push(heads.clone());
            }
        }
    }
}

/// The parts of an answer.
fn split(answer: &[u8]) -> Option<(Changes, &[u8])> {
    let (size, rest) = answer.split_first_chunk()?;
    let size = usize::try_from(u64::from_ne_bytes(*size)).ok()?;
    let (changes, dump) = rest.split_at_checked(size)?;
    Some((serde_json::from_slice(changes).ok()?, dump))
}
