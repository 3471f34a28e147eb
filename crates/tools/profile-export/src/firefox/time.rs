//! Times as the Firefox Profiler has them.

/// In milliseconds.
pub fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}
