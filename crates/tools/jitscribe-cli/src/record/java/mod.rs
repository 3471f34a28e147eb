//! Running JVMs. Each is asked to load the agent, which announces compiled code for as long as its session lasts. If that is
//! not possible, the JVM is asked for a perf map.
//!
//! [`attach`] communicates with a JVM, in one [`worker`] per JVM. This starts no other program, and JVMs that do not respond are
//! given up.

mod attach;
mod jvm;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::time::ClockId;

use crate::foreign::{self, Answer, Job, Kept, Limit, Patience, Task, in_turns};
use crate::process::{logs_of_all, nanoseconds, started};
use crate::{java_agent, note};

use super::agent::let_go;

use worker::{Interpreted, Outcome, What};

pub use worker::JvmTask;

/// The time for JVMs that the user named to answer. This and the following times do not count while a JVM waits for a processor:
/// see [`foreign::Deadline`].
const NAMED: Duration = Duration::from_secs(30);

/// The time for each other JVM to answer, and after which no more of them are asked.
const ALL: Duration = Duration::from_secs(5);

/// JVMs that are found while others are recorded are asked this long after they started: before, they may not answer yet.
const START: Duration = Duration::from_secs(1);

/// How precisely it is known when a process started, in nanoseconds.
const TICK: u64 = 10_000_000;

/// The additional time for a worker to report that there is no answer, before the worker itself is given up.
const LAST_WORD: Duration = Duration::from_secs(1);

/// The same for a worker that says that it counts the time, and that may get no processor time at the end.
const LATE_WORD: Duration = Duration::from_secs(30);

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
    /// Processes that were asked, and when they started.
    asked: BTreeMap<u32, u64>,
    /// JVMs that are asked for maps.
    mapped: BTreeSet<u32>,
    /// JVMs whose compiled code keeps no frame pointers.
    without_frame_pointers: BTreeSet<u32>,
    /// When interpreted methods are announced.
    interpreted: Interpreted,
    /// The time for each of them to answer, and after which no more of them are asked.
    time: Duration,
    /// What is wrong, and is not said yet.
    warnings: Vec<String>,
}

impl Default for Jvms {
    fn default() -> Self {
        Self {
            known: BTreeSet::new(),
            held: Vec::new(),
            asked: BTreeMap::new(),
            mapped: BTreeSet::new(),
            without_frame_pointers: BTreeSet::new(),
            interpreted: Interpreted::No,
            time: ALL,
            warnings: Vec::new(),
        }
    }
}

impl Jvms {
    /// Makes the JVMs among these processes, which the user named, announce their code. With `ask`, they may be asked to load the
    /// agent. `call_graph` is how the user wants stacks to be recorded; `None` if that may depend on the JVMs.
    pub fn named(pids: &[u32], ask: bool, call_graph: Option<&str>) -> Self {
        let interpreted = match call_graph {
            None => Interpreted::WithoutFramePointers,
            Some(how) => interpreted_in(how),
        };
        let mut jvms = Self { time: NAMED, interpreted, ..Self::default() };
        jvms.begin(pids, ask);
        jvms.warn();
        if call_graph.is_none() && !jvms.without_frame_pointers.is_empty() {
            note::say(format_args!(
                "{} without -XX:+PreserveFramePointer: stacks are copied and unwound (--call-graph fp prevents this)",
                jvms.cut()
            ));
        } else if let Some(message) = jvms.cut_stacks(call_graph) {
            note::say(message);
        }
        jvms
    }

    /// Whether stacks have to be copied, as the JVMs that the user named keep no frame pointers.
    pub fn need_copies(&self) -> bool {
        self.interpreted == Interpreted::WithoutFramePointers
            && !self.without_frame_pointers.is_empty()
    }

    /// What to do about stacks that end at compiled code, if any do.
    fn cut_stacks(&self, call_graph: Option<&str>) -> Option<String> {
        let are_cut =
            call_graph.is_none_or(|how| how == "fp") && !self.without_frame_pointers.is_empty();
        are_cut.then(|| {
            format!(
                "{} without -XX:+PreserveFramePointer: its stacks end at compiled methods; record it with --call-graph dwarf, \
                 or start it with this option",
                self.cut()
            )
        })
    }

    /// The JVMs without frame pointers, as the beginning of a sentence.
    fn cut(&self) -> String {
        let pids: Vec<_> = self.without_frame_pointers.iter().map(u32::to_string).collect();
        match &*pids {
            [pid] => format!("process {pid} is Java"),
            _ => format!("processes {} are Java", pids.join(", ")),
        }
    }

