//! The worker task that reads a log.

use std::io;
use std::os::fd::OwnedFd;

use code_log::Head;
use serde::{Deserialize, Serialize};

use super::log_dump::{CodeBytes, DumpContext, LogDump, dump_of};
use super::memory::Memory;
use super::source::{LogSource, read_all};
use crate::foreign::{Answer, Output, Owner, Progress};

/// The limit, in bytes, for the earlier dump of the log.
const EARLIER: usize = 2 << 30;

/// The task: convert a log that was found to a jitdump.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadLog {
    /// The owner whose privileges are sufficient.
    pub owner: Owner,
    /// The start of the mapping.
    pub start: u64,
    /// The end of the mapping.
    pub end: u64,
    /// Whether it is a file that other tools read as a dump.
    pub is_dump: bool,
    /// The time up to which its codes belong to the process.
    pub until: Option<u64>,
    /// Whether to return the dump, or only the number of codes in it.
    pub is_whole: bool,
    /// Whether to read the bytes of live code from memory.
    pub fetch: bool,
    /// The number of logs that share the limit for bytes read from memory.
    pub sharing: u64,
    /// The descriptors that are passed, in this order.
    pub passed: PassedDescriptors,
}

/// Which descriptors are passed to a worker.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct PassedDescriptors {
    /// The log's file.
    pub file: bool,
    /// The process's memory.
    pub memory: bool,
    /// The process's `pagemap`.
    pub pages: bool,
    /// An earlier dump of the log.
    pub earlier: bool,
}

/// The descriptors themselves.
#[derive(Debug)]
pub struct Descriptors {
    pub file: Option<OwnedFd>,
    pub memory: Option<OwnedFd>,
    pub pages: Option<OwnedFd>,
    pub earlier: Option<OwnedFd>,
}

impl PassedDescriptors {
    pub fn take(self, descriptors: Vec<OwnedFd>) -> Descriptors {
        let mut descriptors = descriptors.into_iter();
        let mut next = |is_there: bool| if is_there { descriptors.next() } else { None };
        Descriptors {
            file: next(self.file),
            memory: next(self.memory),
            pages: next(self.pages),
            earlier: next(self.earlier),
        }
    }
}

/// The header of the answer, before the dump.
#[derive(Debug, Serialize, Deserialize)]
struct Figures {
    codes: u64,
    alive: u64,
    without_bytes: u64,
    over_budget: u64,
    torn: u64,
    is_cut: bool,
    head: Vec<u8>,
}

impl ReadLog {
    pub fn perform(&self, passed: Vec<OwnedFd>, output: &mut Output) -> io::Result<()> {
        let passed = self.passed.take(passed);
        self.owner.lock_down()?;
        let earlier = passed.earlier.as_ref().map(read_to_end).transpose()?;
        let mapped = self.start..self.end;
        let source =
            LogSource::new(passed.file.as_ref(), passed.memory.as_ref(), &mapped, self.is_dump);
        let progress = Progress::new(output);
        let source = source.ok_or(io::ErrorKind::PermissionDenied)?.with_progress(&progress);
        let head = source.head_bytes().ok_or(io::ErrorKind::UnexpectedEof)?;
        let pages = passed.pages.as_ref();
        let memory = passed.memory.as_ref().map(|memory| Memory::new(memory, pages, &progress));
        let memory = memory.as_ref().filter(|_| self.fetch).map(|memory| memory as &dyn CodeBytes);
        let budget = source.budget();
        let context = DumpContext {
            memory,
            sharing: self.sharing,
            until: self.until,
            budget,
            earlier: earlier.as_deref(),
            progress: Some(&progress),
        };
        let dump = dump_of(&source, context).map_err(|error| match error {
            code_log::Error::Read { cause, .. } => cause,
            other => io::Error::other(other.to_string()),
        })?;
        let figures = serde_json::to_vec(&Figures {
            codes: dump.codes,
            alive: dump.alive,
            without_bytes: dump.without_bytes,
            over_budget: dump.over_budget,
            torn: dump.torn,
            is_cut: dump.is_cut,
            head,
        })?;
        output.bytes(&(figures.len() as u64).to_ne_bytes())?;
        output.bytes(&figures)?;
        if self.is_whole {
            output.bytes(&dump.bytes)?;
        }
        Ok(())
    }
}

/// Parses a worker's answer. `None` if it is malformed.
pub fn dump(answer: Answer) -> Option<LogDump> {
    let Answer { bytes: mut answer, held, .. } = answer;
    let (size, rest) = answer.split_first_chunk()?;
    let size = usize::try_from(u64::from_ne_bytes(*size)).ok()?;
    let figures: Figures = serde_json::from_slice(rest.get(..size)?).ok()?;
    let head = Head::parse(&figures.head).ok()?;
    answer.drain(..8 + size);
    Some(LogDump {
        bytes: answer,
        codes: figures.codes,
        alive: figures.alive,
        without_bytes: figures.without_bytes,
        over_budget: figures.over_budget,
        torn: figures.torn,
        is_cut: figures.is_cut,
        head,
        held,
    })
}

fn read_to_end(file: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut part = vec![0; 1 << 20];
    loop {
        let count = read_all(file, bytes.len() as u64, &mut part)?;
        bytes.extend_from_slice(part.get(..count).unwrap_or_default());
        if count < part.len() || bytes.len() > EARLIER {
            return Ok(bytes);
        }
    }
}
