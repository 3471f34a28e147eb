//! The worker task ([`crate::foreign`]) for one process that `--inspect` is applied to: everything that accesses the process and its `/tmp`.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::node::{self, Ending};
use super::python;
use crate::foreign::{Limit, Output};
use crate::record::agent::{Failure, Maps, SessionPipe, Target, Wait};

/// The task: has the runtime of a process announce its code. The answer is an [`Outcome`]. If it does, the worker continues to run and keeps that active.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InspectTask {
    /// The process.
    pub pid: u32,
    /// The path of the addon for node, if there is one.
    pub addon: Option<String>,
    /// How long the process may take.
    pub time: Duration,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The process has no runtime that can be asked, has ended, or may not be inspected.
    Neither,
    /// It is node.
    Node {
        /// Why the addon was not loaded.
        failure: Option<String>,
        /// The inspector.
        inspector: Ending,
    },
    /// It is Python.
    Python(python::Outcome),
    /// It did not respond before its runtime was known.
    Failed(String),
}

impl InspectTask {
    /// Performs the task.
    pub fn perform(self, output: &mut Output) -> io::Result<()> {
        let Ok(target) = Target::open(self.pid) else {
            return output.bytes(&serde_json::to_vec(&Outcome::Neither)?);
        };
        let (outcome, session) = match self.ask(&target, output) {
            Ok((Outcome::Node { failure: Some(_), .. }, _)) | Err(_) if has_ended(self.pid) => {
                (Outcome::Neither, None)
            }
            Ok(done) => done,
            Err(failure) => (Outcome::Failed(failure.to_string()), None),
        };
        output.bytes(&serde_json::to_vec(&outcome)?)?;
        session.map_or(Ok(()), |session| session.keep(output, Some(&target)))
    }

    fn ask(
        &self,
        target: &Target,
        output: &Output,
    ) -> Result<(Outcome, Option<SessionPipe>), Failure> {
        let wait = Wait::new(Limit::of(self.time), Some(target), Some(output));
        let (Ok(maps), Ok(root)) = (Maps::of(target), target.root()) else {
            return Ok((Outcome::Neither, None));
        };
        // Otherwise, these may belong to a program that the user may not inspect.
        if !target.has_same_owner()? {
            return Ok((Outcome::Neither, None));
        }
        if node::is_node(maps, &wait)? {
            let mut inspector = Ending::NotOpened;
            let loaded = node::load(target, &root, &wait, self.addon.as_deref(), &mut inspector);
            let (failure, session) = match loaded {
                Ok(session) => (None, Some(session)),
                Err(failure) => (Some(failure.to_string()), None),
            };
            return Ok((Outcome::Node { failure, inspector }, session));
        }
        Ok(match python::load(target, &root, &wait)? {
            Some((outcome, session)) => (Outcome::Python(outcome), session),
            None => (Outcome::Neither, None),
        })
    }
}

fn has_ended(pid: u32) -> bool {
    Target::open(pid).is_err()
}
