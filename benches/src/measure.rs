//! Runs a command and says what it took.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

/// What one run of a command took.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// From start to end.
    pub wall: Duration,
    /// Processor time, its own and the kernel's for it.
    pub cpu: Duration,
    /// The most memory it held at once, in bytes.
    pub peak: u64,
    /// Whether it was stopped because it took too long.
    pub stopped: bool,
}

/// Runs `command` with its output thrown away; one that takes longer than `limit` is stopped. What
/// it writes to standard error is kept in `log`.
///
/// The figures are those of the child and its own children. A child's peak counts from when it was
/// forked: it is never less than what this process holds.
///
/// # Errors
/// When it cannot be started, or fails.
pub fn run(command: &mut Command, limit: Duration, log: &Path) -> io::Result<Cost> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(log)?);
    let start = Instant::now();
    let child = command.spawn()?;
    let pid = Pid::from_child(&child);
    let descriptor = pidfd_open(pid, PidfdFlags::empty())?;
    let mut ended = [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN)];
    let limit = Timespec { tv_sec: limit.as_secs().cast_signed(), tv_nsec: 0 };
    let stopped = poll(&mut ended, Some(&limit))? == 0;
    if stopped {
        kill_process(pid, Signal::KILL)?;
    }
    let usage = wait(child)?;
    let wall = start.elapsed();
    if usage.status != 0 && !stopped {
        let said = std::fs::read_to_string(log).unwrap_or_default();
        return Err(io::Error::other(format!("{command:?} failed ({}): {said}", usage.status)));
    }
    Ok(Cost { wall, cpu: usage.cpu, peak: usage.peak, stopped })
}

/// What a child took that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// As the kernel has it: 0 if it exited with 0.
    pub status: i32,
    /// As [`Cost::cpu`].
    pub cpu: Duration,
    /// As [`Cost::peak`].
    pub peak: u64,
}

/// Waits until `child` ends, for which nobody has waited yet.
///
/// # Errors
/// When somebody has.
pub fn wait(child: Child) -> io::Result<Usage> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let pid = Pid::from_child(&child).as_raw_nonzero().get();
    // SAFETY: both pointers are to places of their types.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
    drop(child);
    if waited < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all zero is a value, and wait4 has filled it.
    let usage = unsafe { usage.assume_init() };
    Ok(Usage {
        status,
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        peak: usage.ru_maxrss.cast_unsigned() * 1024,
    })
}

fn duration(time: libc::timeval) -> Duration {
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_usec as u32 * 1000)
}

/// The median of each figure by itself.
///
/// # Panics
/// Without any runs.
#[must_use]
pub fn median(runs: &[Cost]) -> Cost {
    fn middle<T: Ord + Copy>(runs: &[Cost], of: impl Fn(&Cost) -> T) -> T {
        let mut all: Vec<T> = runs.iter().map(of).collect();
        all.sort_unstable();
        all[all.len() / 2]
    }
    Cost {
        wall: middle(runs, |cost| cost.wall),
        cpu: middle(runs, |cost| cost.cpu),
        peak: middle(runs, |cost| cost.peak),
        stopped: runs.iter().any(|cost| cost.stopped),
    }
}

/// Number and bytes of the files below `folder`.
///
/// # Errors
/// When a folder cannot be read.
pub fn files(folder: &Path) -> io::Result<(u64, u64)> {
    let (mut count, mut bytes) = (0, 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                folders.push(entry.path());
            } else {
                count += 1;
                bytes += metadata.len();
            }
        }
    }
    Ok((count, bytes))
}
