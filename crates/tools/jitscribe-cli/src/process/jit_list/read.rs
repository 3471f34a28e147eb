//! The worker task that reads the lists of a process, again and again, and answers with what has changed.
//!
//! Each request is one reading. The process is not stopped.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;

use found_code::Compilers;
use gdb_jit_list::{Change, List};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::time::ClockId;
use serde::{Deserialize, Serialize};

use super::code::{CodeWriter, RegisteredAt, WrittenCode};
use super::files::{FileHeads, MappedFile};
use super::find::Descriptor;
use super::found::{Finding, Sought};
use crate::foreign::{Output, Progress, Target};
use crate::process::logs::nanoseconds;
use crate::process::memory::Mappings;
use crate::process::source::read_all;

/// The most files in one answer.
const FILES: usize = 256;
/// The most files of one process.
const ALL_FILES: usize = 4096;
/// The most codes that were unregistered and are watched.
const WATCHED: usize = 4096;

/// The most objects whose code is not executable yet, their bytes, and the most readings that they are kept for.
const AWAITED: usize = 1024;
const AWAITED_BYTES: usize = 64 << 20;
const READINGS: u32 = 100;

/// The task: read the lists of a process, once for each request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadRegistered {
    /// The process.
    pub pid: u32,
}

/// A request.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// When codes that are new can have been registered.
    pub times: Times,
    /// Files that have lists.
    pub files: Vec<FileHeads>,
    /// The compilers of all files.
    pub compilers: Compilers,
    /// The most bytes that are scanned for the code of these compilers.
    pub scan: u64,
}

/// When the process has changed its lists since the last request.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Times {
    /// The earliest time.
    pub earliest: u64,
    /// The time of the last change, if it is known.
    pub last: Option<u64>,
}

impl Times {
    /// When an object was registered that is new.
    fn of(self, is_last: bool) -> RegisteredAt {
        match self.last.filter(|_| is_last) {
            Some(last) => RegisteredAt { earliest: last, is_exact: true },
            None => RegisteredAt { earliest: self.earliest, is_exact: false },
        }
    }
}

/// The beginning of an answer, before the dump of the codes that are new.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Changes {
    /// Files that were not in an earlier answer.
    pub files: Vec<MappedFile>,
    /// The addresses of the functions that are called after each change of a list.
    pub called: Vec<u64>,
    /// Files that were not in an earlier answer, of a process that may have code of compilers.
    pub unsearched: Vec<MappedFile>,
    /// How many of the new codes were found, not registered.
    pub found: u64,
    /// The numbers of codes that are gone.
    pub gone: Vec<u64>,
    /// How many codes are new.
    pub new: u64,
    /// Whether there may be more code, which is not read.
    pub is_full: bool,
    /// The processor time that this took, in nanoseconds.
    pub took: u64,
}

impl ReadRegistered {
    /// Answers requests until the command sends no more.
    pub fn perform(&self, output: &mut Output) -> io::Result<()> {
        let target = Target::open(self.pid)?;
        let owner = target.owner()?;
        // All of the same program: a descriptor refers to the memory of the program that ran when it was opened.
        let memory = target.file("mem", OFlags::RDONLY)?;
        let mappings = Mappings(target.file("maps", OFlags::RDONLY)?.into());
        let mut reader = Reader {
            memory,
            mappings,
            finding: Finding::new(target.file("pagemap", OFlags::RDONLY).ok()),
            list: List::default(),
            writer: CodeWriter::new(self.pid, Some(ClockId::Monotonic)),
            listed: HashSet::new(),
            listed_with_code: HashSet::new(),
            of_object: HashMap::new(),
            awaited: HashMap::new(),
            watched: Vec::new(),
        };
        if target.owner()? != owner {
            return Err(Errno::SRCH.into());
        }
        owner.lock_down()?;
        let mut used = 0;
        let mut room = vec![0; 1 << 16];
        while let Some(request) = output.read_request(&mut room) {
            let request = serde_json::from_slice(request)?;
            let done = reader.read(&request, output).and_then(|(mut changes, dump)| {
                let before = std::mem::replace(&mut used, nanoseconds(ClockId::ProcessCPUTime));
                changes.took = used.saturating_sub(before);
                let changes = serde_json::to_vec(&changes)?;
                output.bytes(&(changes.len() as u64).to_ne_bytes())?;
                output.bytes(&changes)?;
                output.bytes(&dump)
            });
            output.finish(done)?;
        }
        Ok(())
    }
}

/// What is open of a process, and what was read.
struct Reader {
    memory: OwnedFd,
    mappings: Mappings,
    finding: Finding,
    list: List,
    writer: CodeWriter,
    /// The files that were in an answer.
    listed: HashSet<MappedFile>,
    /// The same for files of a process that may have code of compilers.
    listed_with_code: HashSet<MappedFile>,
    /// The codes of objects that are registered.
    of_object: HashMap<u64, Vec<WrittenCode>>,
    /// Objects whose code was not executable yet.
    awaited: HashMap<u64, Awaited>,
    /// Codes that are not registered any more, but are still there.
    watched: Vec<WrittenCode>,
}

/// An object whose code was not executable when it was read.
struct Awaited {
    object: Vec<u8>,
    time: RegisteredAt,
    /// How many readings it is still kept for.
    readings: u32,
}

/// What is mapped.
#[derive(Default)]
struct Mapped {
    /// Executable memory without a file, sorted.
    executable: Vec<Range<u64>>,
    /// That of files, sorted.
    of_files: Vec<Range<u64>>,
    files: Vec<MappedFile>,
    unsearched: Vec<MappedFile>,
    heads: Vec<u64>,
    called: Vec<u64>,
    /// Writable memory without a file, and memory without a file that is executable or was; sorted.
    memory: found_code::Mapped,
    /// An address that is mapped.
    any: Option<u64>,
}

