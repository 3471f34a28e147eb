//! The worker task ([`crate::foreign`]) for one process that may be a JVM: everything that accesses the process, its `/tmp` and
//! its socket.

use std::io;
use std::time::Duration;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::attach::{Request, ask};
use super::jvm;
use crate::foreign::{Limit, Output, Owner};
use crate::record::agent::{Failure, Folder, Maps, OfferedPipe, SessionPipe, Target, Wait};

/// The task: sends a request to a process if it is a JVM. The answer is an [`Outcome`]. If the JVM has loaded the agent, the
/// worker continues to run and keeps the agent active.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JvmTask {
    /// The process.
    pub pid: u32,
    /// The request.
    pub what: What,
    /// How long the JVM may take.
    pub time: Duration,
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
        session.map_or(Ok(()), |(session, target)| session.keep(output, Some(&target)))
    }

    fn ask(
        &self,
        output: &Output,
        session: &mut Option<(SessionPipe, Target)>,
    ) -> Result<Outcome, Failure> {
        let Ok(target) = jvm::open(self.pid) else { return Ok(Outcome::NotJava) };
        // These are opened with our privileges; everything else is done as the process's user.
        let (Ok(maps), Ok(root)) = (Maps::of(&target), target.root()) else {
            return Ok(Outcome::NotJava);
        };
        // Otherwise, these may belong to a program that the user may not inspect.
        if !target.has_same_owner()? {
            return Ok(Outcome::NotJava);
        }
        Owner { user: target.user, group: target.group }.become_this()?;
        let wait = Wait::new(Limit::of(self.time), Some(&target), Some(output));
        if !jvm::is_jvm(maps, &wait)? {
            return Ok(Outcome::NotJava);
        }
        let folder = Folder::new(root.open("/tmp", OFlags::DIRECTORY)?);
        let no_frame_pointers = !jvm::is_told_to_keep_frame_pointers(&target);
        match &self.what {
            What::PerfMap => {
                ask(&target, &folder, &Request::jcmd("Compiler.perfmap")?, &wait)?.done()?;
            }
            What::Agent { path: agent, interpreted } => {
                root.expect_file(agent)?;
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
                *session = Some((offer.taken(), target));
            }
        }
        Ok(Outcome::Done { no_frame_pointers })
    }
}
