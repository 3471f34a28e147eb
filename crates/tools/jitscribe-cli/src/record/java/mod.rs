//! Running JVMs. Each is asked to load the agent, which announces compiled code for as long as we [`hold`] it. If that is not
//! possible, the JVM is asked for a perf map.
//!
//! [`attach`] communicates with a JVM, in one [`worker`] per JVM. This starts no other program, and JVMs that do not respond are
//! given up.

mod attach;
mod folder;
mod hold;
mod target;
mod worker;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::foreign::{self, Answer, Job, Kept, Patience, Task, in_turns};
use crate::process::logs_of_all;
use crate::{java_agent, note};

use target::Target;
use worker::{Moment, Outcome, What};

pub use worker::AskJvm;

/// The time for JVMs that the user named to answer.
const NAMED: Duration = Duration::from_secs(30);

/// The time for all other JVMs together to answer.
const ALL: Duration = Duration::from_secs(5);

/// The time for the agents to stop at the end of the recording.
const GOODBYE: Duration = Duration::from_secs(5);

/// The additional time for a worker to report that there is no answer, before the worker itself is given up.
const LAST_WORD: Duration = Duration::from_secs(1);

/// The maximum number of JVMs with the agent at a time: each needs a worker, and the number of workers is limited.
const MOST_HELD: usize = 256;

/// The maximum length of a worker's answer.
const LONGEST_ANSWER: usize = 16 << 10;

/// The JVMs among the processes that are recorded.
#[derive(Debug)]
pub struct Jvms {
    /// All JVMs that ran when the recording began.
    known: BTreeSet<u32>,
    /// JVMs with the agent, each with the worker that keeps its agent active. They announce their code while this exists.
    held: Vec<(u32, Kept)>,
    /// JVMs that are asked for maps.
    mapped: BTreeSet<u32>,
    /// The time for all of them together to answer.
    time: Duration,
}

impl Default for Jvms {
    fn default() -> Self {
        Self { known: BTreeSet::new(), held: Vec::new(), mapped: BTreeSet::new(), time: ALL }
    }
}

impl Jvms {
    /// Makes the JVMs among these processes, which the user named, announce their code. With `ask`, they may be asked to load the
    /// agent.
    pub fn named(pids: &[u32], ask: bool) -> Self {
        let mut jvms = Self { time: NAMED, ..Self::default() };
        jvms.begin(pids, ask);
        jvms
    }

    /// Like [`Self::named`], for processes that the user did not name, as far as they permit it and answer in time.
    pub fn among(pids: &[u32]) -> Self {
        let mut jvms = Self::default();
        let pids: Vec<_> = pids.iter().copied().filter(|&pid| may_be_java(pid)).collect();
        jvms.begin(&pids, true);
        if !jvms.held.is_empty() {
            let pids: Vec<_> = jvms.held.iter().map(|(pid, _)| pid.to_string()).collect();
            note::say(format_args!(
                "the Java agent is loaded into {} (--no-env prevents this): {}",
                if let [_] = &*pids {
                    "1 process".into()
                } else {
                    format!("{} processes", pids.len())
                },
                pids.join(", ")
            ));
        }
        jvms
    }

    fn begin(&mut self, pids: &[u32], agent: bool) {
        match java_agent::path().filter(|_| agent) {
            Some(agent) => self.load(pids, &agent, Moment::after(self.time)),
            None => self.mapped = pids.iter().copied().collect(),
        }
        // This has its own deadline, because a JVM that does not answer uses up the first one. Such a JVM is not asked again.
        self.ask_for_maps(Moment::after(self.time));
    }

    /// Makes the JVMs load the agent.
    fn load(&mut self, pids: &[u32], agent: &Path, until: Moment) {
        let Some(path) = agent.to_str() else {
            note::warning("the path of the Java agent is not UTF-8, so no JVM can load it");
            self.mapped = pids.iter().copied().collect();
            return;
        };
        for (pid, outcome, kept) in ask_all(pids, &What::Agent(path.to_owned()), until) {
            if outcome != Outcome::NotJava {
                self.known.insert(pid);
            }
            match (outcome, kept) {
                (Outcome::NotJava, _) => {}
                (Outcome::Done, Some(kept)) => self.held.push((pid, kept)),
                (Outcome::Done, None) => {
                    self.without_agent(pid, "no worker keeps it active");
                }
                (Outcome::NotAnswering, _) => say_not_answering(pid),
                (Outcome::Refused(why), _) => self.without_agent(pid, &why),
            }
        }
    }

    fn without_agent(&mut self, pid: u32, why: &str) {
        note::warning(format_args!(
            "process {pid} is Java but does not load the agent: {why}. It is asked for a perf map instead, which has no \
             lines, no inlined calls and no freed methods"
        ));
        self.mapped.insert(pid);
    }

