//! What a process has used of the processors, and what it has waited for them: what a [`Deadline`](super::Deadline) counts by.
//!
//! All users may read these files, and no process can delay that. They are missing if `/proc` hides processes of others (`hidepid`),
//! or if the kernel was built without `CONFIG_SCHED_INFO`.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{CWD, Dir, Mode, OFlags, openat};

use super::cpu_clock::processor_time;

/// What a process has used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The processor time of all threads.
    pub used: Duration,
    /// Its threads.
    pub threads: Vec<ThreadUsage>,
}

/// What a thread has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadUsage {
    /// Its id.
    pub id: u32,
    /// Its processor time.
    pub used: Duration,
    /// How long it was ready to run without running. The kernel adds a wait when it ends.
    pub waited: Duration,
    /// Whether it is ready to run, or runs.
    pub is_runnable: bool,
}

/// The maximum number of threads that are looked at. Of a process with more, half of these are the oldest and half the newest.
const THREADS: usize = 256;

/// The maximum length of a file. `stat` has up to 350 bytes.
const LONGEST: u64 = 1 << 12;

impl Usage {
    /// Of a process with one thread. `None` if that is not known.
    pub fn of_worker(pid: u32) -> Option<Self> {
        let thread = ThreadUsage::read(CWD, &format!("/proc/{pid}"), pid, |_| true)?;
        let used = processor_time(pid).map_or(thread.used, Duration::from_nanos);
        Some(Self { used, threads: vec![thread] })
    }

    /// Of those threads of a process whose names are `wanted`. `folder` is its folder in `/proc`. `None` if there are none.
    pub fn of_threads(pid: u32, folder: impl AsFd, wanted: impl Fn(&[u8]) -> bool) -> Option<Self> {
        let folder = folder.as_fd();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let tasks = openat(folder, "task", flags, Mode::empty()).ok()?;
        let entries = Dir::read_from(&tasks).ok()?.flatten();
        let mut ids: Vec<u32> =
            entries.filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok()).collect();
        if let Some(excess) = ids.len().checked_sub(THREADS) {
            ids.drain(THREADS / 2..THREADS / 2 + excess);
        }
        // A thread may have ended since.
        let read = |id: u32| ThreadUsage::read(&tasks, &id.to_string(), id, &wanted);
        let threads: Vec<_> = ids.into_iter().filter_map(read).collect();
        if threads.is_empty() {
            return None;
        }
        let all = || threads.iter().map(|thread| thread.used).sum();
        Some(Self { used: processor_time(pid).map_or_else(all, Duration::from_nanos), threads })
    }

    /// How long the process could not work, as it had no processor, in the time `passed` since `before`. A thread that was not there
    /// before is new.
    ///
    /// The thread that waited longest counts: the others may wait for it. But a process that uses a whole processor can work.
    pub fn starved(&self, before: Option<&Self>, passed: Duration) -> Duration {
        let before_of = |id| {
            let threads = before.map_or(&[][..], |before| &before.threads);
            threads.iter().find(|thread| thread.id == id)
        };
        let starved = |thread: &ThreadUsage| {
            let (used, waited) = before_of(thread.id)
                .map_or((Duration::ZERO, Duration::ZERO), |before| (before.used, before.waited));
            let rest = passed.saturating_sub(thread.used.saturating_sub(used));
            // Its present wait is not in `waited` yet.
            if thread.is_runnable { rest } else { rest.min(thread.waited.saturating_sub(waited)) }
        };
        let longest = self.threads.iter().map(starved).max().unwrap_or_default();
        let used = self.used.saturating_sub(before.map_or(Duration::ZERO, |before| before.used));
        longest.min(passed.saturating_sub(used))
    }
}

impl ThreadUsage {
    /// Of the thread with this folder in `/proc`, if its name is `wanted`.
    fn read(
        base: impl AsFd,
        folder: &str,
        id: u32,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Option<Self> {
        let read = |name: &str| {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let file: OwnedFd =
                openat(&base, format!("{folder}/{name}"), flags, Mode::empty()).ok()?;
            let mut bytes = Vec::new();
            File::from(file).take(LONGEST).read_to_end(&mut bytes).ok()?;
            Some(bytes)
        };
        let stat = read("stat")?;
        let (name, state) = name_and_state(&stat)?;
        if wanted(name) { Self::parse(id, &read("schedstat")?, state) } else { None }
    }

    fn parse(id: u32, schedstat: &[u8], state: u8) -> Option<Self> {
        let schedstat = str::from_utf8(schedstat).ok()?;
        let mut times = schedstat.split_ascii_whitespace().map(str::parse);
        let mut time = || Some(Duration::from_nanos(times.next()?.ok()?));
        let (used, waited) = (time()?, time()?);
        Some(Self { id, used, waited, is_runnable: state == b'R' })
    }
}

/// What `stat` says of a thread. The name is in parentheses, and may contain any bytes.
fn name_and_state(stat: &[u8]) -> Option<(&[u8], u8)> {
    let begin = stat.iter().position(|&byte| byte == b'(')? + 1;
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    Some((stat.get(begin..end)?, *stat.get(end..)?.get(2)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_tells_of_a_thread() {
        let (name, state) = name_and_state(b"7 (a) R (\xff) S 1 2").expect("valid");
        assert_eq!((name, state), (&b"a) R (\xff"[..], b'S'));
        let parse = |state| ThreadUsage::parse(7, b"1500 2500 3\n", state);
        let sleeps = parse(b'S').expect("valid");
        let (used, waited) = (Duration::from_nanos(1500), Duration::from_nanos(2500));
        assert_eq!(sleeps, ThreadUsage { id: 7, used, waited, is_runnable: false });
        assert!(parse(b'R').expect("valid").is_runnable);
        for invalid in [&b""[..], b"7 (b)", b"7 (b) ", b"7 b R", b"7 )b( R"] {
            assert_eq!(name_and_state(invalid), None);
        }
        for invalid in [&b""[..], b"1", b"1 x 2", b"\xff"] {
            assert_eq!(ThreadUsage::parse(7, invalid, b'R'), None);
        }
    }

    #[test]
    fn this_process_has_this_thread() {
        let folder = File::open("/proc/self").expect("a folder");
        let pid = std::process::id();
        let Some(usage) = Usage::of_threads(pid, &folder, |_| true) else {
            // The kernel keeps no such counts.
            assert!(!std::path::Path::new("/proc/self/schedstat").exists());
            return;
        };
        let id = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let this = usage.threads.iter().find(|thread| thread.id == id).expect("this thread");
        assert!(this.is_runnable && usage.used > Duration::ZERO);
        assert_eq!(Usage::of_threads(pid, &folder, |name| name == b"no thread"), None);
        assert_eq!(Usage::of_worker(pid).expect("known").threads.len(), 1);
        assert_eq!(Usage::of_worker(0x7fff_ffff), None);
    }
}
