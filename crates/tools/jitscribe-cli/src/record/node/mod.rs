//! Running processes of node that were started without flags, if the user says `--inspect`: each is asked through its inspector to load an addon
//! (`crates/bindings/jitscribe-node`), which announces its code for as long as a session lasts, as the agent for Java does.
//!
//! Node opens its inspector when it gets a SIGUSR1. It is closed again as soon as the addon is loaded, because each user of the machine may connect to it. The
//! processes are asked one after the other: all would open it on the same port.
//!
//! [`worker`] does this, for one process. It finds the inspector by the sockets that the process listens on ([`listening`]), and has it evaluate a script
//! ([`inspector`]).

mod inspector;
mod listening;
mod process;
mod worker;

use std::io;
use std::time::Duration;

use crate::foreign::{self, Answer, Kept, Limit, Patience, Task};
use crate::{Error, Result, companion, note};

use super::agent::let_go;
use worker::{Ending, Outcome};

pub use worker::NodeTask;

/// The addon's file name, and the environment variable that names another file.
const ADDON: (&str, &str) = ("libjitscribe_node.so", "JITSCRIBE_NODE_ADDON");

/// The time for a process to answer. It does not count while the process waits for a processor: see [`foreign::Deadline`].
const TIME: Duration = Duration::from_secs(10);

/// The additional time for a worker to close an inspector, and to report that there is no answer.
const LAST_WORD: Duration = Duration::from_secs(10);

/// The maximum length of a worker's answer.
const LONGEST_ANSWER: usize = 16 << 10;

/// The processes of node that have the addon. They announce their code while this exists.
#[derive(Debug, Default)]
pub struct Nodes(Vec<Kept>);

impl Nodes {
    /// Has these processes, which the user named, load the addon.
    ///
    /// # Errors
    /// If there is no addon.
    pub fn named(pids: &[u32]) -> Result<Self> {
        let (name, variable) = ADDON;
        let addon = companion::named_library(variable, name);
        let addon = addon.and_then(|path| path.to_str().map(str::to_owned)).ok_or_else(|| {
            Error::Refused(format!(
                "--inspect needs {name}, which is not installed with this command"
            ))
        })?;
        let mut nodes = Self::default();
        for &pid in pids {
            let task = NodeTask { pid, addon: addon.clone(), time: TIME };
            let (outcome, kept) = outcome(ask(task));
            match outcome {
                Ok(outcome) => say(pid, &outcome),
                Err(error) => {
                    note::warning(format_args!("process {pid}: --inspect failed: {error}"))
                }
            }
            nodes.0.extend(kept);
        }
        Ok(nodes)
    }

    /// Ends the recording: the addons stop.
    pub fn finish(self) {
        let_go(self.0.iter());
    }
}

fn ask(task: NodeTask) -> io::Result<Answer> {
    let limit = Limit::of(TIME);
    let patience = Patience {
        silence: limit.and(LAST_WORD),
        // The worker counts the time of the process, and says so.
        whole: Limit { counted: limit.wall, ..limit }.and(LAST_WORD),
        bytes: LONGEST_ANSWER,
        ..Patience::NAMED
    };
    foreign::run(Task::Node(task), Vec::new(), patience)
}

/// Parses the answer of a worker.
fn outcome(answer: io::Result<Answer>) -> (io::Result<Outcome>, Option<Kept>) {
    match answer {
        Ok(answer) => (serde_json::from_slice(&answer.bytes).map_err(io::Error::from), answer.kept),
        Err(error) => (Err(error), None),
    }
}

/// Says what was done to a process.
fn say(pid: u32, outcome: &Outcome) {
    let (failure, inspector) = match outcome {
        Outcome::NotNode => {
            note::warning(format_args!(
                "process {pid} is not node, or not this user's: --inspect does nothing to it"
            ));
            return;
        }
        Outcome::Done { failure, inspector } => (failure, done_to(*inspector)),
    };
    match failure {
        None => {
            note::say(format_args!("process {pid} is node, and has loaded {}{inspector}", ADDON.0))
        }
        Some(why) => note::warning(format_args!(
            "process {pid} is node, and has not loaded {}: {why}{inspector}",
            ADDON.0
        )),
    }
}

/// What was done to an inspector, as the end of a sentence.
fn done_to(inspector: Ending) -> String {
    match inspector {
        Ending::NotOpened => String::new(),
        Ending::Requested => {
            "; it got SIGUSR1 and has opened no inspector: it handles the signal itself, or opens one when it responds again".into()
        }
        Ending::WasOpen(port) => {
            format!("; its inspector, which was open on port {port}, stays open")
        }
        Ending::Closed(port) => {
            format!("; its inspector was opened on port {port}, and is closed again")
        }
        Ending::StillOpen(port) => format!(
            "; its inspector was opened on port {port}, and is still open: it did not close it"
        ),
    }
}
