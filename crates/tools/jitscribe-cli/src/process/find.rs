//! The worker task that finds the code logs of a process.
//!
//! A log is found by its mapping, not by a descriptor: a process may change or close its descriptors at any moment. All files are
//! opened here, once; `docs/design/foreign-processes.md` explains the order.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use code_log::Head;
use rustix::fs::{Dir, FileType, OFlags, fstat, makedev, readlinkat};
use serde::{Deserialize, Serialize};

use super::context::ListedLogs;
use super::memory::{Mapping, Mappings};
use super::source::LogSource;
use crate::files::{FileSystem, reopen};
use crate::foreign::{Output, Owner, Target};

/// The maximum number of logs of one process.
const LOGS: usize = 32;

/// The task: find the logs of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FindLogs {
    /// The process.
    pub pid: u32,
    /// Whether requests will be sent: the memory of the process is then opened for writing as well.
    pub for_requests: bool,
}

/// What was found. Descriptors are given as indices into those of the answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProcessLogs {
    /// The owner of the process.
    pub owner: Owner,
    /// The descriptor of its memory, or the error number for opening it.
    pub memory: Result<usize, i32>,
    /// The descriptor of its `pagemap`.
    pub pages: Option<usize>,
    /// The logs.
    pub logs: Vec<LogMapping>,
    /// What the process says about them to readers of OpenTelemetry's process context.
    pub listed: ListedLogs,
    /// Whether it has executable memory without a file, or has mapped a jitdump: it may be described by files.
    pub has_code_memory: bool,
}

/// A log that was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LogMapping {
    /// The start of its mapping.
    pub start: u64,
    /// The end of its mapping.
    pub end: u64,
    /// The device of its file.
    pub device: u64,
    /// The inode number of its file.
    pub inode: u64,
    /// Whether it is a file that other tools read as a dump.
    pub is_dump: bool,
    /// The path through which it was found.
    pub place: Vec<u8>,
    /// Its first bytes.
    pub head: Vec<u8>,
    /// The descriptor of its file, opened for reading.
    pub file: Option<usize>,
}

