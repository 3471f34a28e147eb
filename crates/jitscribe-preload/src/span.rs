//! The one comparison by which a call for another file goes its way.
#![forbid(unsafe_code)]

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The descriptors from the lowest to the highest that are watched: the lowest, and above it how many. Of none, nothing.
static SPAN: AtomicU64 = AtomicU64::new(0);
/// Those of our own that the program may close by chance.
static OWN: AtomicU64 = AtomicU64::new(0);

/// Whether this descriptor may be watched.
#[inline(always)]
pub(crate) fn holds(fd: c_int) -> bool {
    is_in(SPAN.load(Relaxed), fd)
}

/// Whether none is watched.
#[inline(always)]
pub(crate) fn is_empty() -> bool {
    SPAN.load(Relaxed) == 0
}

/// Whether it may be one of our own.
#[inline(always)]
pub(crate) fn may_be_own(fd: c_int) -> bool {
    is_in(OWN.load(Relaxed), fd)
}

#[inline(always)]
fn is_in(span: u64, fd: c_int) -> bool {
    (fd as u32).wrapping_sub(span as u32) < (span >> 32) as u32
}

/// From now on, these are watched and may be others.
pub(crate) fn set(fds: impl Iterator<Item = c_int>) {
    SPAN.store(of(fds.filter_map(|fd| u32::try_from(fd).ok())), Relaxed);
}

/// From now on, these are ours.
pub(crate) fn set_own(fds: impl Iterator<Item = u32>) {
    OWN.store(of(fds), Relaxed);
}

fn of(fds: impl Iterator<Item = u32>) -> u64 {
    let (mut low, mut high) = (u32::MAX, 0);
    for fd in fds {
        low = low.min(fd);
        high = high.max(fd);
    }
    if low <= high { u64::from(low) | u64::from(high - low + 1) << 32 } else { 0 }
}
