//! Linux.

use std::path::PathBuf;

use rustix::time::{ClockId, clock_gettime};

pub(crate) use super::cgroup::memory_limit;

/// Nanoseconds of `CLOCK_MONOTONIC`, the clock of `perf record -k mono`.
pub(crate) fn nanoseconds() -> u64 {
    read(ClockId::Monotonic)
}

/// Nanoseconds since the machine was started, its sleep included.
pub(crate) fn since_boot() -> u64 {
    read(ClockId::Boottime)
}

fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    // Neither is ever negative on this clock.
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

/// The kernel's id of this thread.
pub(crate) fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Whether the kernel gave the program more rights than its caller has (`AT_SECURE`).
pub(crate) fn has_more_rights() -> bool {
    const AT_SECURE: usize = 23;
    // A process that may not be looked into cannot read this of itself: for this question, the same.
    let Ok(vector) = std::fs::read("/proc/self/auxv") else { return true };
    let word = size_of::<usize>();
    vector.chunks_exact(2 * word).any(|entry| {
        let (key, value) = entry.split_at(word);
        key == AT_SECURE.to_ne_bytes() && value.iter().any(|byte| *byte != 0)
    })
}

/// Whether a debugger is attached, or another program that traces this one.
pub(crate) fn is_traced() -> bool {
    own_status(["TracerPid:"]).is_some_and(|[tracer]| tracer != 0)
}

/// From which number on a descriptor is out of the program's way: programs count on the lowest being free, as where they close
/// standard input and open a file in its place, or close all that they know of.
///
/// Where other threads share the table of descriptors, it is a number that fits the table as it is: to enlarge it, the kernel waits
/// for all processors (`synchronize_rcu` in `expand_fdtable` of its fs/file.c), for ten milliseconds and more.
pub(crate) fn high_descriptor() -> i32 {
    // Many may have no more than 1024, and few have so many open.
    const HIGH: i32 = 900;
    match own_status(["Threads:", "FDSize:"]) {
        Some([threads, size]) if threads > 1 && size <= HIGH => size / 4 * 3,
        _ => HIGH,
    }
}

/// The numbers of these lines of `/proc/self/status`.
fn own_status<const N: usize>(names: [&str; N]) -> Option<[i32; N]> {
    // As bytes: the process's name, in it as well, may be any.
    let status = std::fs::read("/proc/self/status").ok()?;
    let number = |name: &str| {
        let mut lines = status.split(|byte| *byte == b'\n');
        let value = lines.find_map(|line| line.strip_prefix(name.as_bytes()))?;
        std::str::from_utf8(value).ok()?.trim().parse().ok()
    };
    let mut numbers = [0; N];
    for (found, name) in numbers.iter_mut().zip(names) {
        *found = number(name)?;
    }
    Some(numbers)
}

/// A directory of this user alone.
pub(crate) fn private_dir() -> std::io::Result<PathBuf> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    let base = std::env::var_os("XDG_RUNTIME_DIR")
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache").into()))
        .ok_or_else(|| std::io::Error::other("set JITSCRIBE_DIR, XDG_RUNTIME_DIR or HOME"))?;
    let dir = PathBuf::from(base).join("jitscribe");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    let found = std::fs::symlink_metadata(&dir)?;
    if !found.is_dir()
        || found.uid() != rustix::process::geteuid().as_raw()
        || found.mode() & 0o022 != 0
    {
        return Err(std::io::Error::other(format!("{} is not this user's alone", dir.display())));
    }
    Ok(dir)
}
