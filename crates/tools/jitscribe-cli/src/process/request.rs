//! The worker task that sends a request to a process: it writes the control word of the process's log.
//!
//! It writes to the process's memory, not to anything that the process chose by a name or a number: see
//! `docs/design/foreign-processes.md`.

use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use code_log::Head;
use jitdump::extension::control;
use rustix::fs::{OFlags, SealFlags, fcntl_get_seals};
use rustix::io::{pwrite, retry_on_intr};
use rustix::process::geteuid;
use rustix::thread::capabilities;
use serde::{Deserialize, Serialize};

use super::read::PassedDescriptors;
use super::source::LogSource;
use super::wake::wake;
use crate::files::reopen;
use crate::foreign::{Output, Owner};

/// The interval for checking whether the process has applied the request.
const LOOK: Duration = Duration::from_millis(2);

/// The task: write the control word of a log that was found, wake a waiting thread, and return the resulting head of the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestLog {
    /// The owner whose privileges are sufficient.
    pub owner: Owner,
    /// The start of the mapping.
    pub start: u64,
    /// The end of the mapping.
    pub end: u64,
    /// The process id in the log's head. If it has changed, this is another log.
    pub writer: u32,
    /// The control word to write, if any.
    pub control: Option<u32>,
    /// How long to wait for the process to apply the request.
    pub wait: Duration,
    /// The descriptors that are passed, in this order.
    pub passed: PassedDescriptors,
}

impl RequestLog {
    pub fn perform(&self, passed: Vec<OwnedFd>, output: &mut Output) -> io::Result<()> {
        let passed = self.passed.take(passed);
        let mapped = self.start..self.end;
        let log = passed.file.as_ref();
        let file = match (&passed.memory, log) {
            (Some(_), _) | (_, None) => None,
            // We may not trace the process, so its memory is not writable for us. Then we have no more privileges than its user.
            (None, Some(file)) => Some(self.file_to_write(file)?),
        };
        self.owner.lock_down()?;
        let source = LogSource::new(file.as_ref(), passed.memory.as_ref(), &mapped, true);
        let source = source.ok_or(io::ErrorKind::PermissionDenied)?;
        let before = head(&source)?;
        if before.pid != self.writer {
            return Err(io::Error::other("the code log no longer exists"));
        }
        if let Some(control) = self.control {
            let (descriptor, at) = match (&passed.memory, &file) {
                (Some(memory), _) => (memory, self.start.saturating_add(Head::CONTROL)),
                (None, Some(file)) => (file, Head::CONTROL),
                (None, None) => return Err(io::ErrorKind::PermissionDenied.into()),
            };
            let bytes = control.to_ne_bytes();
            if retry_on_intr(|| pwrite(descriptor, &bytes, at))? != bytes.len() {
                return Err(io::ErrorKind::WriteZero.into());
            }
            if let Some(log) = log {
                wake(log);
            }
        }
        let until = Instant::now() + self.wait;
        loop {
            let bytes = source.head_bytes().ok_or(io::ErrorKind::UnexpectedEof)?;
            let is_done =
                Head::parse(&bytes).is_ok_and(|head| head.control & control::REQUEST == 0);
            if is_done || Instant::now() >= until {
                return output.bytes(&bytes);
            }
            output.progress()?;
            thread::sleep(LOOK);
        }
    }

    /// Opens a memfd sealed against shrinking for writing, but only if the user could do so without us.
    fn file_to_write(&self, file: &OwnedFd) -> io::Result<OwnedFd> {
        let us = geteuid();
        let has_rights = us.is_root()
            || us.as_raw() != self.owner.user
            || capabilities(None).is_ok_and(|sets| !sets.permitted.is_empty());
        if has_rights || !is_sealed(file) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        reopen(file, OFlags::RDWR)
    }
}

fn head(source: &LogSource<'_>) -> io::Result<Head> {
    let bytes = source.head_bytes();
    let head = bytes.and_then(|bytes| Head::parse(&bytes).ok());
    head.ok_or_else(|| io::Error::other("the code log no longer exists"))
}

/// Whether this is a memfd sealed against shrinking.
pub fn is_sealed(file: &OwnedFd) -> bool {
    fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
}
