//! When a process is examined for sources of code.

/// A runtime announces code soon after it has started, so a new process is examined often at first. Times are nanoseconds of one
/// clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    /// How often it was examined.
    count: usize,
    next: u64,
}

/// The time from one look to the next, in nanoseconds.
const AFTER: [u64; 6] =
    [0, 200_000_000, 800_000_000, 4_000_000_000, 15_000_000_000, 60_000_000_000];

impl Looks {
    /// A process that was found now.
    #[must_use]
    pub fn new(now: u64) -> Self {
        Self { count: 0, next: now }
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
