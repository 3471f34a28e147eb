//! When a process is examined for sources of code.

/// A runtime announces code soon after it has started, so a new process is examined often at first. Times are nanoseconds of one
/// clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    /// How often it was examined.
    count: usize,
    next: u64,
}

/// The time from one look to the next, in nanoseconds. Most processes end before the first: there is no point in examining each
/// command of a shell script.
const AFTER: [u64; 6] =
    [100_000_000, 200_000_000, 700_000_000, 4_000_000_000, 15_000_000_000, 60_000_000_000];

impl Looks {
    /// A process that was found now.
    #[must_use]
    pub fn new(now: u64) -> Self {
        Self { count: 0, next: now.saturating_add(AFTER[0]) }
    }

    /// When it is examined next.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Notes that it was examined.
    pub fn looked(&mut self, now: u64) {
        self.count = (self.count + 1).min(AFTER.len() - 1);
        self.next = now.saturating_add(AFTER.get(self.count).copied().unwrap_or(u64::MAX));
    }

    /// Examines it again soon: it was asked for.
    pub fn hurry(&mut self, now: u64) {
        self.next = self.next.min(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_and_less_often_but_at_once_if_asked_for() {
        let mut looks = Looks::new(1_000);
        let mut times = vec![looks.next() - 1_000];
        for _ in 0..7 {
            let now = looks.next();
            looks.looked(now);
            times.push(looks.next() - now);
        }
        assert_eq!(
            times,
            [100, 200, 700, 4_000, 15_000, 60_000, 60_000, 60_000].map(|ms| ms * 1_000_000)
        );
        looks.hurry(5_000);
        assert_eq!(looks.next(), 5_000);
        // It is not put off by being asked for.
        looks.hurry(9_000);
        assert_eq!(looks.next(), 5_000);
        // One that is never examined.
        assert_eq!(Looks::new(u64::MAX).next(), u64::MAX);
    }
}
