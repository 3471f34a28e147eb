//! The start time of this process: what was written before it belongs to another one.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Clock ticks a second in `/proc/PID/stat`: `USER_HZ`, 100 wherever Rust runs on Linux.
const TICK: Duration = Duration::from_millis(10);

/// The file system's clock lags by up to a kernel tick, and a process's start time is rounded down
/// to a [`TICK`].
const SLACK: Duration = Duration::from_millis(100);

/// A time, since the Unix epoch, before which this process cannot have written anything. `None`
/// without `/proc`.
///
/// It is wrong by as much as the clock was changed since the process started.
pub(crate) fn earliest_write_time() -> Option<Duration> {
    let mut buffer = [0; 1024];
    let stat = guest::begin_of("/proc/self/stat", &mut buffer)?;
    // The command, in parentheses, may contain anything. The start time is the 22nd field, the 20th
    // behind the command.
    let behind = stat.iter().rposition(|byte| *byte == b')')?.checked_add(1)?;
    let fields = str::from_utf8(stat.get(behind..)?).ok()?;
    let ticks: u32 = fields.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let age = now(ClockId::Boottime)?.checked_sub(TICK.checked_mul(ticks)?)?;
    now(ClockId::Realtime)?.checked_sub(age)?.checked_sub(SLACK)
}

fn now(clock: ClockId) -> Option<Duration> {
    Duration::try_from(clock_gettime(clock)).ok()
}
