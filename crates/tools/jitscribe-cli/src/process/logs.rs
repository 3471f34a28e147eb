//! The code logs of processes. Workers find them, read them and send requests; this module holds them open.
//!
//! A log that was found can be read as long as its [`Log`] exists, even after its process has ended. A [`Log`] holds descriptors
//! of a memfd or of the process's memory, which can be closed without blocking. Workers do everything else.

use std::cell::RefCell;
use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use code_log::Head;
use rustix::fs::{CWD, FsWord, MemfdFlags, Mode, OFlags, fstatfs, memfd_create, openat};
use rustix::time::{ClockId, clock_gettime};

use super::context::ListedLogs;
use super::find::{FindLogs, LogMapping, ProcessLogs};
use super::log_dump::LogDump;
use super::read::{self, PassedDescriptors, ReadLog};
use super::request::RequestLog;
use crate::files::FileSystem;
use crate::foreign::{self, Answer, Job, Owner, Patience, Task, in_turns};
use crate::{Error, Result};

/// The type of the file system of a memfd.
const TMPFS: FsWord = libc::TMPFS_MAGIC as FsWord;

/// A log that can be read as long as this value exists, even after its process has ended.
#[derive(Debug)]
pub struct Log {
    /// The process in which it was found.
    pub pid: u32,
    /// Its head when it was found.
    pub head: Head,
    /// Where it was found, to distinguish logs.
    pub place: PathBuf,
    is_own: bool,
    /// Up to when its codes belong to the process, for a log of its parent; `None` if this is not known.
    until: Option<u64>,
    found: LogMapping,
    file: Option<OwnedFd>,
    process: Arc<Process>,
}

/// The open descriptors of a process.
#[derive(Debug)]
struct Process {
    owner: Owner,
    memory: Result<OwnedFd, i32>,
    pages: Option<OwnedFd>,
    /// The number of its logs.
    logs: u64,
    listed: ListedLogs,
    /// Set when reading its memory timed out. It is then not read again.
    is_unresponsive: AtomicBool,
}

impl Log {
    /// Whether the process writes the log itself. A forked child that has announced nothing yet still has its
    /// parent's log.
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    /// Whether it is a file that other tools read as a dump.
    pub fn is_dump(&self) -> bool {
        self.found.is_dump
    }

    /// The time up to which its codes belong to the process: the fork, for a log that it still shares with its
    /// parent.
    fn until(&self) -> Option<u64> {
        self.until
    }

    /// The identity of the log: the process and the file. A log that the process creates later has another identity.
    pub fn identity(&self) -> (u32, u64, u64) {
        (self.pid, self.found.device, self.found.inode)
    }

    /// The device and the inode of its file.
    pub fn file_identity(&self) -> (u64, u64) {
        (self.found.device, self.found.inode)
    }

    /// Its file and the time up to which its codes belong to the process, if reading it cannot block: a memfd.
    pub fn into_memory_file(self) -> Option<(fs::File, Option<u64>)> {
        let file = self.file.filter(|_| !self.found.is_dump)?;
        // Memory without a file system that a user could serve, and whose readers wait for no writer.
        let is_memory = fstatfs(&file).is_ok_and(|system| system.f_type == TMPFS);
        is_memory.then(|| (fs::File::from(file), self.until))
    }

    /// Whether reading the process's memory timed out, so that code has no bytes.
    pub fn is_memory_unresponsive(&self) -> bool {
        self.process.is_unresponsive.load(Ordering::Relaxed)
    }

    /// Why the process's memory cannot be read, so that live code has no bytes; `None` if it can be read.
    pub fn memory_error(&self) -> Option<io::Error> {
        self.process.memory.as_ref().err().map(|number| match number {
            0 => io::ErrorKind::PermissionDenied.into(),
            number => io::Error::from_raw_os_error(*number),
        })
    }

    /// Counts the codes in it. The result contains no dump.
    ///
    /// # Errors
    /// If the log no longer exists, or its process does not respond.
    pub fn count_codes(&self) -> Result<LogDump> {
        self.without_memory(false)
    }

