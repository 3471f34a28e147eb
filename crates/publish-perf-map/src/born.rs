//! When this process began: what was written before is not of it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Clock ticks a second in `/proc/PID/stat`: `USER_HZ`, 100 wherever Rust runs on Linux.
const TICK: Duration = Duration::from_millis(10);

/// The file system's clock lags up to a kernel tick, and a process's birth is cut to a
/// [`TICK`].
const SLACK: Duration = Duration::from_millis(100);

/// The time before which nothing can have been written by this process, since the Unix epoch.
/// `None` without `/proc`.
///
/// It is off by as much as the clock was set since the process began.
pub(crate) fn before_birth() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The command, in parentheses, may hold anything; the birth is the 22nd field, the 20th
    // behind it.
    let ticks: u32 = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let age = now(ClockId::Boottime)?.checked_sub(TICK.checked_mul(ticks)?)?;
    now(ClockId::Realtime)?.checked_sub(age)?.checked_sub(SLACK)
}

fn now(clock: ClockId) -> Option<Duration> {
    Duration::try_from(clock_gettime(clock)).ok()
}