/// A mapping that may be a log.
#[derive(Debug)]
struct Candidate {
    mapping: Mapping,
    kind: LogKind,
    file: Option<(OwnedFd, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogKind {
    /// A memfd.
    Memory,
    /// A file that other tools read as a dump.
    Dump,
    /// Shared memory without a descriptor.
    Anonymous,
}

impl FindLogs {
    pub fn perform(&self, output: &mut Output) -> io::Result<()> {
        let target = Target::open(self.pid)?;
        let owner = target.owner()?;
        // Open the memory first, the mappings second: if the process runs another program in between, the descriptor refers to
        // the memory of the old program, which can no longer be read or written.
        let access = if self.for_requests { OFlags::RDWR } else { OFlags::RDONLY };
        let memory = target.file("mem", access);
        let pages = target.file("pagemap", OFlags::RDONLY).ok();
        let mappings = Mappings(target.file("maps", OFlags::RDONLY)?.into());
        let Mapped { mut candidates, contexts, has_code_memory } = Mapped::read(mappings)?;
        if !candidates.is_empty() {
            find_files(&target, self.pid, &mut candidates)?;
        }
        // The process now runs a program with other privileges, and the open files may be those of that program.
        if target.owner()? != owner {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        owner.lock_down()?;
        let listed = ListedLogs::read(memory.as_ref().ok(), &contexts);
        let found = ProcessLogs {
            owner,
            memory: Err(0),
            pages: None,
            logs: Vec::new(),
            listed,
            has_code_memory,
        };
        answer(found, memory, pages, candidates, self.pid, output)
    }
}

/// Answers with `found`, to which the logs and the descriptors are added.
fn answer(
    mut found: ProcessLogs,
    memory: io::Result<OwnedFd>,
    pages: Option<OwnedFd>,
    candidates: Vec<Candidate>,
    pid: u32,
    output: &mut Output,
) -> io::Result<()> {
    let mut logs = Vec::new();
    let mut descriptors: Vec<OwnedFd> = Vec::new();
    let mut seen = Vec::new();
    for Candidate { mapping, kind, file } in candidates {
        // The same log may be mapped twice.
        let identity = (mapping.device, mapping.inode);
        if seen.contains(&identity) {
            continue;
        }
        let is_dump = kind == LogKind::Dump;
        let memory = memory.as_ref().ok();
        let Some(source) =
            LogSource::new(file.as_ref().map(|(file, _)| file), memory, &mapping.range, is_dump)
        else {
            continue;
        };
        let Some(head) = source.head_bytes() else { continue };
        seen.push(identity);
        let at = format!("/proc/{pid}/mem at {:#x}", mapping.range.start);
        let (file, place) = file.map_or((None, at), |(file, place)| (Some(file), place));
        logs.push(LogMapping {
            start: mapping.range.start,
            end: mapping.range.end,
            device: mapping.device,
            inode: mapping.inode,
            is_dump,
            place: place.into_bytes(),
            head,
            file: file.map(|file| {
                descriptors.push(file);
                descriptors.len() - 1
            }),
        });
        if logs.len() == LOGS {
            break;
        }
    }
    let mut hand = |descriptor: OwnedFd| {
        descriptors.push(descriptor);
        descriptors.len() - 1
    };
    found.memory = memory.map(&mut hand).map_err(|error| error.raw_os_error().unwrap_or(0));
    found.pages = pages.map(&mut hand);
    if logs.is_empty() {
        descriptors.clear();
    }
    for descriptor in &descriptors {
        output.descriptor(descriptor.as_fd())?;
    }
    found.logs = logs;
    output.bytes(&serde_json::to_vec(&found)?)
}

/// What the list of mappings has.
#[derive(Default)]
struct Mapped {
    /// The mappings that may be logs: shared, writable, from the beginning of a file with a suitable name.
    candidates: Vec<Candidate>,
    /// The addresses of process contexts.
    contexts: Vec<u64>,
    /// See [`ProcessLogs`].
    has_code_memory: bool,
}

impl Mapped {
    fn read(mut mappings: Mappings) -> io::Result<Self> {
        let mut mapped = Self::default();
        mappings.each(|mapping| mapped.add(mapping))?;
        Ok(mapped)
    }

    fn add(&mut self, mapping: Mapping) {
        let Self { candidates, contexts, has_code_memory } = self;
        *has_code_memory |= mapping.may_have_code();
        if contexts.len() < LOGS
            && !mapping.is_executable
            && process_context::may_be_context(&mapping.name)
        {
            contexts.push(mapping.range.start);
        }
        if !mapping.is_shared || !mapping.is_writable {
            return;
        }
        // `madvise` on a part splits a mapping in the list.
        if let Some(last) = candidates.last_mut()
            && last.mapping.is_continued_by(&mapping)
        {
            last.mapping.range.end = mapping.range.end;
            return;
        }
        if mapping.offset == 0
            && let Some(kind) = kind_of(&mapping.name)
            && candidates.len() < 4 * LOGS
        {
            candidates.push(Candidate { mapping, kind, file: None });
        }
    }
}

fn kind_of(name: &[u8]) -> Option<LogKind> {
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    match name {
        b"/memfd:jitscribe" => return Some(LogKind::Memory),
        b"/dev/zero" => return Some(LogKind::Anonymous),
        _ => {}
    }
    let file = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    (file.starts_with(b"jit-") && file.ends_with(b".dump")).then_some(LogKind::Dump)
}

/// Opens the files of candidates if they are what their names suggest.
fn find_files(target: &Target, pid: u32, candidates: &mut [Candidate]) -> io::Result<()> {
    let mut wanted: HashMap<(u64, u64), usize> = HashMap::new();
    for (number, candidate) in candidates.iter().enumerate() {
        if candidate.kind != LogKind::Anonymous {
            wanted.insert((candidate.mapping.device, candidate.mapping.inode), number);
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let folder = target.file("fd", OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut entries = Dir::read_from(&folder)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = entry.file_name();
        let Ok(link) = readlinkat(&folder, name, Vec::new()) else { continue };
        // This only saves work; the opened file is checked by itself.
        if kind_of(link.as_bytes()).is_none() {
            continue;
        }
        let path = format!("fd/{}", name.to_string_lossy());
        let Some((identity, file)) = open_log(target, &path) else { continue };
        if let Some(candidate) = wanted.remove(&identity).and_then(|at| candidates.get_mut(at)) {
            candidate.file = Some((file, format!("/proc/{pid}/{path}")));
        }
        if wanted.is_empty() {
            return Ok(());
        }
    }
    // The process has closed the descriptor. With sufficient privileges, the file is found through the mapping.
    for at in wanted.into_values() {
        let Some(candidate) = candidates.get_mut(at) else { continue };
        let range = &candidate.mapping.first;
        let path = format!("map_files/{:x}-{:x}", range.start, range.end);
        let is_it =
            |found: &(u64, u64)| *found == (candidate.mapping.device, candidate.mapping.inode);
        if let Some((_, file)) = open_log(target, &path).filter(|(found, _)| is_it(found)) {
            candidate.file = Some((file, format!("/proc/{pid}/{path}")));
        }
    }
    Ok(())
}

/// Opens a file in memory or on a disk for reading, and returns its device and inode as well. Nothing else is opened: this finds
/// the file with `O_PATH` first, and opens it only after checking its kind.
fn open_log(target: &Target, path: &str) -> Option<((u64, u64), OwnedFd)> {
    let found = target.file(path, OFlags::PATH).ok()?;
    let status = fstat(&found).ok()?;
    let is_file = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    if !is_file || FileSystem::of(&found) != FileSystem::Local {
        return None;
    }
    Some(((status.st_dev, status.st_ino), reopen(&found, OFlags::RDONLY).ok()?))
}

/// Parses a device number as in `/proc/PID/maps`.
pub fn device(text: &str) -> Option<u64> {
    let (major, minor) = text.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    Some(makedev(number(major)?, number(minor)?))
}

impl LogMapping {
    /// The parsed head, if it is valid.
    pub fn parsed_head(&self) -> Option<Head> {
        Head::parse(&self.head).ok()
    }
}