    /// Reads what the log itself has: code that is in it without bytes stays without.
    ///
    /// # Errors
    /// If the log no longer exists, or its process does not respond.
    pub fn description(&self) -> Result<LogDump> {
        self.without_memory(true)
    }

    fn without_memory(&self, is_whole: bool) -> Result<LogDump> {
        let job = self.to_read(None, is_whole, false).map_err(Error::file(&self.place))?;
        let answer = foreign::run(job.task, job.passed, Patience::NAMED);
        self.answer(answer)
    }

    /// What the process context of the process says about its logs.
    pub fn listed(&self) -> &ListedLogs {
        &self.process.listed
    }

    /// The address of the log in its process.
    pub fn address(&self) -> u64 {
        self.found.start
    }

    /// Writes the control word. Returns the resulting head of the log.
    ///
    /// # Errors
    /// If we may not send requests to the process, or if it has ended.
    pub fn request(&self, control: u32) -> Result<Head> {
        self.request_and_wait(Some(control), Duration::ZERO)
    }

    /// Waits until the process has applied the control word, at most this long. Returns the resulting head of the log.
    ///
    /// # Errors
    /// If the process has ended.
    pub fn wait(&self, wait: Duration) -> Result<Head> {
        self.request_and_wait(None, wait)
    }

    fn request_and_wait(&self, control: Option<u32>, wait: Duration) -> Result<Head> {
        let passed = PassedDescriptors {
            file: self.file.is_some(),
            memory: self.process.memory.is_ok(),
            ..PassedDescriptors::default()
        };
        let task = Task::Request(RequestLog {
            owner: self.process.owner,
            start: self.found.start,
            end: self.found.end,
            writer: self.head.pid,
            control,
            wait,
            passed,
        });
        let patience = Patience { whole: Patience::NAMED.whole.and(wait), ..Patience::NAMED };
        let answer = self
            .descriptors(passed, None)
            .and_then(|descriptors| foreign::run(task, descriptors, patience))
            .map_err(|error| self.named(error))?;
        Head::parse(&answer.bytes).map_err(Error::format(&self.place))
    }

    fn to_read(&self, earlier: Option<&LogDump>, is_whole: bool, fetch: bool) -> io::Result<Job> {
        let memory = self.process.memory.is_ok();
        let passed = PassedDescriptors {
            file: self.file.is_some(),
            // A log that is a dump file is read from memory, where it is mapped.
            memory: memory && (fetch || self.file.is_none() || self.is_dump()),
            pages: fetch && self.process.pages.is_some(),
            earlier: earlier.is_some(),
        };
        let task = Task::Read(ReadLog {
            owner: self.process.owner,
            start: self.found.start,
            end: self.found.end,
            is_dump: self.found.is_dump,
            until: self.until(),
            is_whole,
            fetch,
            sharing: self.process.logs,
            passed,
        });
        Ok(Job { task, passed: self.descriptors(passed, earlier)? })
    }

    fn descriptors(
        &self,
        passed: PassedDescriptors,
        earlier: Option<&LogDump>,
    ) -> io::Result<Vec<OwnedFd>> {
        let process = &self.process;
        let mut descriptors = Vec::new();
        for descriptor in [
            self.file.as_ref().filter(|_| passed.file),
            process.memory.as_ref().ok().filter(|_| passed.memory),
            process.pages.as_ref().filter(|_| passed.pages),
        ] {
            descriptors.extend(descriptor.map(OwnedFd::try_clone).transpose()?);
        }
        descriptors.extend(earlier.map(|dump| in_memory(&dump.bytes)).transpose()?);
        Ok(descriptors)
    }

    fn answer(&self, answer: io::Result<Answer>) -> Result<LogDump> {
        let answer = answer.map_err(|error| self.named(error))?;
        read::dump(answer).ok_or_else(|| not_answering(self.pid))
    }

