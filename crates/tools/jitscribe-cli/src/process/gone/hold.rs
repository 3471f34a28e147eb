//! The worker task that opens files that are gone from their paths, or may be soon.
//!
//! A file is opened through its mapping, never through a name that the process chose: as `map_files` has it, which needs privileges, as the process's program,
//! or as one of its descriptors with the same inode. If none can be opened, what is loaded of the file is read from the memory of the process.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use native_files::{LoadedFile, LoadedPart};
use rustix::fs::{Dir, OFlags, readlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::list::{MappedCode, PartsOfFile, parts};
use crate::files::Found;
use crate::foreign::{Output, Progress, Target};
use crate::process::memory::Mappings;
use crate::process::root::{FOLDER, open_in_root};
use crate::process::source::read_all;

/// What object files begin with.
const MAGIC: [u8; 4] = *b"\x7fELF";
/// The largest file that is copied while it still has its path.
const COPIED_EARLY: u64 = 64 << 20;
/// The most bytes that are read from memory in all.
const LOADED: u64 = 1 << 29;
/// The most descriptors of a process that are looked at.
const DESCRIPTORS: usize = 4096;

/// The task: open these files. The answer is the size of a list of [`Held`] in JSON, the list, the bytes that were read from memory, and the descriptors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HoldFiles {
    /// The process.
    pub pid: u32,
    /// Files that it has mapped.
    pub files: Vec<MappedCode>,
    /// How many bytes may be copied.
    pub left: u64,
    /// Files that still have their paths are opened if they were changed after this time, in seconds since 1970, or belong to the user of the command.
    pub since: i64,
}

/// A file that was looked at.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Held {
    /// Its index among those of the task.
    pub number: usize,
    /// Its content.
    pub content: HeldContent,
    /// What tells it from another file that gets its inode number later: its size and the time of its last change.
    pub version: [u64; 3],
}

/// The content of a file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum HeldContent {
    /// The next descriptor, of a file of this user, or a copy of so many bytes.
    Descriptor { copied: u64, owner: u32 },
    /// The next so many bytes: what is loaded of it.
    Loaded { size: u64 },
    /// It is no object file, or has its path and has had it for long.
    NotNeeded,
    /// It cannot be read.
    Unreadable,
}

impl HoldFiles {
    pub fn perform(&self, output: &mut Output) -> io::Result<()> {
        let target = Target::open(self.pid)?;
        let owner = target.owner()?;
        let effective = target.effective()?;
        let us = geteuid().as_raw();
        // The memory first, the mappings second: see `docs/design/foreign-processes.md`.
        let memory = target.file("mem", OFlags::RDONLY);
        let mut mappings = Mappings(target.file("maps", OFlags::RDONLY)?.into());
        let top = target.file("root", FOLDER).ok();
        let parts = parts(&mut mappings, &self.files)?;
        let found = self.find(&target, &parts);
        if target.owner()? != owner {
            return Err(Errno::SRCH.into());
        }
        // From here on, only what the process's user may read.
        effective.become_this()?;
        let mut answer = HeldAnswer::default();
        let unread = self.pass_on(found, top.as_ref(), us, &mut answer, output);
        owner.lock_down()?;
        let mut left = self.left.saturating_sub(answer.copied).min(LOADED);
        for number in unread {
            let memory = memory.as_ref().ok().zip(parts.get(number));
            let bytes = memory.and_then(|(memory, parts)| load(memory, parts, left, output));
            left = left.saturating_sub(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64));
            answer.add_loaded(number, bytes);
        }
        answer.send(output)
    }

    /// Sends the files that were found, and those that still have their paths and may be gone soon. Returns the indices of those that have to be read from memory.
    fn pass_on(
        &self,
        found: Vec<Option<Found>>,
        top: Option<&OwnedFd>,
        us: u32,
        answer: &mut HeldAnswer,
        output: &mut Output,
    ) -> Vec<usize> {
        let mut unread = Vec::new();
        for ((number, file), found) in self.files.iter().enumerate().zip(found) {
            let found = match file.is_gone() {
                true => found,
                false => top.and_then(|top| self.at_path(top, file, us)),
            };
            let Some(found) = found else {
                match file.is_gone() {
                    true => unread.push(number),
                    false => answer.held.push(Held::without(number, HeldContent::NotNeeded)),
                }
                continue;
            };
            let left = self.left.saturating_sub(answer.copied);
            match pass_on(found, number, left, us, output) {
                Some(one) => {
                    if let HeldContent::Descriptor { copied, .. } = one.content {
                        answer.copied = answer.copied.saturating_add(copied);
                    }
                    answer.held.push(one);
                }
                None => unread.push(number),
            }
        }
        unread
    }

    /// Finds those files that are gone, with our privileges, and opens none.
    fn find(&self, target: &Target, parts: &[PartsOfFile]) -> Vec<Option<Found>> {
        let is_it = |found: &Found, file: &MappedCode| found.status.st_ino == file.inode;
        let at = |path: &str| Found::new(target.file(path, OFlags::PATH).ok()?).ok();
        let mut found: Vec<Option<Found>> = self
            .files
            .iter()
            .zip(parts)
            .map(|(file, parts)| {
                let range = parts.executable.as_ref().filter(|_| file.is_gone())?;
                let mapped = at(&format!("map_files/{:x}-{:x}", range.start, range.end));
                mapped.or_else(|| at("exe")).filter(|found| is_it(found, file))
            })
            .collect();
        let mut missing: HashMap<&[u8], usize> = HashMap::new();
        for (number, file) in self.files.iter().enumerate() {
            if file.is_gone() && found.get(number).is_some_and(Option::is_none) {
                missing.insert(&file.name, number);
            }
        }
        if !missing.is_empty() {
            // The process may change its descriptors: what was found is checked.
            each_descriptor(target, |path, link| {
                let Some(&number) = missing.get(link) else { return };
                let file = self.files.get(number);
                let one = at(path).zip(file).filter(|(one, file)| is_it(one, file));
                if let Some(((one, _), place)) = one.zip(found.get_mut(number)) {
                    *place = Some(one);
                }
            });
        }
        found
    }

    /// The file at its path, if it is the one that is mapped and may be gone soon: it was written after the process began, which may delete at its end what it
    /// has written; or it belongs to user `us`, who may replace it, and who without privileges could not open it any more when it is gone.
    fn at_path(&self, top: &OwnedFd, file: &MappedCode, us: u32) -> Option<Found> {
        let path = Path::new(OsStr::from_bytes(&file.name));
        let found = open_in_root(top, path, OFlags::PATH | OFlags::NOFOLLOW).ok()?;
        let found = Found::new(found).ok()?;
        let is_young = found.status.st_ctime >= self.since;
        let is_own = us != 0 && found.status.st_uid == us && found.is_passed_on(us);
        let is_small =
            found.is_passed_on(us) || found.status.st_size.cast_unsigned() <= COPIED_EARLY;
        let is_it = found.status.st_ino == file.inode && is_small;
        (is_it && (is_young || is_own)).then_some(found)
    }
}

