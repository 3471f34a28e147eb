//! Has the perf maps and jitdumps of processes read, by workers, while the agent serves.
//!
//! A file may be on a file system that does not respond. So the agent never waits for a worker: it takes what has come, and a worker that
//! is late is killed. What a process's file delays are answers about this process alone, and these not for long.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use code_agent::{ProcessFacts, ProcessKey, Processes};
use code_log::Source;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::ClockId;

use crate::foreign::{Clock, Deadline, Limit, Patience, Pending, Task, processor_time};
use crate::process::{ReadSourceFiles, SourceFileReadings, nanoseconds};

/// The most workers at a time, and the most of them for one user's processes: others keep the rest.
const MOST: usize = 16;
const MOST_OF_USER: usize = 8;

/// How long a worker may take.
const PATIENCE: Patience = Patience {
    silence: Limit::of(Duration::from_secs(1)),
    whole: Limit::of(Duration::from_secs(2)),
    bytes: 2 << 20,
    memory: 2 << 30,
    all: Limit::NEVER,
};

/// How far ahead of its share a process's files may be read, in nanoseconds.
const AHEAD: u64 = 500_000_000;
/// What a reading costs beside its bytes, in nanoseconds of the share.
const READ: u64 = 20_000_000;
/// What a byte costs: 16 MiB are read of a process in a second, in the long run.
const BYTE: u64 = 60;
/// How long reading all files once may take.
const MOST_OF_ALL: Limit = Limit::of(Duration::from_secs(60));
/// The longest time from one attempt to the next if a file system does not respond, in nanoseconds.
const SELDOM: u64 = 60_000_000_000;

/// The processes whose files are read, and the workers that read them.
#[derive(Debug)]
pub struct Files {
    /// The time between two readings of a process, in nanoseconds.
    interval: u64,
    processes: HashMap<ProcessKey, Schedule>,
    running: Vec<Reading>,
}

#[derive(Debug)]
struct Reading {
    key: ProcessKey,
    /// The owner of the process.
    owner: u32,
    worker: Pending,
    begun: u64,
    /// The processor time that the process had used before.
    used: Option<u64>,
    /// Whether it looks for files.
    finds: bool,
}

/// When the files of a process are read.
#[derive(Debug)]
struct Schedule {
    facts: ProcessFacts,
    /// Whether to look for files that are not known.
    find: bool,
    next: u64,
    /// When the last reading that was completed began, and the processor time that the process had used by then.
    read: Option<(u64, Option<u64>)>,
    /// Whether there is more to read.
    has_more: bool,
    /// How many readings have failed since the last one that did not.
    failed: u32,
    is_running: bool,
    /// Up to when the process has used its share of reading.
    used_up_to: u64,
}

impl Files {
    /// No processes. `interval` is the time between two readings of a process, in nanoseconds.
    pub fn new(interval: u64) -> Self {
        Self { interval, processes: HashMap::new(), running: Vec::new() }
    }

    /// Looks for the files of a process soon.
    pub fn look_for(&mut self, key: ProcessKey, facts: ProcessFacts, now: u64) {
        let schedule = self.processes.entry(key).or_insert_with(|| Schedule {
            facts: facts.clone(),
            find: true,
            next: now,
            read: None,
            has_more: false,
            failed: 0,
            is_running: false,
            used_up_to: 0,
        });
        schedule.facts = facts;
        schedule.find = true;
        if schedule.failed == 0 {
            schedule.next = schedule.next.min(now);
        }
    }

    /// Reads no files of a process any more.
    pub fn forget(&mut self, key: ProcessKey) {
        self.processes.remove(&key);
        self.running.retain(|reading| reading.key != key);
    }

    /// What to wait for.
    pub fn events(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.running.iter().map(|reading| reading.worker.as_fd())
    }

    /// Whether a reading has begun whose result is not known.
    pub fn is_busy(&self) -> bool {
        !self.running.is_empty()
    }

    /// Starts the readings whose turn it is.
    pub fn begin<S: Source>(&mut self, table: &mut Processes<S>, now: u64) {
        for (key, schedule) in &mut self.processes {
            if schedule.next > now || schedule.is_running {
                continue;
            }
            let used = processor_time(key.pid);
            let has_run = used.is_none() || schedule.read.is_none_or(|(_, before)| before != used);
            if !has_run && !schedule.has_more && !schedule.find {
                schedule.next = now.saturating_add(self.interval);
                continue;
            }
            if now.saturating_add(AHEAD) < schedule.used_up_to {
                schedule.next = schedule.used_up_to.saturating_sub(AHEAD);
                continue;
            }
            if self.running.len() >= MOST {
                break;
            }
            let of_user = self.running.iter().filter(|it| it.owner == schedule.facts.owner);
            if of_user.count() >= MOST_OF_USER {
                continue;
            }
            let task = ReadSourceFiles {
                pid: key.pid,
                start: key.start,
                find: schedule.find,
                known: table.known_files(*key),
            };
            match Pending::begin(Task::SourceFiles(task), PATIENCE) {
                Ok(worker) => {
                    schedule.is_running = true;
                    let (key, finds, owner) = (*key, schedule.find, schedule.facts.owner);
                    self.running.push(Reading { key, owner, worker, begun: now, used, finds });
                }
                Err(_) => {
                    table.counts.failed_file_readings += 1;
                    schedule.has_failed(self.interval, now);
                }
            }
        }
    }

