//! Running processes whose runtime can be asked to announce its code, if the user says `--inspect`: node ([`node`]) and Python ([`python`]).
//!
//! The processes are asked one after the other, as all of node would open their inspectors on the same port. [`task`] does it, for one process.

mod node;
mod python;
mod task;

use std::io;
use std::time::Duration;

use crate::foreign::{self, Answer, Kept, Limit, Patience, Task};
use crate::{companion, note};

use self::node::{ADDON, Ending};
use self::task::Outcome;
use super::agent::let_go;
use super::call_graph::{self, Choice};

pub use self::task::InspectTask;

/// The time for a process to answer. It does not count while the process waits for a processor: see [`foreign::Deadline`].
const TIME: Duration = Duration::from_secs(10);

/// The additional time for a worker to close an inspector, and to report that there is no answer.
const LAST_WORD: Duration = Duration::from_secs(10);

/// The maximum length of a worker's answer.
const LONGEST_ANSWER: usize = 16 << 10;

/// The processes whose runtimes announce their code while this exists.
#[derive(Debug, Default)]
pub struct Inspected {
    kept: Vec<Kept>,
    /// What each Python says of its version and its frames.
    pythons: Vec<String>,
}

impl Inspected {
    /// Has these processes, which the user named, announce their code.
    pub fn named(pids: &[u32]) -> Self {
        let (name, variable) = ADDON;
        let addon = companion::named_library(variable, name);
        let addon = addon.and_then(|path| path.to_str().map(str::to_owned));
        let mut inspected = Self::default();
        for &pid in pids {
            let task = InspectTask { pid, addon: addon.clone(), time: TIME };
            let (outcome, kept) = outcome(ask(task));
            match outcome {
                Ok(outcome) => {
                    say(pid, &outcome);
                    if let Outcome::Python(python::Outcome::On(facts)) = outcome {
                        inspected.pythons.push(facts);
                    }
                }
                Err(error) => {
                    note::warning(format_args!("process {pid}: --inspect failed: {error}"))
                }
            }
            inspected.kept.extend(kept);
        }
        inspected
    }

    /// How stacks should be recorded, if its runtimes give a reason for a choice.
    pub fn call_graph(&self) -> Option<Choice> {
        let choices = || self.pythons.iter().filter_map(|facts| call_graph::of_python(facts));
        choices().find(Choice::is_of_copies).or_else(|| choices().next())
    }

    /// Ends the recording: no runtime announces its code any more.
    pub fn finish(self) {
        let_go(self.kept.iter());
    }
}

fn ask(task: InspectTask) -> io::Result<Answer> {
    let limit = Limit::of(TIME);
    let patience = Patience {
        silence: limit.and(LAST_WORD),
        // The worker counts the time of the process, and says so.
        whole: Limit { counted: limit.wall, ..limit }.and(LAST_WORD),
        bytes: LONGEST_ANSWER,
        ..Patience::NAMED
    };
    foreign::run(Task::Inspect(task), Vec::new(), patience)
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
    match outcome {
        Outcome::Neither => note::warning(format_args!(
            "process {pid} is neither node nor Python 3.13 or later, or not this user's: --inspect does nothing to it"
        )),
        Outcome::Failed(why) => {
            note::warning(format_args!("process {pid}: --inspect failed: {why}"));
        }
        Outcome::Node { failure: None, inspector } => note::say(format_args!(
            "process {pid} is node, and has loaded {}{}",
            ADDON.0,
            done_to(*inspector)
        )),
        Outcome::Node { failure: Some(why), inspector } => note::warning(format_args!(
            "process {pid} is node, and has not loaded {}: {why}{}",
            ADDON.0,
            done_to(*inspector)
        )),
        Outcome::Python(python::Outcome::On(_)) => note::say(format_args!(
            "process {pid} is Python, and calls functions through trampolines until the recording ends"
        )),
        Outcome::Python(python::Outcome::WasOn) => {
            note::say(format_args!("process {pid} is Python, and had turned on its trampolines"))
        }
        Outcome::Python(python::Outcome::Used) => note::warning(format_args!(
            "process {pid} is Python, and had trampolines before: turned on again, they would crash CPython at its end (python/cpython#146522); \
             to record it once more, restart it, with -X perf"
        )),
        Outcome::Python(python::Outcome::Failed(why)) => note::warning(format_args!(
            "process {pid} is Python, and has not turned on its trampolines: {why}"
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