impl Reader {
    fn read(&mut self, request: &Request, output: &mut Output) -> io::Result<(Changes, Vec<u8>)> {
        let mapped = self.mapped(&request.files)?;
        // The process may have begun another program while its files were opened: then the memory is that of the old one, of which the
        // kernel reads nothing.
        let is_gone = |any| matches!(read_all(&self.memory, any, &mut [0]), Ok(0));
        // A process that ends has nothing mapped.
        if mapped.any.is_none_or(is_gone) {
            return Err(Errno::SRCH.into());
        }
        let progress = Progress::new(output);
        let memory = Descriptor { descriptor: &self.memory, progress: &progress };
        let Self { list, writer, of_object, awaited, watched, finding, .. } = self;
        let failed = || io::Error::other("no jitdump for this machine");
        let mut dump = writer.dump(request.times.earliest).ok_or_else(failed)?;
        let mut changes = Changes {
            files: mapped.files,
            unsearched: mapped.unsearched,
            called: mapped.called,
            ..Changes::default()
        };
        let executable = &mapped.executable;
        let mut write = |object: &[u8], time| {
            let codes = writer.write(object, &memory, executable, time, &mut dump)?;
            changes.new += codes.len() as u64;
            Some(codes)
        };
        awaited.retain(|id, object| {
            object.readings -= 1;
            let codes = write(&object.object, object.time);
            let is_awaited = codes.is_none() && object.readings > 0;
            of_object.extend(codes.map(|codes| (*id, codes)));
            is_awaited
        });
        let mut unread: Vec<Awaited> = Vec::new();
        let mut held: usize = awaited.values().map(|object| object.object.len()).sum();
        list.poll(&memory, &mapped.heads, |change| match change {
            Change::Registered { id, object, is_last } => {
                match write(object, request.times.of(is_last)) {
                    Some(codes) => drop(of_object.insert(id, codes)),
                    None if awaited.len() < AWAITED && held + object.len() <= AWAITED_BYTES => {
                        held += object.len();
                        let object = object.to_vec();
                        let time = request.times.of(is_last);
                        awaited.insert(id, Awaited { object, time, readings: READINGS });
                    }
                    None => {}
                }
            }
            Change::Unregistered { id } => {
                // PostgreSQL frees code some milliseconds after it was registered.
                unread.extend(awaited.remove(&id));
                watched.extend(of_object.remove(&id).unwrap_or_default());
            }
        });
        for object in unread {
            let codes =
                writer.write_unread(&object.object, &mapped.of_files, object.time, &mut dump);
            changes.new += codes.len() as u64;
            changes.gone.extend(codes.into_iter().map(|code| code.index));
        }
        // llvmpipe unregisters code that it goes on to run; PostgreSQL unregisters code that it frees.
        let surplus = watched.len().saturating_sub(WATCHED);
        watched.drain(..surplus);
        watched.retain(|code| {
            let is_there = code.is_there(&memory, executable);
            if !is_there {
                changes.gone.push(code.index);
            }
            is_there
        });
        let Request { times, compilers, scan, .. } = *request;
        let sought = Sought { compilers, scan, time: times.earliest };
        let found = finding.poll(&sought, &mapped.memory, &memory, writer, &mut dump);
        changes.found = found.new;
        changes.new += found.new;
        changes.gone.extend(found.gone);
        changes.is_full = list.is_full() || writer.is_full() || finding.is_full();
        Ok((changes, dump.into_sink()))
    }

    fn mapped(&mut self, lists: &[FileHeads]) -> io::Result<Mapped> {
        let Self { mappings, listed, listed_with_code, finding, .. } = self;
        let mut mapped = Mapped::default();
        let mut all = Vec::new();
        let mut places = Vec::new();
        mappings.each(|mapping| {
            finding.see(&mapping, &mut mapped.memory);
            if !mapping.is_executable {
                return;
            }
            mapped.any.get_or_insert(mapping.range.start);
            if mapping.is_anonymous() {
                match mapped.executable.last_mut() {
                    Some(last) if last.end == mapping.range.start => last.end = mapping.range.end,
                    _ => mapped.executable.push(mapping.range),
                }
                return;
            }
            mapped.of_files.push(mapping.range.clone());
            if !mapping.name.starts_with(b"/") {
                return;
            }
            let (device, inode) = (mapping.device, mapping.inode);
            let file = MappedFile { device, inode, path: mapping.path().to_owned() };
            if lists.iter().any(|list| list.file == file) {
                places.push((file.clone(), mapping.range, mapping.offset));
            }
            let is_new = mapped.files.len() < FILES
                && listed.len() < ALL_FILES
                && listed.insert(file.clone());
            if is_new {
                mapped.files.push(file.clone());
            }
            if all.len() < ALL_FILES {
                all.push(file);
            }
        })?;
        if !mapped.memory.code.is_empty() {
            let is_new = |file: &MappedFile| listed_with_code.insert(file.clone());
            let new = all.into_iter().filter(is_new);
            mapped.unsearched.extend(new.take(FILES));
        }
        for list in lists {
            for (_, range, offset) in places.iter().filter(|(file, ..)| *file == list.file) {
                mapped.heads.extend(list.heads.in_process(range.clone(), *offset));
                mapped.called.extend(list.heads.called_in_process(range.clone(), *offset));
            }
        }
        for addresses in [&mut mapped.heads, &mut mapped.called] {
            addresses.sort_unstable();
            addresses.dedup();
        }
        Ok(mapped)
    }
}