    /// Like [`Self::named`], for processes that the user did not name, as far as they permit it and answer in time.
    pub fn among(pids: &[u32], call_graph: Option<&str>) -> Self {
        let interpreted = call_graph.map_or(Interpreted::No, interpreted_in);
        let mut jvms = Self { interpreted, ..Self::default() };
        let pids: Vec<_> = pids.iter().copied().filter(|&pid| may_be_java(pid)).collect();
        jvms.begin(&pids, true);
        jvms.warn();
        jvms.loaded_since(0).into_iter().for_each(note::say);
        jvms.cut_stacks(call_graph).into_iter().for_each(note::say);
        jvms
    }

    /// The same for JVMs among these processes that were started since. Returns what there is to say of them.
    pub fn ask_new(&mut self, pids: &[u32], call_graph: Option<&str>) -> Vec<String> {
        let now = nanoseconds(ClockId::Monotonic);
        let is_ready = |start: u64| u128::from(now.saturating_sub(start)) >= START.as_nanos();
        // A process id may be used again.
        let is_same = |start: u64, other: u64| start.abs_diff(other) < TICK;
        self.asked.retain(|&pid, start| started(pid).is_some_and(|it| is_same(it, *start)));
        let asked = &self.asked;
        self.held.retain(|(pid, _)| asked.contains_key(pid));
        self.without_frame_pointers.retain(|pid| asked.contains_key(pid));
        let is_new = |&pid: &u32| !asked.contains_key(&pid) && started(pid).is_some_and(is_ready);
        let new = pids.iter().copied().filter(is_new);
        let new: Vec<_> = new.filter(|&pid| may_be_java(pid)).collect();
        if new.is_empty() {
            return Vec::new();
        }
        let (held, cut) = (self.held.len(), self.without_frame_pointers.len());
        self.time = ALL;
        self.begin(&new, true);
        let mut messages = std::mem::take(&mut self.warnings);
        messages.extend(self.loaded_since(held));
        if self.without_frame_pointers.len() > cut && !self.need_copies() {
            messages.extend(self.cut_stacks(call_graph));
        }
        messages
    }

    /// Names the JVMs that have the agent, but for this number of the first ones.
    fn loaded_since(&self, before: usize) -> Option<String> {
        let new = self.held.get(before..).filter(|new| !new.is_empty())?;
        let pids: Vec<_> = new.iter().map(|(pid, _)| pid.to_string()).collect();
        let count = match &*pids {
            [_] => "1 process".into(),
            pids => format!("{} processes", pids.len()),
        };
        let pids = pids.join(", ");
        Some(format!("the Java agent is loaded into {count} (--no-env prevents this): {pids}"))
    }

    /// Says what is wrong.
    fn warn(&mut self) {
        self.warnings.drain(..).for_each(note::warning);
    }

    fn begin(&mut self, pids: &[u32], agent: bool) {
        self.asked.extend(pids.iter().filter_map(|&pid| Some((pid, started(pid)?))));
        match java_agent::path().filter(|_| agent) {
            Some(agent) => self.load(pids, &agent),
            None => self.mapped = pids.iter().copied().collect(),
        }
        // A JVM that has not answered is not asked again.
        self.ask_for_maps();
    }

    /// Makes the JVMs load the agent.
    fn load(&mut self, pids: &[u32], agent: &Path) {
        let Some(path) = agent.to_str() else {
            let warning = "the path of the Java agent is not UTF-8, so no JVM can load it";
            self.warnings.push(warning.into());
            self.mapped = pids.iter().copied().collect();
            return;
        };
        let what = What::Agent { path: path.to_owned(), interpreted: self.interpreted };
        for (pid, outcome, kept) in ask_all(pids, &what, self.time, self.held.len()) {
            if outcome != Outcome::NotJava {
                self.known.insert(pid);
            }
            if outcome == (Outcome::Done { no_frame_pointers: true }) {
                self.without_frame_pointers.insert(pid);
            }
            match (outcome, kept) {
                (Outcome::NotJava, _) => {}
                (Outcome::Done { .. }, Some(kept)) => self.held.push((pid, kept)),
                (Outcome::Done { .. }, None) => {
                    self.without_agent(pid, "no worker keeps it active");
                }
                (Outcome::NotAnswering, _) => self.warnings.push(not_answering(pid)),
                (Outcome::Refused(why), _) => self.without_agent(pid, &why),
            }
        }
    }

