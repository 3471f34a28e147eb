//! The code that a process has registered, read by workers.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use found_code::Compilers;

use super::files::{ByFile, FileCompilers, FileHeads, InFile, MappedFile, SearchedFiles};
use super::find::SearchFiles;
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
    /// Files that could not be searched for lists, and how often they are searched again.
    unsearched: (Vec<MappedFile>, u32),
    /// The compilers of the files that the process has mapped, as far as these were searched.
    compilers: Compilers,
    /// Files that are still to be searched for compilers.
    queue: VecDeque<MappedFile>,
}

/// The most files that are searched for compilers at one poll.
const AT_ONCE: usize = 8;

/// What has changed since the last poll.
#[derive(Debug, Default)]
pub struct Polled {
    /// Jitdumps of the codes that are new.
    pub dumps: Vec<(Vec<u8>, Reservation)>,
    /// The numbers of codes that are gone.
    pub gone: Vec<u64>,
    /// How many codes are new.
    pub new: u64,
    /// The addresses of the functions that it calls after each change of a list.
    pub called: Vec<u64>,
    /// How many of them were found, not registered.
    pub found: u64,
    /// Whether there are files that were not yet searched for compilers whose code can be found.
    pub is_partial: bool,
    /// Whether everything was read that there was. Otherwise the next poll goes on, also if the process has not run in between.
    pub is_whole: bool,
    /// Whether the process has lists, or a compiler whose code can be found.
    pub has_any: bool,
    /// Whether there may be more code, which is not read.
    pub is_full: bool,
    /// The processor time that the worker says it took.
    pub took: Duration,
}

impl Polled {
    /// Adds what a later poll says.
    pub fn add(&mut self, next: Self) {
        self.dumps.extend(next.dumps);
        self.gone.extend(next.gone);
        self.new = self.new.saturating_add(next.new);
        self.found = self.found.saturating_add(next.found);
        self.is_partial = next.is_partial;
        self.is_whole = next.is_whole;
        self.has_any |= next.has_any;
        self.is_full |= next.is_full;
        self.took = self.took.saturating_add(next.took);
    }
}

