//! The files of a process that are gone or may be soon, held by the command.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use super::hold::{Held, HeldContent, HoldFiles};
use super::list::{ListCode, Listed, MappedCode};
use crate::files::{Opened, facts};
use crate::foreign::{self, Conversation, Patience, Reservation, Task};
use crate::process::logs::began;

/// The content of a file.
#[derive(Debug)]
pub enum FileBytes {
    /// The file, or a copy of it.
    File(Opened),
    /// What was loaded of it.
    Loaded(Vec<u8>, #[expect(dead_code, reason = "it counts while this exists")] Reservation),
    /// It could not be read.
    Unreadable,
}

/// A file that a process had mapped.
#[derive(Debug)]
pub struct HeldFile {
    /// The process.
    pub pid: u32,
    /// The file.
    file: MappedCode,
    /// What it contains.
    pub bytes: FileBytes,
    /// How many bytes of memory that takes.
    pub copied: u64,
    /// Tells it from another one that gets its inode number later.
    version: [u64; 3],
}

/// A process whose files are listed.
#[derive(Debug)]
pub struct GoneFiles {
    pid: u32,
    worker: Conversation,
    patience: Patience,
    /// Files that could not be read when they were new, and how often this is tried again.
    again: (Vec<MappedCode>, u32),
}

/// What has changed since the last poll.
#[derive(Debug, Default)]
pub struct Polled {
    /// Files that are new.
    pub held: Vec<HeldFile>,
    /// Whether the process has files that are gone.
    pub has_gone: bool,
    /// Whether all were read that could be. Others are tried again at the next poll.
    pub is_whole: bool,
    /// The processor time that the worker says it took.
    pub took: Duration,
}

/// Files that are there as they were before the processes began that have mapped them.
#[derive(Debug, Default)]
pub struct LastingFiles(HashSet<MappedCode>);

/// The most files that are remembered.
const REMEMBERED: usize = 1 << 16;

impl HeldFile {
    /// Its name as the kernel lists it.
    pub fn name(&self) -> &[u8] {
        &self.file.name
    }

    /// Its inode number.
    pub fn inode(&self) -> u64 {
        self.file.inode
    }

    /// Its name without what the kernel adds if it was deleted, and its inode number. Another file may get both when it is gone from all processes.
    pub fn place(&self) -> (&[u8], u64) {
        let name = &self.file.name;
        (name.strip_suffix(b" (deleted)").unwrap_or(name), self.file.inode)
    }

    /// Whether this is the file that another process has mapped, or this one had when it still had its path. What is only loaded of a file is not compared with
    /// a file that is held: while it is, no other gets its inode number.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let is_known = match (&self.bytes, &other.bytes) {
            (FileBytes::File(_), FileBytes::Loaded(..) | FileBytes::Unreadable) => true,
            _ => self.version == other.version,
        };
        self.place() == other.place() && is_known
    }

    /// Whether its path did not lead to it when it was opened.
    pub fn was_gone(&self) -> bool {
        self.file.is_gone()
    }

    /// Whether its path does not lead to it now.
    pub fn is_gone(&self) -> bool {
        if self.was_gone() {
            return true;
        }
        let path = String::from_utf8_lossy(&self.file.name);
        let paths =
            [PathBuf::from(format!("/proc/{}/root{path}", self.pid)), PathBuf::from(&*path)];
        let is_it =
            |path: PathBuf| facts(&path).is_ok_and(|facts| facts.inode.number == self.file.inode);
        !paths.into_iter().any(is_it)
    }
}

