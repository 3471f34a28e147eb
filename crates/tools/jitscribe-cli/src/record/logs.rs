//! The code logs of running processes: held open while perf records, and read before and after. Logs that were created
//! during the recording are read if their processes still run at its end.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jitdump::extension::control;

use super::scope::Scope;
use crate::files::Named;
use crate::foreign::Patience;
use crate::process::{Log, LogDump, logs_of_all, read_all};
use crate::{Error, Result, descriptors, note};

/// The limit, in bytes, for dumps of logs from before the recording that are held in memory.
const BEFORE: u64 = 1 << 30;
/// The limit, in bytes, for all dumps that are written.
const WRITTEN: u64 = 16 << 30;

/// The logs of the processes that are being recorded.
#[derive(Debug)]
pub struct Logs {
    watched: Vec<WatchedLog>,
    patience: Patience,
    budget: DescriptorBudget,
    /// Processes that did not respond. They are not asked again.
    unresponsive: HashSet<u32>,
}

/// The number of descriptors that may still be opened for processes.
#[derive(Debug)]
struct DescriptorBudget {
    left: u64,
    is_full: bool,
}

impl DescriptorBudget {
    fn new() -> Self {
        Self { left: descriptors::raise() / 2, is_full: false }
    }

    /// Returns the logs of a process, or none if they need too many descriptors: one for each log, two for the process.
    fn take(&mut self, mut logs: Vec<Log>) -> Vec<Log> {
        // perf finds dumps that are files by their markers.
        logs.retain(|log| !log.is_dump());
        if logs.is_empty() {
            return logs;
        }
        if let Some(left) = self.left.checked_sub(logs.len() as u64 + 2) {
            self.left = left;
            return logs;
        }
        if !self.is_full {
            note::warning(
                "too many processes keep code logs to hold all logs open; skipped the rest (see: ulimit -n)",
            );
        }
        self.is_full = true;
        Vec::new()
    }
}

#[derive(Debug)]
struct WatchedLog {
    log: Log,
    /// The original control word, if we changed it.
    control: Option<u32>,
    /// The log from before the recording: code that is freed during the recording may be missing from the log afterwards.
    before: Option<LogDump>,
}

impl Logs {
    /// Opens the existing logs. With `announce`, processes that the user named are requested to turn their logs on and to keep
    /// the bytes of the code that they announce from now on.
    pub fn open(scope: &Scope, announce: bool) -> Self {
        let announce = announce && scope.is_named();
        let patience = patience(scope.is_named());
        let mut found = Vec::new();
        let mut budget = DescriptorBudget::new();
        let mut unresponsive = HashSet::new();
        logs_of_all(&scope.pids(), announce, patience, |pid, logs| match logs {
            Ok(logs) => found.extend(budget.take(logs)),
            Err(error) => {
                if is_unresponsive(&error) && !scope.is_named() {
                    unresponsive.insert(pid);
                }
                if scope.is_named() || is_unresponsive(&error) {
                    note::warning(error);
                }
            }
        });
        found.sort_by_key(|log| log.pid);
        let mut watched: Vec<_> =
            found.into_iter().map(|log| WatchedLog::new(log, announce)).collect();
        let logs: Vec<_> = watched.iter().map(|watched| (&watched.log, None)).collect();
        let mut before = Vec::new();
        let mut left = BEFORE;
        read_all(&logs, patience, |number, dump| {
            if let Ok(dump) = dump
                && take(&mut left, dump.bytes.len())
            {
                before.push((number, dump));
            }
        });
        for (number, dump) in before {
            if let Some(watched) = watched.get_mut(number) {
                watched.before = Some(dump);
            }
        }
        Self { watched, patience, budget, unresponsive }
    }

    /// Opens logs of these processes that were created since.
    fn open_new(&mut self, pids: &[u32]) {
        let known: HashSet<_> = self.watched.iter().map(|watched| watched.log.identity()).collect();
        let mut new = Vec::new();
        let mut pids = pids.to_vec();
        pids.retain(|pid| !self.unresponsive.contains(pid));
        logs_of_all(&pids, false, self.patience, |_, logs| {
            // Processes that ended meanwhile are expected; those that run and do not respond are not.
            let mut logs = logs.unwrap_or_else(|error| {
                if is_unresponsive(&error) {
                    note::warning(error);
                }
                Vec::new()
            });
            logs.retain(|log| !known.contains(&log.identity()));
            new.extend(self.budget.take(logs));
        });
        new.sort_by_key(|log| log.pid);
        let new = new.into_iter().map(|log| WatchedLog { log, control: None, before: None });
        self.watched.extend(new);
    }