impl RegisteredCode {
    /// Starts a worker for a process.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn begin(pid: u32, patience: Patience) -> io::Result<Self> {
        let worker = Conversation::begin(Task::Registered(ReadRegistered { pid }), patience)?;
        let unsearched = (Vec::new(), 3);
        let compilers = Compilers::default();
        let (lists, queue) = (Vec::new(), VecDeque::new());
        Ok(Self { pid, worker, patience, lists, unsearched, compilers, queue })
    }

    /// Reads the lists, and scans up to `scan` bytes for other code. Codes that are new were registered at `times`; others are dated back to when they were last looked for.
    ///
    /// # Errors
    /// If the process has ended or runs another program, may not be read, or the worker does not answer.
    pub fn poll(
        &mut self,
        times: Times,
        scan: u64,
        known: &mut SearchedFiles,
    ) -> io::Result<Polled> {
        let mut polled = Polled::default();
        if let (1.., 1..) = (self.unsearched.0.len(), self.unsearched.1) {
            self.unsearched.1 -= 1;
            let files = std::mem::take(&mut self.unsearched.0);
            self.search_lists(files, known);
        }
        for _ in 0..AGAIN {
            let (files, unsearched) = self.ask(times, scan, &mut polled)?;
            let is_last = files.is_empty() && unsearched.is_empty();
            self.search_lists(files, known);
            self.enqueue(unsearched);
            if is_last {
                break;
            }
        }
        // Behind the lists: what is registered for a moment must not wait for large libraries.
        let before = self.compilers;
        self.search_compilers(known);
        if self.compilers != before {
            let (files, unsearched) = self.ask(times, scan, &mut polled)?;
            self.unsearched.0.extend(files);
            self.enqueue(unsearched);
        }
        polled.is_partial = !self.queue.is_empty();
        // The memory of a process that has a compiler is scanned in parts.
        polled.is_whole =
            !polled.is_partial && self.unsearched.0.is_empty() && self.compilers.is_empty();
        polled.has_any = !self.lists.is_empty() || !self.compilers.is_empty() || polled.is_partial;
        Ok(polled)
    }

    /// Asks the worker once. Returns the files that are new, and those that are to be searched for compilers.
    fn ask(
        &mut self,
        times: Times,
        scan: u64,
        polled: &mut Polled,
    ) -> io::Result<(Vec<MappedFile>, Vec<MappedFile>)> {
        let files = self.lists.clone();
        let request = Request { times, files, compilers: self.compilers, scan };
        let answer = self.worker.ask(&serde_json::to_vec(&request)?, self.patience)?;
        let (changes, dump) = split(&answer.bytes).ok_or(io::ErrorKind::InvalidData)?;
        polled.gone.extend(&changes.gone);
        polled.called = changes.called;
        polled.found = polled.found.saturating_add(changes.found);
        polled.new = polled.new.saturating_add(changes.new);
        polled.is_full |= changes.is_full;
        polled.took = polled.took.saturating_add(Duration::from_nanos(changes.took));
        if changes.new > 0 {
            polled.dumps.push((dump.to_vec(), answer.held));
        }
        Ok((changes.files, changes.unsearched))
    }

    /// Searches files for lists.
    fn search_lists(&mut self, files: Vec<MappedFile>, known: &mut SearchedFiles) {
        let unsearched = self.search(&files, &mut known.heads);
        // The worker was late, or the process begins another program.
        self.unsearched.0.extend(unsearched);
        for file in files {
            if let Some(Some(heads)) = known.heads.get(&file)
                && self.lists.len() < LISTS
            {
                self.lists.push(heads.clone());
            }
        }
    }

    /// Searches files for compilers later: first those that may be one, as their names say. The process may not run for long.
    fn enqueue(&mut self, files: Vec<MappedFile>) {
        for file in files {
            let name = file.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let is_likely =
                |compiler: &&[u8]| name.windows(compiler.len()).any(|it| it == *compiler);
            if [&b"pcre2"[..], b"luajit"].iter().any(is_likely) {
                self.queue.push_front(file);
            } else {
                self.queue.push_back(file);
            }
        }
    }

    /// Searches the next files for compilers.
    fn search_compilers(&mut self, known: &mut SearchedFiles) {
        let mut files = Vec::new();
        while files.len() < AT_ONCE
            && let Some(file) = self.queue.pop_front()
        {
            match known.compilers.get(&file) {
                Some(found) => self.add(found.as_ref()),
                None => files.push(file),
            }
        }
        self.search(&files, &mut known.compilers);
        for file in files {
            self.add(known.compilers.get(&file).and_then(Option::as_ref));
        }
    }

    fn add(&mut self, found: Option<&FileCompilers>) {
        let compilers = found.map(|found| found.compilers).unwrap_or_default();
        self.compilers = self.compilers.and(compilers);
    }

    /// Searches those files that are not known. Returns them if the worker does not answer.
    fn search<F: InFile>(&self, files: &[MappedFile], known: &mut ByFile<F>) -> Vec<MappedFile> {
        let is_unknown = |file: &&MappedFile| known.get(file).is_none();
        let unknown: Vec<MappedFile> = files.iter().filter(is_unknown).cloned().collect();
        if unknown.is_empty() {
            return unknown;
        }
        let task = SearchFiles { pid: self.pid, files: unknown.clone(), sought: F::SOUGHT };
        let answer = foreign::run(Task::SearchFiles(task), Vec::new(), self.patience).ok();
        let found: Option<Vec<F>> =
            answer.and_then(|answer| serde_json::from_slice(&answer.bytes).ok());
        let Some(found) = found else { return unknown };
        for file in unknown {
            let of_file = found.iter().find(|found| *found.file() == file).cloned();
            known.remember(file, of_file);
        }
        Vec::new()
    }
}

/// The parts of an answer.
fn split(answer: &[u8]) -> Option<(Changes, &[u8])> {
    let (size, rest) = answer.split_first_chunk()?;
    let size = usize::try_from(u64::from_ne_bytes(*size)).ok()?;
    let (changes, dump) = rest.split_at_checked(size)?;
    Some((serde_json::from_slice(changes).ok()?, dump))
}