    /// Ends the recording. JVMs that still run write maps of the code that they compiled, and their agents stop. JVMs among
    /// `pids` that were started during the recording are asked for maps, unless they announce their code by themselves: the
    /// agent would not know when their code was loaded.
    pub fn finish(mut self, pids: &[u32]) {
        let new = pids.iter().copied().filter(|pid| !self.known.contains(pid));
        let mut new: Vec<_> = new.filter(|&pid| may_be_java(pid)).collect();
        let mut announce = BTreeSet::new();
        logs_of_all(&new, false, Patience::ONE_OF_MANY, |pid, logs| {
            if logs.is_ok_and(|logs| !logs.is_empty()) {
                announce.insert(pid);
            }
        });
        new.retain(|pid| !announce.contains(pid));
        self.mapped.extend(new);
        self.ask_for_maps(Moment::after(self.time));
        // Errors are ignored: an agent that does not get the message stops when we have ended.
        self.held.iter().for_each(|(_, kept)| drop(kept.tell(hold::LET_GO)));
        let until = Instant::now() + GOODBYE;
        self.held.iter().for_each(|(_, kept)| kept.wait(until));
    }

    /// Asks the JVMs for maps, which they do not write by themselves. A map has only the methods that are compiled at the time
    /// it is written. JVMs that do not write one are not asked again.
    fn ask_for_maps(&mut self, until: Moment) {
        let pids: Vec<_> = std::mem::take(&mut self.mapped).into_iter().collect();
        for (pid, outcome, _) in ask_all(&pids, &What::PerfMap, until) {
            if outcome != Outcome::NotJava {
                self.known.insert(pid);
            }
            match outcome {
                Outcome::NotJava => {}
                Outcome::Done => drop(self.mapped.insert(pid)),
                Outcome::NotAnswering => say_not_answering(pid),
                Outcome::Refused(why) => note::warning(format_args!(
                    "process {pid} is Java but wrote no perf map (Compiler.perfmap): {why}"
                )),
            }
        }
    }
}

fn say_not_answering(pid: u32) {
    note::warning(format_args!(
        "process {pid}: not responding, skipped: its Java code has no names"
    ));
}

/// Whether a process may be a JVM that accepts commands, as far as can be read without blocking: all such JVMs have a handler for
/// SIGQUIT. Other processes are not inspected unless the user named them.
fn may_be_java(pid: u32) -> bool {
    Target::open(pid).and_then(|process| process.catches_quit()).unwrap_or(false)
}

/// Asks all of these processes in parallel. A process that does not answer does not delay others, and everything ends at the
/// deadline.
fn ask_all(pids: &[u32], what: &What, until: Moment) -> Vec<(u32, Outcome, Option<Kept>)> {
    let pids = in_turns(pids, |pid| Target::open(pid).ok().map(|process| process.user));
    let mut all: Vec<_> = pids.iter().map(|&pid| (pid, Outcome::NotAnswering, None)).collect();
    let time = until.left() + LAST_WORD;
    let patience =
        Patience { silence: time, whole: time, bytes: LONGEST_ANSWER, ..Patience::NAMED };
    let asked = pids.iter().take_while(|_| !until.left().is_zero());
    let jobs = asked.map(|&pid| Job {
        task: Task::Jvm(AskJvm { pid, what: what.clone(), until }),
        handed: Vec::new(),
    });
    let mut held = 0;
    foreign::run_all(jobs, patience, |index, answer| {
        let Some((_, outcome, kept)) = all.get_mut(index) else { return };
        (*outcome, *kept) = outcome_of(answer);
        held += usize::from(kept.is_some());
        if kept.is_some() && held > MOST_HELD {
            *kept = None;
            *outcome = Outcome::Refused(format!("{MOST_HELD} other JVMs already have it"));
        }
    });
    all.sort_unstable_by_key(|(pid, ..)| *pid);
    all
}

/// Parses the answer of a worker.
fn outcome_of(answer: io::Result<Answer>) -> (Outcome, Option<Kept>) {
    let Answer { bytes, kept, .. } = match answer {
        Ok(answer) => answer,
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            return (Outcome::NotAnswering, None);
        }
        Err(error) => return (Outcome::Refused(format!("the request failed: {error}")), None),
    };
    let Ok(outcome) = serde_json::from_slice(&bytes) else {
        return (Outcome::Refused("the request failed: invalid answer of the worker".into()), None);
    };
    (outcome, kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_says_is_not_believed_to_be_whole() {
        let answer =
            |bytes: &[u8]| outcome_of(Ok(Answer { bytes: bytes.to_vec(), ..Answer::default() })).0;
        assert_eq!(answer(b"\"NotJava\""), Outcome::NotJava);
        assert_eq!(answer(b"{\"Refused\":\"so\"}"), Outcome::Refused("so".into()));
        assert!(matches!(answer(b"\"Not"), Outcome::Refused(_)));
        assert!(matches!(
            outcome_of(Err(io::ErrorKind::UnexpectedEof.into())).0,
            Outcome::Refused(_)
        ));
        assert_eq!(outcome_of(Err(io::ErrorKind::TimedOut.into())).0, Outcome::NotAnswering);
    }
}
