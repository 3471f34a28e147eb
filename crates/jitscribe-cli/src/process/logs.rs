//! Finding the code logs of a process.
//!
//! A log shows in the process's list of files, as a memfd or a dump; where it lies in anonymous memory, in its
//! list of mappings. A process may have several: two copies of the library keep one each.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use code_log::{Head, Source};
use rustix::time::{ClockId, clock_gettime};

use super::memory::{Memory, Window, mappings};
use crate::{Error, Result};

/// A log that can be read, as long as this value lives: also when its process is gone.
#[derive(Debug)]
pub struct Log {
    /// The process that was asked for it.
    pub pid: u32,
    /// Its control words when it was found.
    pub head: Head,
    /// Where it was found, to tell logs apart.
    pub place: PathBuf,
    is_dump: bool,
    source: Found,
}

#[derive(Debug)]
enum Found {
    File(File),
    Memory(Window),
}

impl Source for Log {
    fn read_at(&self, at: u64, room: &mut [u8]) -> io::Result<usize> {
        match &self.source {
            Found::File(file) => Source::read_at(file, at, room),
            Found::Memory(window) => window.read_at(at, room),
        }
    }
}

impl Log {
    /// Whether the process keeps it itself. A child of a fork that has announced nothing yet still has its
    /// parent's.
    pub fn is_own(&self) -> bool {
        inner_pid(self.pid).is_none_or(|pid| pid == self.head.pid)
    }

    /// Whether it is a file that others read as a dump.
    pub fn is_dump(&self) -> bool {
        self.is_dump
    }

    /// Up to when its codes are those of the process: for a log that it still shares with its parent, up to the
    /// fork.
    pub fn until(&self) -> Option<u64> {
        // With the processor's counts it is not known.
        if self.is_own() || self.head.arch_timestamp { None } else { started(self.pid) }
    }

    /// What tells it from other logs, also from one that its process makes later: the process and its file, or the place
    /// in its memory.
    pub fn identity(&self) -> (u32, u64, u64) {
        match &self.source {
            // A file that cannot be asked is told of twice, which does no harm.
            Found::File(file) => {
                let (device, number) =
                    file.metadata().map_or((0, 0), |file| (file.dev(), file.ino()));
                (self.pid, device, number)
            }
            Found::Memory(window) => (self.pid, 0, window.start()),
        }
    }

    /// Reads the control words anew.
    pub fn head(&self) -> Result<Head> {
        let mut bytes = [0; Head::SIZE];
        Source::read_at(self, 0, &mut bytes).map_err(Error::file(&self.place))?;
        Head::parse(&bytes).map_err(Error::format(&self.place))
    }

    /// Writes the control word.
    pub fn set_control(&self, control: u32) -> Result<()> {
        let bytes = control.to_ne_bytes();
        let written = match &self.source {
            Found::File(_) => OpenOptions::new().write(true).open(&self.place).and_then(|file| {
                std::os::unix::fs::FileExt::write_all_at(&file, &bytes, Head::CONTROL)
            }),
            Found::Memory(window) => window.write_at(Head::CONTROL, &bytes),
        };
        written.map_err(Error::file(&self.place))?;
        if let Found::File(_) = &self.source
            && let Ok(file) = OpenOptions::new().read(true).write(true).open(&self.place)
        {
            super::wake(&file);
        }
        Ok(())
    }
}

/// The logs of process `pid`.
///
/// # Errors
/// If the process is not there, or may not be looked into.
pub fn logs_of(pid: u32) -> Result<Vec<Log>> {
    let folder = PathBuf::from(format!("/proc/{pid}/fd"));
    let entries = fs::read_dir(&folder).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::Refused(format!("there is no process {pid}")),
        io::ErrorKind::PermissionDenied => Error::Refused(format!(
            "process {pid} belongs to another user, or may not be looked into: run this as its user, or as root"
        )),
        _ => Error::File { path: folder.clone(), source: error },
    })?;
    let mut logs: Vec<Log> = Vec::new();
    for entry in entries.flatten() {
        let place = entry.path();
        let Ok(target) = fs::read_link(&place) else { continue };
        if !may_be_log(&target) {
            continue;
        }
        let Ok(file) = File::open(&place) else { continue };
        if let Some(head) = head_of(&file) {
            let is_dump = !target.starts_with("/memfd:jitscribe (deleted)");
            logs.push(Log { pid, head, place, is_dump, source: Found::File(file) });
        }
    }
    if logs.is_empty() {
        logs.extend(anonymous_logs(pid));
    }
    Ok(logs)
}

fn may_be_log(target: &Path) -> bool {
    let name = target.as_os_str().as_encoded_bytes();
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    if name == b"/memfd:jitscribe" {
        return true;
    }
    let file = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    file.starts_with(b"jit-") && file.ends_with(b".dump")
}

fn anonymous_logs(pid: u32) -> Vec<Log> {
    let Ok(maps) = mappings(pid) else { return Vec::new() };
    let Ok(memory) = Memory::of(pid) else { return Vec::new() };
    let shared = maps.iter().filter(|map| map.is_shared && map.is_writable && map.is_anonymous());
    shared
        .filter_map(|map| {
            let window = memory.window(map.range.clone()).ok()?;
            let head = head_of(&window)?;
            let place = PathBuf::from(format!("/proc/{pid}/mem at {:#x}", map.range.start));
            Some(Log { pid, head, place, is_dump: false, source: Found::Memory(window) })
        })
        .collect()
}

fn head_of(source: &impl Source) -> Option<Head> {
    let mut bytes = [0; Head::SIZE];
    let count = source.read_at(0, &mut bytes).ok()?;
    Head::parse(bytes.get(..count)?).ok()
}

/// All processes of this machine, as far as they can be seen.
pub fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The id of a process as it knows itself.
pub fn inner_pid(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NStgid:"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

/// The process that made this one, or took it over when that ended.
pub fn parent(pid: u32) -> Option<u32> {
    stat(pid)?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// What `/proc/PID/stat` has behind the process's name.
fn stat(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold anything.
    stat.rsplit_once(')').map(|(_, behind_name)| behind_name.to_owned())
}

/// When a process began, in nanoseconds of `CLOCK_MONOTONIC`, to a hundredth of a second.
fn started(pid: u32) -> Option<u64> {
    let ticks: u64 = stat(pid)?.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let since_boot = ticks.checked_mul(1_000_000_000 / rustix::param::clock_ticks_per_second())?;
    let asleep = nanoseconds(ClockId::Boottime).saturating_sub(nanoseconds(ClockId::Monotonic));
    since_boot.checked_sub(asleep)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    // Neither is ever negative on these clocks.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
