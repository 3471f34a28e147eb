//! How long to wait before the next attempt.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Exponential back-off with jitter.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
    random: RandomState,
}

/// The longest wait that a server may ask for.
pub const LONGEST_OF_SERVER: Duration = Duration::from_hours(1);

impl Backoff {
    /// Waits `first` after the first failure, twice as long after each further one, and never longer than `longest`.
    #[must_use]
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failures: 0, random: RandomState::new() }
    }

    /// The wait after one more failure, of which the server may have said how long it is to be at least.
    ///
    /// Up to half of the wait is chosen at random, so that senders that failed together do not come back together.
    pub fn after_failure(&mut self, asked: Option<Duration>) -> Duration {
        let doubled = 1_u32.checked_shl(self.failures.min(31)).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(1);
        let whole = self.first.saturating_mul(doubled).min(self.longest);
        let mut hasher = self.random.build_hasher();
        hasher.write_u32(self.failures);
        let half = whole.checked_div(2).unwrap_or_default();
        let share = (hasher.finish() >> 32) as u32;
        let jitter = half.mul_f64(f64::from(share) / f64::from(u32::MAX));
        let chosen = half.saturating_add(jitter);
        match asked {
            // The server's own wait is the shortest, and jitter is added to it.
            Some(asked) => {
                asked.min(LONGEST_OF_SERVER).saturating_add(jitter.min(self.first)).max(chosen)
            }
            None => chosen,
        }
    }

    /// The longest wait, for failures that time alone does not remove.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// The next failure is a first one.
    pub fn reset(&mut self) {
        // Another sequence of random numbers.
        *self = Self::new(self.first, self.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_with_jitter_below() {
        let second = Duration::from_secs(1);
        let mut backoff = Backoff::new(second, second * 60);
        for whole in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            let wait = backoff.after_failure(None);
            assert!(wait >= second * whole / 2 && wait <= second * whole, "{wait:?} of {whole}");
        }
        for _ in 0..100 {
            assert!(backoff.after_failure(None) <= second * 60);
        }
        backoff.reset();
        assert!(backoff.after_failure(None) <= second);
    }

    #[test]
    fn a_server_is_obeyed_within_limits() {
        let second = Duration::from_secs(1);
        let mut backoff = Backoff::new(second, second * 60);
        let wait = backoff.after_failure(Some(second * 90));
        assert!(wait >= second * 90 && wait <= second * 91, "{wait:?}");
        let wait = backoff.after_failure(Some(Duration::MAX));
        assert!(wait <= LONGEST_OF_SERVER + second, "{wait:?}");
        // A server that asks for nothing is not asked without a pause.
        assert!(backoff.after_failure(Some(Duration::ZERO)) >= second * 2);
    }

    #[test]
    fn two_senders_wait_differently() {
        let wait =
            || Backoff::new(Duration::from_hours(1), Duration::from_hours(1)).after_failure(None);
        let waits: std::collections::BTreeSet<_> = (0..16).map(|_| wait()).collect();
        assert!(waits.len() > 1, "{waits:?}");
    }
}