    /// Frees the copies of the logs from before the recording.
    pub fn forget_before(&mut self) {
        for watched in &mut self.watched {
            watched.before = None;
        }
    }

    /// Writes the logs into `folder` as dumps, including logs of `pids` that were created since, and restores the control
    /// words. Returns the dumps and their processes.
    pub fn collect(mut self, pids: &[u32], folder: &Path) -> Vec<Named> {
        self.open_new(pids);
        let logs: Vec<_> =
            self.watched.iter().map(|watched| (&watched.log, watched.before.as_ref())).collect();
        let mut written: Vec<_> = logs.iter().map(|_| None).collect();
        let mut left = WRITTEN;
        // Each dump is written on arrival, so that only a few are in memory at a time.
        read_all(&logs, self.patience, |number, dump| {
            if let (Some(written), Some((log, _))) = (written.get_mut(number), logs.get(number)) {
                *written = Some(dump.and_then(|dump| {
                    if !take(&mut left, dump.bytes.len()) {
                        return Err(Error::Refused("the dumps exceed the size limit".into()));
                    }
                    write(log, &dump, folder, number)
                }));
            }
        });
        drop(logs);
        let mut dumps = Vec::new();
        for (mut watched, written) in self.watched.into_iter().zip(written) {
            watched.restore_control();
            let pid = watched.log.pid;
            let written = written.unwrap_or(Err(Error::NotAnswering(pid)));
            if watched.log.is_memory_unresponsive() {
                note::warning(format_args!(
                    "process {pid}: reading its memory timed out; its code is shown without bytes"
                ));
            }
            match written {
                Ok(Some(path)) => dumps.push(Named { pid: Some(pid), path }),
                Ok(None) => {}
                Err(error) if is_unresponsive(&error) => note::warning(error),
                Err(error) => {
                    note::warning(format_args!("skipped the code log of process {pid}: {error}"))
                }
            }
        }
        dumps
    }
}

/// How long to wait for processes.
fn patience(is_named: bool) -> Patience {
    if is_named { Patience::NAMED } else { Patience::ONE_OF_MANY }
}

/// Takes `bytes` from what is left, unless that is less.
fn take(left: &mut u64, bytes: usize) -> bool {
    let rest = left.checked_sub(bytes as u64);
    *left = rest.unwrap_or(*left);
    rest.is_some()
}

fn is_unresponsive(error: &Error) -> bool {
    matches!(error, Error::NotAnswering(_))
}

impl WatchedLog {
    fn new(log: Log, announce: bool) -> Self {
        let mut control = None;
        if announce && log.is_own() {
            let old = log.head.control;
            let request = old | control::LOG | control::BYTES | control::REQUEST;
            if request != old | control::REQUEST {
                match log.request(request) {
                    Ok(_) => control = Some(old),
                    Err(error) => note::warning(format_args!(
                        "cannot ask process {} to announce its code: {error}",
                        log.pid
                    )),
                }
            }
        }
        Self { log, control, before: None }
    }

    /// Restores the control word, if we changed it.
    fn restore_control(&mut self) {
        let Some(control) = self.control.take() else { return };
        // The process may have ended, so errors are ignored. A signal may have interrupted the first attempt.
        if self.log.request(control | control::REQUEST).is_err_and(|error| !is_unresponsive(&error))
        {
            let _ = self.log.request(control | control::REQUEST);
        }
    }
}

impl Drop for WatchedLog {
    fn drop(&mut self) {
        self.restore_control();
    }
}

/// Writes the dump of a log into a new folder in `folder`. Returns the path of the dump, if there is code in it.
fn write(log: &Log, dump: &LogDump, folder: &Path, number: usize) -> Result<Option<PathBuf>> {
    if dump.head.left_out > 0 {
        note::warning(format_args!(
            "process {}: {} codes are missing because its code log was full (JITSCRIBE_LIMIT sets the limit)",
            log.pid, dump.head.left_out
        ));
    }
    if dump.is_cut || dump.over_budget > 0 {
        note::warning(format_args!(
            "process {}: its code log exceeds the limits: {} codes are used, {} of them without bytes",
            log.pid, dump.codes, dump.without_bytes
        ));
    }
    if dump.codes == 0 {
        return Ok(None);
    }
    let path = folder.join(format!("log-{number}"));
    fs::create_dir(&path).map_err(Error::file(&path))?;
    let path = path.join(format!("jit-{}.dump", log.pid));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    file.and_then(|mut file| file.write_all(&dump.bytes)).map_err(Error::file(&path))?;
    Ok(Some(path))
}
