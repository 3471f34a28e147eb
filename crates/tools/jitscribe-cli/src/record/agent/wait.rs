//! Waiting with a deadline and a stop signal.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::failure::Failure;
use super::target::Target;
use crate::foreign::{Clock, Deadline, Limit, Output};

/// The interval for checking something again.
pub const PAUSE: Duration = Duration::from_millis(10);

/// The limit on the time spent on one process.
#[derive(Debug)]
pub struct Wait<'a> {
    /// The deadline. It counts the time in which the process could work.
    deadline: RefCell<Deadline>,
    /// The process, if it is known.
    target: Option<&'a Target>,
    /// Becomes readable, or is closed at the other end, when the answer is no longer needed. The command learns there that this
    /// worker counts the time.
    output: Option<&'a Output>,
}

impl<'a> Wait<'a> {
    /// A limit for a process, which begins now. `output` is where the command waits for the answer.
    pub fn new(time: Limit, target: Option<&'a Target>, output: Option<&'a Output>) -> Self {
        let deadline = RefCell::new(Deadline::new(time, time, Clock::now()));
        Self { deadline, target, output }
    }

    /// The time so far in which the process could work.
    pub fn counted(&self) -> Duration {
        self.deadline.borrow().counted()
    }

    /// Ends the wait at the deadline.
    ///
    /// # Errors
    /// [`Failure::NotAnswering`].
    pub fn check(&self) -> Result<(), Failure> {
        let (mut deadline, clock) = (self.deadline.borrow_mut(), Clock::now());
        deadline.look(clock, || {
            if let Some(output) = self.output {
                // If the command has ended, this is noticed by waiting for its messages.
                let _ = output.progress();
            }
            self.target.and_then(Target::usage)
        });
        if deadline.is_over(clock) { Err(Failure::NotAnswering) } else { Ok(()) }
    }

    /// Waits until a descriptor is ready for `events`, or has failed.
    ///
    /// # Errors
    /// [`Failure::NotAnswering`] at the deadline, [`Failure::Stopped`].
    pub fn ready(&self, descriptor: impl AsFd, events: PollFlags) -> Result<(), Failure> {
        loop {
            self.check()?;
            if self.once(Some((descriptor.as_fd(), events)), Duration::MAX)? {
                return Ok(());
            }
        }
    }

    /// Waits for this long.
    ///
    /// # Errors
    /// As [`Self::ready`].
    pub fn pause(&self, time: Duration) -> Result<(), Failure> {
        let begun = Instant::now();
        self.check()?;
        while let Some(left) = time.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
            self.once(None, left)?;
            self.check()?;
        }
        Ok(())
    }

    /// Waits until the next look at the process, but not longer than `time`. Returns whether the descriptor is ready.
    fn once(
        &self,
        other: Option<(BorrowedFd<'_>, PollFlags)>,
        time: Duration,
    ) -> Result<bool, Failure> {
        let time = time.min(self.deadline.borrow().pause(Clock::now()));
        let stop = self.output.map(|output| (output.as_fd(), PollFlags::IN));
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
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::process::{Child, Command, Stdio};
    use std::thread;

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;
    use crate::foreign::busy::Busy;

    #[test]
    fn the_deadline_and_a_message_end_a_wait() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (stop, stopper) = UnixStream::pair().expect("a pair");
        let output = Output::new(stop.into());
        let begun = Instant::now();
        let soon = Duration::from_millis(30);
        let late = Wait::new(Limit::of(soon), None, Some(&output));
        assert!(matches!(late.ready(&ours, PollFlags::IN), Err(Failure::NotAnswering)));
        assert!(begun.elapsed() >= soon);
        assert!(matches!(late.pause(Duration::ZERO), Err(Failure::NotAnswering)));

        let hour = Limit::of(Duration::from_secs(3600));
        let long = Wait::new(hour, None, Some(&output));
        long.pause(Duration::from_millis(1)).expect("a pause");
        drop(stopper);
        assert!(matches!(long.ready(&ours, PollFlags::IN), Err(Failure::Stopped)));
        assert!(matches!(long.pause(Duration::from_secs(600)), Err(Failure::Stopped)));
        let unheard = Wait::new(hour, None, None);
        drop(theirs);
        unheard.ready(&ours, PollFlags::IN).expect("closed is ready");
    }

    /// A process that does not end by itself, also if the test fails.
    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            _ = self.0.kill();
            _ = self.0.wait();
        }
    }

    #[test]
    fn a_process_without_processor_time_is_waited_for() {
        let Some(busy) = Busy::start() else { return };
        let mut slow = Command::new("taskset");
        slow.args(["-c", &busy.cpu.to_string(), "nice", "-n", "19", "sh", "-c"]);
        // As the thread of a JVM that answers is called.
        let script = "printf 'VM Thread' >/proc/self/comm; echo; while :; do :; done";
        let mut slow = Killed(slow.arg(script).stdout(Stdio::piped()).spawn().expect("started"));
        slow.0.stdout.take().expect("a pipe").read_exact(&mut [0]).expect("its name");
        let target = Target::open(slow.0.id()).expect("it runs");
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let counted = Duration::from_millis(300);
        let hour = Duration::from_secs(3600);
        let waited = || target.usage().expect("known").threads[0].waited;
        // The process changes its priority first.
        while waited() < counted {
            thread::sleep(Duration::from_millis(5));
        }
        let before = waited();
        let wait = Wait::new(Limit { counted, wall: hour }, Some(&target), None);
        thread::scope(|scope| {
            scope.spawn(|| {
                while waited() < before + counted * 6 {
                    thread::sleep(Duration::from_millis(5));
                }
                theirs.write_all(b"x").expect("sent");
            });
            wait.ready(&ours, PollFlags::IN).expect("it is not given up");
        });
        assert!(wait.counted() < counted, "{:?}", wait.counted());
        // It could work if it were not stopped.
        kill_process(Pid::from_child(&slow.0), Signal::STOP).expect("it runs");
        let wait = Wait::new(Limit { counted, wall: hour }, Some(&target), None);
        let given_up = wait.pause(hour);
        assert!(matches!(given_up, Err(Failure::NotAnswering)), "{given_up:?}");
    }
}
