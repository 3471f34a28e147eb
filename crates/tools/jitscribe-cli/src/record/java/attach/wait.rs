//! Waiting with a deadline and a stop signal.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::failure::Failure;

/// The interval for checking something again.
pub const PAUSE: Duration = Duration::from_millis(10);

/// The limit on the time spent on one process.
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    /// The deadline.
    pub until: Instant,
    /// Becomes readable, or is closed at the other end, when the answer is no longer needed.
    pub stop: Option<BorrowedFd<'a>>,
}

impl Wait<'_> {
    /// Waits until a descriptor is ready for `events`, or has failed.
    ///
    /// # Errors
    /// [`Failure::NotAnswering`] at the deadline, [`Failure::Stopped`].
    pub fn ready(&self, descriptor: impl AsFd, events: PollFlags) -> Result<(), Failure> {
        while !self.once(Some((descriptor.as_fd(), events)), self.left()?)? {}
        Ok(())
    }

    /// Waits for this long.
    ///
    /// # Errors
    /// As [`Self::ready`].
    pub fn pause(&self, time: Duration) -> Result<(), Failure> {
        self.once(None, self.left()?.min(time))?;
        Ok(())
    }

    fn left(&self) -> Result<Duration, Failure> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(Failure::NotAnswering) } else { Ok(left) }
    }

    /// Returns whether the descriptor is ready.
    fn once(
        &self,
        other: Option<(BorrowedFd<'_>, PollFlags)>,
        time: Duration,
    ) -> Result<bool, Failure> {
        let stop = self.stop.map(|stop| (stop, PollFlags::IN));
        let mut polled: Vec<_> = other
            .iter()
            .chain(&stop)
            .map(|(descriptor, events)| PollFd::from_borrowed_fd(*descriptor, *events))
            .collect();
        let time = Timespec::try_from(time).map_err(|_| Failure::NotAnswering)?;
        match poll(&mut polled, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut happened = polled.iter().map(|polled| !polled.revents().is_empty());
        let ready = other.is_some() && happened.next() == Some(true);
        if happened.next() == Some(true) {
            return Err(Failure::Stopped);
        }
        Ok(ready)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_deadline_and_a_message_end_a_wait() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (stop, stopper) = UnixStream::pair().expect("a pair");
        let soon = Instant::now() + Duration::from_millis(30);
        let late = Wait { until: soon, stop: Some(stop.as_fd()) };
        assert!(matches!(late.ready(&ours, PollFlags::IN), Err(Failure::NotAnswering)));
        assert!(Instant::now() >= soon);
        assert!(matches!(late.pause(Duration::ZERO), Err(Failure::NotAnswering)));

        let long = Wait { until: Instant::now() + Duration::from_secs(600), ..late };
        long.pause(Duration::from_millis(1)).expect("a pause");
        drop(stopper);
        assert!(matches!(long.ready(&ours, PollFlags::IN), Err(Failure::Stopped)));
        assert!(matches!(long.pause(Duration::from_secs(600)), Err(Failure::Stopped)));
        let unheard = Wait { stop: None, ..long };
        drop(theirs);
        unheard.ready(&ours, PollFlags::IN).expect("closed is ready");
    }
}