/// The answer.
#[derive(Default)]
struct HeldAnswer {
    held: Vec<Held>,
    /// How many bytes were copied.
    copied: u64,
    loaded: Vec<Vec<u8>>,
}

impl HeldAnswer {
    /// Adds what is loaded of a file.
    fn add_loaded(&mut self, number: usize, bytes: Option<Vec<u8>>) {
        let Some(bytes) = bytes else {
            self.held.push(Held::without(number, HeldContent::Unreadable));
            return;
        };
        let size = bytes.len() as u64;
        let version = [size, hash(&bytes), 0];
        self.held.push(Held { number, content: HeldContent::Loaded { size }, version });
        self.loaded.push(bytes);
    }

    /// Sends all but the descriptors, which were sent before.
    fn send(&self, output: &mut Output) -> io::Result<()> {
        let list = serde_json::to_vec(&self.held)?;
        output.bytes(&(list.len() as u64).to_ne_bytes())?;
        output.bytes(&list)?;
        self.loaded.iter().try_for_each(|bytes| output.bytes(bytes))
    }
}

impl Held {
    fn without(number: usize, content: HeldContent) -> Self {
        Self { number, content, version: [0; 3] }
    }
}

/// Passes each descriptor of the process to `each`: its path below the process's folder, and what it leads to.
fn each_descriptor(target: &Target, mut each: impl FnMut(&str, &[u8])) {
    let Ok(folder) = target.file("fd", OFlags::RDONLY | OFlags::DIRECTORY) else { return };
    let Ok(entries) = Dir::read_from(&folder) else { return };
    for entry in entries.take(DESCRIPTORS).flatten() {
        let name = entry.file_name();
        let Ok(link) = readlinkat(&folder, name, Vec::new()) else { continue };
        each(&format!("fd/{}", name.to_string_lossy()), link.as_bytes());
    }
}

/// Sends a file to the command; `None` if it cannot be read.
fn pass_on(found: Found, number: usize, left: u64, us: u32, output: &mut Output) -> Option<Held> {
    let found = found.open().ok()?;
    let mut magic = [0; 4];
    if read_all(&found.file, 0, &mut magic).ok()? < magic.len() || magic != MAGIC {
        return Some(Held::without(number, HeldContent::NotNeeded));
    }
    let status = &found.status;
    let seconds = status.st_mtime.cast_unsigned();
    // Signed or not, depending on how rustix calls the system.
    let nanoseconds = u64::try_from(i128::from(status.st_mtime_nsec)).unwrap_or(0);
    let version = [status.st_size.cast_unsigned(), seconds, nanoseconds];
    let owner = status.st_uid;
    let copied = found.pass_on(left, us, output).ok()?;
    Some(Held { number, content: HeldContent::Descriptor { copied, owner }, version })
}

/// What is loaded of a file, put together as a file.
fn load(memory: &OwnedFd, parts: &PartsOfFile, left: u64, output: &mut Output) -> Option<Vec<u8>> {
    let progress = Progress::new(output);
    let memory = ProcessMemory { memory, progress: &progress };
    let parts = parts.parts.iter();
    let parts: Vec<LoadedPart> =
        parts.map(|(range, offset)| LoadedPart { range: range.clone(), offset: *offset }).collect();
    LoadedFile::read(&memory, &parts, left)?.into_bytes()
}

/// The memory of a process.
struct ProcessMemory<'m, 'o> {
    memory: &'m OwnedFd,
    progress: &'m Progress<'o>,
}

impl jitdump::ReadAt for ProcessMemory<'_, '_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.progress.report();
        read_all(self.memory, offset, buffer)
    }
}

/// A hash of bytes, by which the same file is known again.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