impl GoneFiles {
    /// Starts a worker for a process.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn begin(pid: u32, patience: Patience) -> io::Result<Self> {
        let worker = Conversation::begin(Task::ListCode(ListCode { pid }), patience)?;
        Ok(Self { pid, worker, patience, again: (Vec::new(), 3) })
    }

    /// Lists the files, and opens those that are gone or may be soon. Copies of them may have `left` bytes.
    ///
    /// # Errors
    /// If the process has ended or runs another program, may not be read, or the worker does not answer.
    pub fn poll(&mut self, lasting: &mut LastingFiles, left: u64) -> io::Result<Polled> {
        let answer = self.worker.ask(b"list", self.patience)?;
        let listed: Listed = serde_json::from_slice(&answer.bytes)?;
        let mut files = listed.files;
        files.retain(|file| !lasting.0.contains(file));
        if let (1.., 1..) = (self.again.0.len(), self.again.1) {
            self.again.1 -= 1;
            files.append(&mut self.again.0);
        }
        let held = if files.is_empty() { Vec::new() } else { self.hold(files, lasting, left) };
        let took = Duration::from_nanos(listed.took);
        let is_whole = self.again.0.is_empty();
        Ok(Polled { held, has_gone: listed.has_gone, is_whole, took })
    }

    /// Opens files.
    fn hold(
        &mut self,
        files: Vec<MappedCode>,
        lasting: &mut LastingFiles,
        left: u64,
    ) -> Vec<HeldFile> {
        let since = began(self.pid).and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let since = since.and_then(|since| i64::try_from(since.as_secs()).ok());
        let (pid, left) = (self.pid, Opened::copies_left().min(left));
        let task = HoldFiles { pid, files: files.clone(), left, since: since.unwrap_or(i64::MAX) };
        let answer = foreign::run(Task::HoldFiles(task), Vec::new(), self.patience).ok();
        let Some(all) = answer.and_then(|answer| held_files(pid, &files, answer)) else {
            // The worker was late, or the process begins another program.
            self.again.0 = files;
            return Vec::new();
        };
        let mut held = Vec::new();
        for (file, needed) in all {
            match (file.bytes, needed) {
                (_, false) if file.file.is_gone() => {}
                (_, false) => {
                    if lasting.0.len() >= REMEMBERED {
                        lasting.0.clear();
                    }
                    lasting.0.insert(file.file);
                }
                (FileBytes::Unreadable, true) if self.again.1 > 0 => self.again.0.push(file.file),
                (bytes, true) => held.push(HeldFile { bytes, ..file }),
            }
        }
        held
    }
}

/// The files in an answer, and whether each is needed; `None` if it is malformed.
fn held_files(
    pid: u32,
    files: &[MappedCode],
    answer: foreign::Answer,
) -> Option<Vec<(HeldFile, bool)>> {
    let (size, rest) = answer.bytes.split_first_chunk()?;
    let (list, mut loaded) =
        rest.split_at_checked(usize::try_from(u64::from_ne_bytes(*size)).ok()?)?;
    let list: Vec<Held> = serde_json::from_slice(list).ok()?;
    let mut descriptors = answer.descriptors.into_iter();
    let mut all = Vec::new();
    for Held { number, content, version } in list {
        let file = files.get(number)?.clone();
        let (bytes, needed) = match content {
            HeldContent::Descriptor { copied, owner } => {
                let opened = Opened::given(descriptors.next()?, copied, owner);
                (opened.map_or(FileBytes::Unreadable, FileBytes::File), true)
            }
            HeldContent::Loaded { size } => {
                let (bytes, rest) = loaded.split_at_checked(usize::try_from(size).ok()?)?;
                loaded = rest;
                let mut held = Reservation::default();
                match held.add(size) {
                    Ok(()) => (FileBytes::Loaded(bytes.to_vec(), held), true),
                    Err(_) => (FileBytes::Unreadable, true),
                }
            }
            HeldContent::NotNeeded => (FileBytes::Unreadable, false),
            HeldContent::Unreadable => (FileBytes::Unreadable, true),
        };
        let copied = match content {
            HeldContent::Descriptor { copied, .. } => copied,
            HeldContent::Loaded { size } => size,
            HeldContent::NotNeeded | HeldContent::Unreadable => 0,
        };
        all.push((HeldFile { pid, file, bytes, copied, version }, needed));
    }
    Some(all)
}
