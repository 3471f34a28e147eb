//! A worker whose answer comes while the command does something else.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::caller::{Answer, Job, Patience, Running};
use super::task::Task;
use super::wire;

/// A task that was started. Dropping this stops its worker.
#[derive(Debug)]
pub struct Pending {
    running: Running,
    patience: Patience,
}

/// The descriptor becomes readable when there is something to [take](Pending::take).
impl AsFd for Pending {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.running.socket()
    }
}

impl Pending {
    /// Starts a task.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn begin(task: Task, patience: Patience) -> io::Result<Self> {
        let job = Job { task, passed: Vec::new() };
        Ok(Self { running: Running::begin(0, &job, patience)?, patience })
    }

    /// Reads what has come, without waiting. Returns the answer once it is complete, or an error as [`run`](super::run) does.
    pub fn take(&mut self) -> Option<io::Result<Answer>> {
        let mut room = vec![0; wire::PACKET];
        self.running.go_on(&mut room, self.patience).map(Result::flatten)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::deadline::Limit;
    use super::*;

    #[test]
    fn a_worker_that_never_answers_is_given_up_and_nobody_waits_for_it() {
        let silence = Limit::of(Duration::from_millis(50));
        let patience = Patience { silence, ..Patience::ONE_OF_MANY };
        let mut sleeping = Pending::begin(Task::Sleep, patience).expect("begun");
        let mut awake = Pending::begin(Task::Mappings { pid: std::process::id() }, Patience::NAMED)
            .expect("begun");
        let (mut late, mut answered) = (None, None);
        while late.is_none() || answered.is_none() {
            late = late.or_else(|| sleeping.take());
            answered = answered.or_else(|| awake.take());
            std::thread::yield_now();
        }
        assert!(!answered.expect("an answer").expect("mappings").bytes.is_empty());
        let error = late.expect("an end").expect_err("no answer");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
