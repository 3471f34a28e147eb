//! The clock of all records of a log.

use crate::system;

/// The clock of timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Clock {
    /// Nanoseconds of a monotonic clock.
    #[default]
    Monotonic,
    /// The processor's counter (`rdtsc`).
    #[cfg(target_arch = "x86_64")]
    Ticks,
}

impl Clock {
    /// The processor's counter, if programs may read it and perf can convert it.
    pub(crate) const fn ticks() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        return Some(Self::Ticks);
        #[cfg(not(target_arch = "x86_64"))]
        return None;
    }

    /// The current time. Never 0.
    #[inline]
    pub(crate) fn now(self) -> u64 {
        let now = match self {
            Self::Monotonic => system::nanoseconds(),
            #[cfg(target_arch = "x86_64")]
            Self::Ticks => read_ticks(),
        };
        now.max(1)
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn read_ticks() -> u64 {
    // SAFETY: every x86-64 has the instruction. If a process has disabled it (`PR_SET_TSC`), it has requested a signal.
    unsafe { core::arch::x86_64::_rdtsc() }
}
