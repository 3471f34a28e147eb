//! The comparison with which a call for another file is passed on.
#![forbid(unsafe_code)]

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The span of watched descriptors: the lowest, and above it how many. 0 if there are none.
static SPAN: AtomicU64 = AtomicU64::new(0);
/// The span of our own descriptors, which the program may close by accident.
static OWN: AtomicU64 = AtomicU64::new(0);

/// Whether this descriptor may be watched.
#[inline(always)]
pub(crate) fn holds(fd: c_int) -> bool {
    is_in(SPAN.load(Relaxed), fd)
}

/// Whether no descriptor is watched.
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

/// Sets the watched descriptors; others in between may appear watched.
pub(crate) fn set(fds: impl Iterator<Item = c_int>) {
    SPAN.store(of(fds.filter_map(|fd| u32::try_from(fd).ok())), Relaxed);
}

/// Sets our own descriptors.
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
