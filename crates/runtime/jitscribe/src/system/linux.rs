//! Linux.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

pub(crate) use super::cgroup::memory_limit;

/// Nanoseconds of `CLOCK_MONOTONIC`, the clock of `perf record -k mono`.
///
/// Inlined, as it is a part of each announcement.
#[inline(always)]
pub(crate) fn nanoseconds() -> u64 {
    read(ClockId::Monotonic)
}

/// Nanoseconds since the machine was started, including suspend.
pub(crate) fn since_boot() -> u64 {
    read(ClockId::Boottime)
}

#[inline(always)]
fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    // Neither is negative on this clock.
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

/// Sleeps if the system permits it, else yields.
pub(crate) fn nap(time: Duration) {
    let _thread = guest::without_cancellation();
    let time = rustix::time::Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
    if let rustix::thread::NanosleepRelativeResult::Err(_) = rustix::thread::nanosleep(&time) {
        rustix::thread::sched_yield();
    }
}

/// The kernel's id of this process.
pub(crate) fn process_id() -> u32 {
    let id = std::process::id();
    // If a filter of system calls refuses it, the C library returns -1.
    if id.cast_signed() > 0 { id } else { process_id_by_proc().unwrap_or(id) }
}

/// The same, by the target of the link `/proc/self`.
#[cold]
fn process_id_by_proc() -> Option<u32> {
    let mut buffer = [std::mem::MaybeUninit::uninit(); 16];
    let (name, _) = rustix::fs::readlinkat_raw(rustix::fs::CWD, c"/proc/self", &mut buffer).ok()?;
    std::str::from_utf8(name).ok()?.parse().ok()
}

/// The kernel's id of this thread.
pub(crate) fn thread_id() -> u32 {
    guest::thread_id()
}

/// Whether the kernel gave the program more privileges than its caller has (`AT_SECURE`).
pub(crate) fn has_more_rights() -> bool {
    const AT_SECURE: usize = 23;
    // A process that may not be inspected cannot read this about itself, and is treated in the same way.
    let mut buffer = [0; 1024];
    let Some(vector) = guest::begin_of("/proc/self/auxv", &mut buffer) else { return true };
    let word = size_of::<usize>();
    vector.chunks_exact(2 * word).any(|entry| {
        let (key, value) = entry.split_at(word);
        key == AT_SECURE.to_ne_bytes() && value.iter().any(|byte| *byte != 0)
    })
}

/// Whether a debugger is attached, or another program that traces this one.
pub(crate) fn is_traced() -> bool {
    guest::own_status("TracerPid:").is_some_and(|tracer| tracer != 0)
}

/// The value of an environment variable.
pub(crate) use fallible::variable;
