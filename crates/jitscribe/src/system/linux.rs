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
    in_process::own_status("TracerPid:").is_some_and(|tracer| tracer != 0)
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
