//! The clock of all records of a log.

use crate::system;

/// What times are told by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Clock {
    /// Nanoseconds of a clock that does not go back.
    #[default]
    Monotonic,
    /// The processor's own count, as `rdtsc` has it.
    #[cfg(target_arch = "x86_64")]
    Ticks,
}

impl Clock {
    /// The processor's own count, where there is one that a program may read and perf converts.
    pub(crate) const fn ticks() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        return Some(Self::Ticks);
        #[cfg(not(target_arch = "x86_64"))]
        return None;
    }

    /// Now. Never 0.
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
    // SAFETY: every x86-64 has the instruction. Where a process forbade it to itself (`PR_SET_TSC`), it asked for a signal.
    unsafe { core::arch::x86_64::_rdtsc() }
}
