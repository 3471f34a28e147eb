//! The integration tests, as one program.

mod check;
mod perf;
mod resolve;
mod round_trip;
mod spelling;

/// For how long this thread ran, which does not depend on how busy the machine is. Only Linux tells.
fn seconds() -> u64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = times.split(' ').next().and_then(|time| time.parse::<u64>().ok());
    nanoseconds.unwrap_or(0) / 1_000_000_000
}
