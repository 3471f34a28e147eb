//! The worker task ([`crate::foreign`]) for one process that may be a JVM: everything that accesses the process, its `/tmp` and
//! its socket.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::attach::{Failure, Request, Wait, ask};
use super::folder::Folder;
use super::session::{OfferedPipe, SessionPipe};
use super::target::{Root, Target};
use crate::foreign::{Output, Owner};

/// The task: sends a request to a process if it is a JVM. The answer is an [`Outcome`]. If the JVM has loaded the agent, the
/// worker continues to run and keeps the agent active.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JvmTask {
    /// The process.
    pub pid: u32,
    /// The request.
    pub what: What,
    /// The deadline.
    pub until: Deadline,
}

/// A request to a JVM.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum What {
    /// Write a perf map.
    PerfMap,
    /// Load the agent at this path.
    Agent {
        /// The path.
        path: String,
        /// Whether the agent is to announce interpreted methods, too, so that they can be named in copies of stacks.
        interpreted: Interpreted,
    },
}

/// When interpreted methods are announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interpreted {
    /// Never.
    No,
    /// Always.
    Yes,
    /// If the JVM keeps no frame pointers.
    WithoutFramePointers,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The process is not a JVM, has ended, or may not be inspected.
    NotJava,
    /// The JVM did what was requested.
    Done {
        /// Whether its compiled code keeps no frame pointers, so that stacks can only be unwound.
        no_frame_pointers: bool,
    },
    /// The JVM has not answered in time.
    NotAnswering,
    /// The JVM did not do what was requested, for this reason.
    Refused(String),
}

/// A point in time that another process of this machine understands: nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Deadline(u64);

impl Deadline {
    /// The point in time this long from now.
    pub fn after(time: Duration) -> Self {
        let now = clock_gettime(ClockId::Monotonic);
        let now = Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0));
        Self(u64::try_from(now.saturating_add(time).as_nanos()).unwrap_or(u64::MAX))
    }

    /// The time that is left until then.
    pub fn left(self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(Self::after(Duration::ZERO).0))
    }
}

impl JvmTask {
    /// Performs the task.
    pub fn perform(self, output: &mut Output) -> io::Result<()> {
        let mut session = None;
        let outcome = match self.ask(output, &mut session) {
            Ok(outcome) => outcome,
            Err(Failure::NotAnswering) => Outcome::NotAnswering,
            // The command no longer waits for an answer.
            Err(Failure::Stopped) => return Ok(()),
            // The process has ended.
            Err(_) if Target::open(self.pid).is_err() => Outcome::NotJava,
            Err(failure) => Outcome::Refused(failure.to_string()),
        };
        output.bytes(&serde_json::to_vec(&outcome)?)?;
        session.map_or(Ok(()), |session| session.keep(output))
    }

    fn ask(&self, output: &Output, session: &mut Option<SessionPipe>) -> Result<Outcome, Failure> {
        let until = Instant::now() + self.until.left();
        let Ok(target) = Target::open(self.pid) else { return Ok(Outcome::NotJava) };
        // These are opened with our privileges; everything else is done as the process's user.
        let (Ok(maps), Ok(root)) = (target.maps(), target.root()) else {
            return Ok(Outcome::NotJava);
        };
        // Otherwise, these may belong to a program that the user may not inspect.
        if !target.has_same_owner()? {
            return Ok(Outcome::NotJava);
        }
        Owner { user: target.user, group: target.group }.become_this()?;
        if !maps.have_jvm(until)? {
            return Ok(Outcome::NotJava);
        }
        let wait = Wait { until, stop: Some(output.as_fd()) };
        let folder = Folder::new(root.open("/tmp", OFlags::DIRECTORY)?);
        let no_frame_pointers = !target.is_told_to_keep_frame_pointers();
        match &self.what {
            What::PerfMap => {
                ask(&target, &folder, &Request::jcmd("Compiler.perfmap")?, &wait)?.done()?;
            }
            What::Agent { path: agent, interpreted } => {
                expect_file(&root, agent)?;
                let offer = OfferedPipe::make(&folder, self.pid)?;
                let interpreted = match interpreted {
                    Interpreted::Yes => true,
                    Interpreted::WithoutFramePointers => no_frame_pointers,
                    Interpreted::No => false,
                };
                let interpreted = if interpreted { "interpreted," } else { "" };
                let options = format!("{interpreted}hold:{}", offer.path());
                let request = Request::load(agent, &options)?;
                ask(&target, &folder, &request, &wait)?.loaded()?;
                *session = Some(offer.taken());
            }
        }
        Ok(Outcome::Done { no_frame_pointers })
    }
}

/// Checks that the JVM sees the file: it may have another root file system than we do.
fn expect_file(root: &Root, path: &str) -> Result<(), Failure> {
    match root.open(path, OFlags::empty()) {
        Ok(_) => Ok(()),
        Err(error) => {
            let error = io::Error::from(error);
            Err(Failure::Refused(format!("there is no {path} in its file system ({error})")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_the_same_in_all_processes() {
        let moment = Deadline::after(Duration::from_secs(100));
        assert!(
            moment.left() <= Duration::from_secs(100) && moment.left() > Duration::from_secs(10)
        );
        assert_eq!(Deadline::after(Duration::ZERO).left(), Duration::ZERO);
        assert_eq!(Deadline::after(Duration::MAX).0, u64::MAX);
    }
}