    /// Takes what was read.
    pub fn take<S: Source>(&mut self, table: &mut Processes<S>, now: u64) {
        let mut at = 0;
        while let Some(reading) = self.running.get_mut(at) {
            let Some(answer) = reading.worker.take() else {
                at += 1;
                continue;
            };
            let reading = self.running.swap_remove(at);
            let Some(schedule) = self.processes.get_mut(&reading.key) else { continue };
            schedule.is_running = false;
            table.counts.file_readings += 1;
            match answer.and_then(|answer| SourceFileReadings::parse(&answer.bytes)) {
                Ok(readings) => schedule.has_read(&reading, readings, table, self.interval, now),
                Err(error) => {
                    if !is_over(&error) {
                        table.counts.failed_file_readings += 1;
                    }
                    schedule.has_failed(self.interval, now);
                }
            }
            if !table.wants_files(reading.key) {
                table.forget_files(reading.key);
                self.processes.remove(&reading.key);
            }
        }
    }

    /// Whether [all of these are current](Self::is_current).
    pub fn are_current(
        &mut self,
        keys: impl IntoIterator<Item = ProcessKey>,
        since: u64,
        now: u64,
    ) -> bool {
        // All, so that they are read at the same time.
        let stale = keys.into_iter().filter(|key| !self.is_current(*key, since, now)).count();
        stale == 0
    }

    /// Reads all that there is to read. A file that does not respond is left out, and so is what a process has written that writes
    /// faster than it is read.
    pub fn read_all<S: Source>(&mut self, table: &mut Processes<S>) {
        let mut deadline = Deadline::new(MOST_OF_ALL, MOST_OF_ALL, Clock::now());
        while !deadline.is_over(Clock::now()) {
            let now = nanoseconds(ClockId::Monotonic);
            self.processes.retain(|_, schedule| schedule.failed == 0);
            self.begin(table, now);
            let is_done = |schedule: &Schedule| !schedule.find && !schedule.has_more;
            if self.running.is_empty() && self.processes.values().all(is_done) {
                return;
            }
            let mut polled: Vec<PollFd<'_>> =
                self.events().map(|it| PollFd::from_borrowed_fd(it, PollFlags::IN)).collect();
            let wait = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let _ = poll(&mut polled, Some(&wait));
            self.take(table, nanoseconds(ClockId::Monotonic));
            deadline.look(Clock::now(), || None);
        }
    }

    /// Whether what is known of a process contains all that its files had at a time, or will not soon. If not, they are read at once.
    pub fn is_current(&mut self, key: ProcessKey, since: u64, now: u64) -> bool {
        let Some(schedule) = self.processes.get_mut(&key) else { return true };
        let is_waited_for = schedule.failed == 0
            && (schedule.next != u64::MAX || schedule.is_running)
            && now.saturating_add(AHEAD) >= schedule.used_up_to;
        if !is_waited_for {
            return true;
        }
        if let Some((begun, used)) = schedule.read
            && !schedule.has_more
            && !schedule.find
            && (begun >= since || (used.is_some() && used == processor_time(key.pid)))
        {
            return true;
        }
        schedule.next = now;
        false
    }
}

impl Schedule {
    fn has_read<S: Source>(
        &mut self,
        reading: &Reading,
        SourceFileReadings(readings): SourceFileReadings,
        table: &mut Processes<S>,
        interval: u64,
        now: u64,
    ) {
        let parts = readings.iter().filter_map(|reading| reading.part.as_ref());
        let bytes: u64 = parts.map(|part| part.bytes.len() as u64).sum();
        let cost = READ.saturating_add(bytes.saturating_mul(BYTE));
        self.used_up_to = self.used_up_to.max(now).saturating_add(cost);
        let (key, facts) = (reading.key, self.facts.clone());
        self.has_more = table.files_read(key, facts, &readings, reading.finds, now);
        self.read = Some((reading.begun, reading.used));
        self.failed = 0;
        self.find = false;
        self.next = if self.has_more {
            now
        } else if table.known_files(key).is_empty() {
            // Until it is examined again.
            u64::MAX
        } else {
            now.saturating_add(interval)
        };
    }

    fn has_failed(&mut self, interval: u64, now: u64) {
        let pause = interval.saturating_mul(1 << self.failed.min(6)).min(SELDOM.max(interval));
        self.failed = self.failed.saturating_add(1);
        self.next = now.saturating_add(pause);
    }
}

/// Whether a process could not be read because it has ended.
fn is_over(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    error.kind() == io::ErrorKind::NotFound || number == Some(libc::ESRCH)
}
