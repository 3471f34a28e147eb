//! The clock of all records.

use rustix::time::{ClockId, clock_gettime};

/// Now, in nanoseconds of `CLOCK_MONOTONIC`, the clock of `perf record -k mono`. Never 0.
pub(crate) fn now() -> u64 {
    read(ClockId::Monotonic).max(1)
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