    fn named(&self, error: io::Error) -> Error {
        failed(self.pid, error, |error| Error::File { path: self.place.clone(), source: error })
    }
}

/// Reads logs, several at a time. `done` gets the index and the content of each, in any order. If reading a process's memory
/// times out, the log is read again from its own memory, which the process cannot block; its code then has no bytes.
pub fn read_all(
    logs: &[(&Log, Option<&LogDump>)],
    patience: Patience,
    mut done: impl FnMut(usize, Result<LogDump>),
) {
    let mut again = Vec::new();
    let numbers: Vec<usize> = (0..logs.len()).collect();
    let user = |number: usize| logs.get(number).map_or(0, |(log, _)| log.process.owner.user);
    let numbers = in_turns(&numbers, user);
    for fetch in [true, false] {
        let numbers = if fetch { &numbers } else { &std::mem::take(&mut again) };
        let started: RefCell<Vec<usize>> = RefCell::default();
        let mut unread: Vec<(usize, io::Error)> = Vec::new();
        let jobs = numbers.iter().filter_map(|&number| {
            let (log, earlier) = logs.get(number)?;
            match log.to_read(*earlier, true, fetch && !log.is_memory_unresponsive()) {
                Ok(job) => {
                    started.borrow_mut().push(number);
                    Some(job)
                }
                Err(error) => {
                    unread.push((number, error));
                    None
                }
            }
        });
        foreign::run_all(jobs, patience, |index, answer| {
            let Some(number) = started.borrow().get(index).copied() else { return };
            let Some((log, _)) = logs.get(number) else { return };
            let is_late = answer.as_ref().is_err_and(is_no_answer);
            if is_late
                && fetch
                && !log.is_memory_unresponsive()
                && log.file.is_some()
                && !log.is_dump()
            {
                log.process.is_unresponsive.store(true, Ordering::Relaxed);
                again.push(number);
            } else {
                done(number, log.answer(answer));
            }
        });
        for (number, error) in unread {
            if let Some((log, _)) = logs.get(number) {
                done(number, Err(log.named(error)));
            }
        }
    }
}

fn is_no_answer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::TimedOut | io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe
    )
}

fn not_answering(pid: u32) -> Error {
    Error::NotAnswering(pid)
}

fn failed(pid: u32, error: io::Error, other: impl FnOnce(io::Error) -> Error) -> Error {
    match error.kind() {
        _ if is_no_answer(&error) => not_answering(pid),
        io::ErrorKind::NotFound => Error::Refused(format!("there is no process {pid}")),
        io::ErrorKind::Interrupted => {
            Error::Refused(format!("process {pid}: skipped, interrupted by a signal"))
        }
        io::ErrorKind::QuotaExceeded => {
            Error::Refused(format!("process {pid}: skipped, inspecting others took too long"))
        }
        io::ErrorKind::ResourceBusy => Error::Refused(format!(
            "process {pid} started another program while it was inspected: try again"
        )),
        io::ErrorKind::PermissionDenied => Error::Refused(format!(
            "process {pid} belongs to another user or may not be inspected: run this as its user or as root"
        )),
        _ => other(error),
    }
}

/// The logs of process `pid`, which the user named.
///
/// # Errors
/// If the process does not exist, may not be inspected, or does not respond.
pub fn logs_of(pid: u32) -> Result<Vec<Log>> {
    logs_of_one(pid, false)
}

/// Like [`logs_of`], for logs that requests will be sent to.
///
/// # Errors
/// As for [`logs_of`].
pub fn logs_for_requests(pid: u32) -> Result<Vec<Log>> {
    logs_of_one(pid, true)
}

fn logs_of_one(pid: u32, for_requests: bool) -> Result<Vec<Log>> {
    let mut found = Ok(Vec::new());
    logs_of_all(&[pid], for_requests, Patience::NAMED, |_, logs| found = logs);
    found
}

