//! Limits how much of the process's time debuggers may take.

use std::time::{Duration, Instant};

/// Time in nanoseconds that calls may take before anything waits: as much as one accepts at the start of a debugger, since a stop that comes while
/// code waits shows frames without names.
const CREDIT: u64 = 3_000_000_000;
/// This many calls in a row never wait, however long they take: on a busy machine, each takes long.
const FREE: u32 = 1024;
/// A call that takes less time, in nanoseconds, did not hit a breakpoint: stopping and continuing takes gdb and lldb 100
/// µs.
const UNNOTICED: u64 = 15_000;
/// A call may always cost this much, in nanoseconds.
const SHORT: u64 = 50_000_000;
/// A call that takes more than this many times as long as usual costs no more than that: the user was thinking, or breakpoints
/// of other threads were hit.
const UNUSUAL: u64 = 4;

/// The time that was spent, in nanoseconds. Time in which the process runs pays for as much time in calls.
#[derive(Debug)]
pub(crate) struct Budget {
    spent: u64,
    /// Number of calls since the debt was last 0.
    calls: u32,
    /// What a call costs on average, in nanoseconds: of the last ones, mostly.
    usual: u64,
    /// Until when running time was credited: at least the end of the last call.
    at: Instant,
    is_unlimited: bool,
}

impl Budget {
    pub(crate) fn new(is_unlimited: bool) -> Self {
        Self { spent: 0, calls: 0, usual: 0, at: Instant::now(), is_unlimited }
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
        Duration::from_nanos(self.spent.saturating_sub(CREDIT))
    }

    /// Records a call.
    pub(crate) fn spend(&mut self, began: Instant, ended: Instant) {
        let took = nanos(ended.saturating_duration_since(began));
        if took < UNNOTICED {
            return;
        }
        self.credit(began);
        if self.spent == 0 {
            self.calls = 0;
        }
        self.calls = self.calls.saturating_add(1);
        let cost = took.min(SHORT.max(self.usual.saturating_mul(UNUSUAL)));
        self.usual = self.usual.saturating_sub(self.usual / 8).saturating_add(cost / 8);
        self.spent = self.spent.saturating_add(cost);
        // The call itself pays for nothing.
        self.at = self.at.max(ended);
    }

    fn credit(&mut self, now: Instant) {
        let passed = nanos(now.saturating_duration_since(self.at));
        self.spent = self.spent.saturating_sub(passed);
        self.at = self.at.max(now);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process with a debugger, by a clock of its own.
    struct Process {
        budget: Budget,
        start: Instant,
        now: u64,
    }

    impl Process {
        fn new() -> Self {
            let budget = Budget::new(false);
            let start = budget.at;
            Self { budget, start, now: 0 }
        }

        fn time(&self) -> Instant {
            self.start + Duration::from_micros(self.now)
        }

        fn call(&mut self, micros: u64) {
            let began = self.time();
            self.now += micros;
            let ended = self.time();
            self.budget.spend(began, ended);
        }

        fn run(&mut self, micros: u64) {
            self.now += micros;
            let now = self.time();
            self.budget.credit(now);
        }

        fn may_call(&self) -> bool {
            self.budget.spent <= CREDIT || self.budget.calls < FREE
        }
    }

    #[test]
    fn calls_without_a_breakpoint_cost_nothing() {
        let mut process = Process::new();
        for _ in 0..1_000_000 {
            process.call(1);
        }
        assert_eq!(process.budget.spent, 0);
    }

    #[test]
    fn a_burst_is_stopped_until_the_process_has_run_for_as_long_as_the_last_call_took() {
        let mut process = Process::new();
        let mut calls = 0;
        while process.may_call() {
            process.call(1000);
            calls += 1;
        }
        assert_eq!(calls, 3001);
        assert_eq!(process.budget.wait(), Duration::from_millis(1));
        process.run(1000);
        assert!(process.may_call());
    }

    #[test]
    fn the_first_calls_never_wait() {
        let mut process = Process::new();
        let mut calls = 0;
        while process.may_call() {
            process.call(20_000);
            calls += 1;
        }
        assert_eq!(calls, FREE);
    }

    /// However slow the debugger becomes, it takes half of the time, but for the credit and the free calls.
    #[test]
    fn slow_calls_do_not_pay_for_themselves() {
        let mut process = Process::new();
        let mut in_calls = 0;
        for call in 0..2000_u64 {
            let micros = 1000 + call * call / 10;
            while !process.may_call() {
                let wait = process.budget.wait();
                process.run(wait.as_micros() as u64 + 1);
            }
            process.call(micros);
            in_calls += micros;
        }
        let free: u64 = (0..u64::from(FREE)).map(|call| 1000 + call * call / 10).sum();
        let last = 1000 + 2000 * 2000 / 10;
        let allowed = CREDIT / 1000 + free + last;
        assert!(in_calls <= process.now / 2 + allowed, "{in_calls} of {}", process.now);
    }

    #[test]
    fn an_hour_at_the_debuggers_prompt_costs_little() {
        let mut process = Process::new();
        for _ in 0..FREE {
            process.call(1000);
        }
        let before = process.budget.spent;
        process.call(3_600_000_000);
        assert_eq!(process.budget.spent - before, SHORT);
    }
}