    fn without_agent(&mut self, pid: u32, why: &str) {
        self.warnings.push(format!(
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
        self.ask_for_maps();
        self.warn();
        let_go(self.held.iter().map(|(_, kept)| kept));
    }

    /// Asks the JVMs for maps, which they do not write by themselves. A map has only the methods that are compiled at the time
    /// it is written. JVMs that do not write one are not asked again.
    fn ask_for_maps(&mut self) {
        let pids: Vec<_> = std::mem::take(&mut self.mapped).into_iter().collect();
        for (pid, outcome, _) in ask_all(&pids, &What::PerfMap, self.time, 0) {
            if outcome != Outcome::NotJava {
                self.known.insert(pid);
            }
            match outcome {
                Outcome::NotJava => {}
                Outcome::Done { .. } => drop(self.mapped.insert(pid)),
                Outcome::NotAnswering => self.warnings.push(not_answering(pid)),
                Outcome::Refused(why) => self.warnings.push(format!(
                    "process {pid} is Java but wrote no perf map (Compiler.perfmap): {why}"
                )),
            }
        }
    }
}

fn not_answering(pid: u32) -> String {
    format!("process {pid}: not responding, skipped: its Java code has no names")
}

/// Whether a process may be a JVM that accepts commands, as far as can be read without blocking: all such JVMs have a handler for
/// SIGQUIT. Other processes are not inspected unless the user named them.
fn may_be_java(pid: u32) -> bool {
    jvm::open(pid).and_then(|process| jvm::catches_quit(&process)).unwrap_or(false)
}

/// Asks all of these processes in parallel. A process that does not answer does not delay others. Each has this `time`, after which no
/// more are asked. `held` is the number of JVMs that have the agent already.
fn ask_all(
    pids: &[u32],
    what: &What,
    time: Duration,
    mut held: usize,
) -> Vec<(u32, Outcome, Option<Kept>)> {
    let pids = in_turns(pids, |pid| jvm::open(pid).ok().map(|process| process.user));
    let mut all: Vec<_> = pids.iter().map(|&pid| (pid, Outcome::NotAnswering, None)).collect();
    let limit = Limit::of(time);
    let patience = Patience {
        silence: limit.and(LAST_WORD),
        // The worker counts the time of the JVM, and says so.
        whole: Limit { counted: limit.wall, ..limit }.and(LATE_WORD),
        bytes: LONGEST_ANSWER,
        all: limit,
        ..Patience::NAMED
    };
    let jobs = pids.iter().map(|&pid| Job {
        task: Task::Jvm(JvmTask { pid, what: what.clone(), time }),
        passed: Vec::new(),
    });
    foreign::run_all(jobs, patience, |index, answer| {
        let Some((_, outcome, kept)) = all.get_mut(index) else { return };
        (*outcome, *kept) = told(answer);
        held += usize::from(kept.is_some());
        if kept.is_some() && held > MOST_HELD {
            *kept = None;
            *outcome = Outcome::Refused(format!("{MOST_HELD} other JVMs already have it"));
        }
    });
    all.sort_unstable_by_key(|(pid, ..)| *pid);
    all
}

/// Whether interpreted methods can be named in stacks that are recorded in this way.
fn interpreted_in(call_graph: &str) -> Interpreted {
    if call_graph.starts_with("dwarf") { Interpreted::Yes } else { Interpreted::No }
}

/// Parses the answer of a worker.
fn told(answer: io::Result<Answer>) -> (Outcome, Option<Kept>) {
    let Answer { bytes, kept, .. } = match answer {
        Ok(answer) => answer,
        Err(error)
            if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::QuotaExceeded) =>
        {
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
    fn an_incomplete_answer_of_a_worker_is_rejected() {
        let answer =
            |bytes: &[u8]| told(Ok(Answer { bytes: bytes.to_vec(), ..Answer::default() })).0;
        assert_eq!(answer(b"\"NotJava\""), Outcome::NotJava);
        assert_eq!(answer(b"{\"Refused\":\"so\"}"), Outcome::Refused("so".into()));
        assert!(matches!(answer(b"\"Not"), Outcome::Refused(_)));
        assert!(matches!(told(Err(io::ErrorKind::UnexpectedEof.into())).0, Outcome::Refused(_)));
        assert_eq!(told(Err(io::ErrorKind::TimedOut.into())).0, Outcome::NotAnswering);
    }
}