/// The logs of many processes, several at a time, in any order. Users take turns, so that a user with many processes does not
/// delay those of others.
pub fn logs_of_all(
    pids: &[u32],
    for_requests: bool,
    patience: Patience,
    mut done: impl FnMut(u32, Result<Vec<Log>>),
) {
    examine_all(pids, for_requests, patience, |pid, examined| {
        done(pid, examined.map(|examined| examined.logs));
    });
}

/// What was found in a process.
#[derive(Debug)]
pub struct ExaminedProcess {
    /// Its owner: that of its folder in `/proc`.
    pub owner: Owner,
    /// Its logs.
    pub logs: Vec<Log>,
    /// Whether it has memory with code that files may describe.
    pub has_code_memory: bool,
}

/// Like [`logs_of_all`], with what else was found.
pub fn examine_all(
    pids: &[u32],
    for_requests: bool,
    patience: Patience,
    mut done: impl FnMut(u32, Result<ExaminedProcess>),
) {
    let pids = &in_turns(pids, |pid| fs::metadata(format!("/proc/{pid}")).map_or(0, |it| it.uid()));
    let jobs = pids
        .iter()
        .map(|&pid| Job { task: Task::Logs(FindLogs { pid, for_requests }), passed: Vec::new() });
    foreign::run_all(jobs, patience, |index, answer| {
        let Some(&pid) = pids.get(index) else { return };
        let folder = || PathBuf::from(format!("/proc/{pid}"));
        let examined = answer
            .map_err(|error| {
                failed(pid, error, |error| Error::File { path: folder(), source: error })
            })
            .and_then(|answer| examined(pid, answer).ok_or_else(|| not_answering(pid)));
        done(pid, examined);
    });
}

/// What a worker found.
fn examined(pid: u32, answer: Answer) -> Option<ExaminedProcess> {
    let found: ProcessLogs = serde_json::from_slice(&answer.bytes).ok()?;
    let (owner, has_code_memory) = (found.owner, found.has_code_memory);
    let logs = logs(pid, found, answer.descriptors)?;
    Some(ExaminedProcess { owner, logs, has_code_memory })
}

/// The logs that a worker found.
fn logs(pid: u32, found: ProcessLogs, descriptors: Vec<OwnedFd>) -> Option<Vec<Log>> {
    if found.logs.is_empty() {
        return Some(Vec::new());
    }
    let mut descriptors: Vec<_> = descriptors.into_iter().map(Some).collect();
    let mut descriptor = |number: usize| descriptors.get_mut(number)?.take();
    let memory = match found.memory {
        Ok(number) => descriptor(number).ok_or(0),
        Err(number) => Err(number),
    };
    let pages = found.pages.and_then(&mut descriptor);
    let process = Arc::new(Process {
        owner: found.owner,
        memory,
        pages,
        logs: found.logs.len() as u64,
        listed: found.listed,
        is_unresponsive: AtomicBool::new(false),
    });
    let inner = inner_pid(pid);
    let started = started(pid);
    let is_own = |head: &Head| inner.is_none_or(|pid| pid == head.pid);
    let heads: Vec<Head> = found.logs.iter().filter_map(LogMapping::parsed_head).collect();
    let is_copied = |found: &LogMapping, head: &Head| {
        let is_whole = found.end.saturating_sub(found.start) >= head.limit;
        !is_whole && inherited_until(&heads, found.start).is_none()
    };
    let log = |found: LogMapping| {
        let head = found.parsed_head()?;
        let place = std::ffi::OsString::from_vec(found.place.clone());
        let until = match inherited_until(&heads, found.start) {
            _ if is_own(&head) => None,
            Some(forked) => Some(forked),
            // With timestamps in processor ticks, the time of the fork is not known.
            None => started.filter(|_| !head.arch_timestamp),
        };
        Some(Log {
            pid,
            is_own: is_own(&head),
            head,
            place: place.into(),
            until,
            file: found.file.and_then(&mut descriptor),
            found,
            process: Arc::clone(&process),
        })
    };
    let logs: Option<Vec<Log>> = found.logs.into_iter().map(log).collect();
    let mut logs = logs?;
    // A log of which a part is mapped was inherited. Once no other log refers to it, the other has its codes.
    logs.retain(|log| log.is_own || !is_copied(&log.found, &log.head));
    logs.sort_by_key(|log| !log.is_own);
    Some(logs)
}

