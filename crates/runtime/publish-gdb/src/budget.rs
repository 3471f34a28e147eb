//! Limits how much of the process's time debuggers may take.

use std::time::{Duration, Instant};

/// Time in nanoseconds that calls may take before anything waits.
const CREDIT: u64 = 100_000_000;
/// This many calls in a row never wait, however long they take: on a busy machine, each takes long.
const FREE: u32 = 256;
/// The share of elapsed time that is credited: 1/SHARE.
const SHARE: u64 = 2;
/// A call that takes less time, in nanoseconds, did not hit a breakpoint: stopping and continuing takes gdb and lldb 100
/// µs.
const UNNOTICED: u64 = 15_000;
/// The maximum that one call can cost: if it took longer, the user was thinking, or breakpoints of other threads were hit.
const LONGEST: u64 = 50_000_000;

/// The time that was spent, in nanoseconds, and when.
#[derive(Debug)]
pub(crate) struct Budget {
    spent: u64,
    /// Number of calls since the debt was last 0.
    calls: u32,
    at: Instant,
    is_unlimited: bool,
}

impl Budget {
    pub(crate) fn new(is_unlimited: bool) -> Self {
        Self { spent: 0, calls: 0, at: Instant::now(), is_unlimited }
    }

    /// Whether a call may be made now.
    pub(crate) fn allows(&mut self) -> bool {
        if self.spent <= CREDIT || self.calls < FREE || self.is_unlimited {
            return true;
        }
        self.credit(Instant::now());
        self.spent <= CREDIT
    }

    /// How long to wait before the next call.
    pub(crate) fn wait(&self) -> Duration {
        Duration::from_nanos(self.spent.saturating_sub(CREDIT).saturating_mul(SHARE))
    }

    /// Records a call.
    pub(crate) fn spend(&mut self, began: Instant, ended: Instant) {
        let took = nanos(ended.saturating_duration_since(began));
        if took >= UNNOTICED {
            self.credit(ended);
            if self.spent == 0 {
                self.calls = 0;
            }
            self.calls = self.calls.saturating_add(1);
            self.spent = self.spent.saturating_add(took.min(LONGEST)).min(CREDIT + LONGEST);
        }
    }

    fn credit(&mut self, now: Instant) {
        let passed = nanos(now.saturating_duration_since(self.at));
        self.spent = self.spent.saturating_sub(passed / SHARE);
        self.at = now;
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Instant, micros: u64) -> Instant {
        start + Duration::from_micros(micros)
    }

    #[test]
    fn calls_without_a_breakpoint_cost_nothing() {
        let mut budget = Budget::new(false);
        let start = budget.at;
        for call in 0..1_000_000 {
            budget.spend(after(start, call), after(start, call + 1));
        }
        assert_eq!(budget.spent, 0);
    }

    #[test]
    fn a_burst_is_stopped_and_half_of_the_time_is_credited() {
        let mut budget = Budget::new(false);
        let start = budget.at + Duration::from_secs(3600);
        let mut now = 0;
        let mut calls = 0;
        while budget.spent <= CREDIT || budget.calls < FREE {
            budget.spend(after(start, now), after(start, now + 1000));
            now += 1000;
            calls += 1;
        }
        assert_eq!(calls, 256);
        // One whole millisecond, and then half of each.
        assert_eq!(budget.wait(), Duration::from_millis(57));
        budget.credit(after(start, now + 57_000));
        assert_eq!(budget.wait(), Duration::ZERO);
    }

    #[test]
    fn a_long_call_costs_a_bounded_time() {
        let mut budget = Budget::new(false);
        let start = budget.at;
        for minute in 0..5 {
            let begin = after(start, minute);
            budget.spend(begin, begin + Duration::from_secs(60));
        }
        assert!(budget.wait() <= Duration::from_millis(100));
    }
}
