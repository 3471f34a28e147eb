//! How long ago the thread that examines processes gave its last sign: if its helper gets no processor time, new processes stay
//! unknown, and nothing else shows that.

use std::sync::Mutex;
use std::sync::PoisonError;

/// After this long without a sign, the agent warns, in nanoseconds.
pub const LONG: u64 = 30_000_000_000;

/// The examinations that have begun, and the last sign of them.
#[derive(Debug, Default)]
pub struct LookAge(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The number of requests whose end has not come.
    running: u64,
    /// When a process was last examined, or the first request came.
    last: u64,
    /// Whether the present silence was warned of.
    is_warned: bool,
}

/// What has changed since the last time it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No process was examined for [`LONG`].
    Silent,
    /// Processes are examined again.
    Over,
}

impl LookAge {
    /// Processes are to be examined.
    pub fn begin(&self, now: u64) {
        self.with(|state| {
            if state.running == 0 {
                state.last = now;
            }
            state.running += 1;
        });
    }

    /// One of them was, and it was not given up.
    pub fn sign(&self, now: u64) {
        self.with(|state| state.last = now);
    }

    /// All of one request were.
    pub fn end(&self) {
        self.with(|state| state.running = state.running.saturating_sub(1));
    }

    /// How long no process was examined although some are to be, in nanoseconds.
    pub fn age(&self, now: u64) -> u64 {
        self.with(|state| state.age(now))
    }

    /// What is to be said, once for each silence.
    pub fn change(&self, now: u64) -> Option<Change> {
        self.with(|state| {
            let is_silent = state.age(now) >= LONG;
            if is_silent == state.is_warned {
                return None;
            }
            state.is_warned = is_silent;
            Some(if is_silent { Change::Silent } else { Change::Over })
        })
    }

    fn with<Result>(&self, access: impl FnOnce(&mut State) -> Result) -> Result {
        access(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn age(&self, now: u64) -> u64 {
        if self.running == 0 { 0 } else { now.saturating_sub(self.last) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_told_once_and_so_is_its_end() {
        let age = LookAge::default();
        assert_eq!((age.age(LONG * 9), age.change(LONG * 9)), (0, None));
        age.begin(100);
        assert_eq!((age.age(150), age.change(150)), (50, None));
        age.begin(200);
        assert_eq!(age.age(200), 100);
        assert_eq!(age.change(100 + LONG), Some(Change::Silent));
        assert_eq!(age.change(200 + LONG), None);
        age.sign(300 + LONG);
        assert_eq!(age.change(300 + LONG), Some(Change::Over));
        age.end();
        assert_eq!(age.change(300 + LONG * 2), Some(Change::Silent));
        age.end();
        assert_eq!((age.age(LONG * 9), age.change(LONG * 9)), (0, Some(Change::Over)));
    }
}