/// Up to when the codes of the log at this address belong to the process with these logs, if one of them says so: the process, or
/// one that it was forked from, has left codes in the log of its parent.
pub fn inherited_until(heads: &[Head], address: u64) -> Option<u64> {
    heads.iter().find(|head| head.inherited == Some(address)).map(|head| head.forked)
}

/// Copies bytes into a memfd, from which a worker can read them.
fn in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = fs::File::from(memfd_create("earlier", MemfdFlags::CLOEXEC)?);
    io::Write::write_all(&mut &file, bytes)?;
    Ok(file.into())
}

/// All visible processes of this machine.
pub fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The last process or thread id that was given out; `None` if the kernel does not tell it. In some containers the file
/// comes from elsewhere.
pub fn newest_process() -> Option<u32> {
    let file: OwnedFd =
        openat(CWD, "/proc/loadavg", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    if FileSystem::of(&file) != FileSystem::Kernel {
        return None;
    }
    let mut text = String::new();
    fs::File::from(file).take(1 << 10).read_to_string(&mut text).ok()?;
    text.split_ascii_whitespace().last()?.parse().ok()
}

/// The id of a process in its own pid namespace.
pub fn inner_pid(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NStgid:"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

/// The processes that a process is related to, by their ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relations {
    /// Its parent, or the process that adopted it.
    pub parent: u32,
    /// The leader of its process group.
    pub group: u32,
    /// The leader of its session.
    pub session: u32,
}

/// Whether a process still runs: it exists, and is more than an exit status that its parent has not read.
pub fn is_running(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| !stat.trim_start().starts_with(['Z', 'X']))
}

/// The relations of a process.
pub fn relations(pid: u32) -> Option<Relations> {
    let stat = stat(pid)?;
    let mut numbers = stat.split_ascii_whitespace().skip(1).map(|number| number.parse().ok());
    let mut next = || numbers.next().flatten();
    Some(Relations { parent: next()?, group: next()?, session: next()? })
}

/// The children of a process; `None` if this kernel does not list them.
pub fn children(pid: u32) -> Option<Vec<u32>> {
    let mut children = Vec::new();
    // Each thread has its own.
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let listed = match fs::read_to_string(thread.path().join("children")) {
            Ok(listed) => listed,
            // The thread has just ended.
            Err(_) if !thread.path().exists() => continue,
            Err(_) => return None,
        };
        children.extend(listed.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    Some(children)
}

/// The part of `/proc/PID/stat` after the process's name.
fn stat(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain any characters.
    stat.rsplit_once(')').map(|(_, behind_name)| behind_name.to_owned())
}

/// When a process started, in nanoseconds of `CLOCK_MONOTONIC`. The kernel reports it in hundredths of a second; this returns the
/// end of that interval, because a server may announce its code and fork within the same interval.
pub fn started(pid: u32) -> Option<u64> {
    let ticks: u64 = stat(pid)?.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let since_boot = ticks.checked_mul(1_000_000_000 / rustix::param::clock_ticks_per_second())?;
    let asleep = nanoseconds(ClockId::Boottime).saturating_sub(nanoseconds(ClockId::Monotonic));
    let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
    since_boot.checked_sub(asleep)?.checked_add(tick)
}

/// When a process started, in wall-clock time.
pub fn began(pid: u32) -> Option<SystemTime> {
    let ago = nanoseconds(ClockId::Monotonic).saturating_sub(started(pid)?);
    SystemTime::now().checked_sub(Duration::from_nanos(ago))
}

/// The time of a clock.
pub fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    // On these clocks, neither is ever negative.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
