//! Asks the recorded processes again and again while perf records.
//!
//! A thread asks a worker for each process, at intervals that grow from [`FIRST`], and that are at least [`REST`] times the processor time of the last
//! round: so that takes at most 4 % of a processor. The recorded processes are not stopped.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::time::ClockId;

use super::recorded_processes::{is_gone, recorded_now};
use super::scope::Scope;
use crate::process::nanoseconds;

/// The time until the first round.
const FIRST: Duration = Duration::from_millis(10);
/// How much longer than the processor time of a round the time between two rounds is at least.
const REST: u32 = 25;
/// The longest time between two rounds, whatever they take.
const MOST_REST: Duration = Duration::from_secs(4);
/// The longest time between two questions to one of many processes that has nothing.
const RARELY: Duration = Duration::from_secs(30);
/// The maximum number of processes that are asked.
const PROCESSES: usize = 128;

/// What the processes are asked.
pub trait Poll: Send + 'static {
    /// What asks a process.
    type Worker: Send;

    /// The longest time between two rounds if a process has what is asked for.
    const LONGEST: Duration;
    /// The same if none has, and the time until one of many processes without it is asked again.
    const WITHOUT: Duration;

    /// Starts a worker for a process.
    fn begin(&mut self, pid: u32) -> io::Result<Self::Worker>;

    /// Asks a process. Breaks off if there is no room for answers. Fails if the process has ended, runs another program or may not be read, or the worker
    /// does not answer.
    fn ask(&mut self, pid: u32, worker: &mut Self::Worker) -> io::Result<ControlFlow<(), Asked>>;

    /// Ends a round.
    fn end_round(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// An answer.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Whether the process has what is asked for.
    pub has_any: bool,
    /// The processor time of the worker.
    pub took: Duration,
}

/// The thread.
#[derive(Debug)]
pub struct Polling<P: Poll> {
    is_over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<P>>,
}

impl<P: Poll> Polling<P> {
    /// Begins to ask the processes in `scope` or, if perf starts the command, its processes; with `at_once`, those that run now before this returns.
    pub fn start(name: &str, scope: &Scope, poll: P, at_once: bool) -> Self {
        let is_over = Arc::new((Mutex::new(false), Condvar::new()));
        let is_its_end = Arc::clone(&is_over);
        let mut rounds = Rounds::new(scope.clone(), poll);
        if at_once {
            _ = rounds.ask_all();
        }
        let run = move || {
            rounds.run(&is_its_end);
            rounds.poll
        };
        let thread = thread::Builder::new().name(name.into()).spawn(run).ok();
        Self { is_over, thread }
    }

    /// Asks once more what still runs, and ends. `None` if it has ended already, or could not be started.
    pub fn stop(&mut self) -> Option<P> {
        let (is_over, changed) = &*self.is_over;
        *is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        // If it panicked, there is no answer.
        self.thread.take()?.join().ok()
    }
}

impl<P: Poll> Drop for Polling<P> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The rounds so far.
struct Rounds<P: Poll> {
    scope: Scope,
    poll: P,
    workers: HashMap<u32, P::Worker>,
    /// Processes that may not be read, or did not answer.
    refused: HashSet<u32>,
    /// Processes that have nothing: when to ask again, and how long to wait then.
    without: HashMap<u32, (Instant, Duration)>,
    /// The processor time of the workers in this round.
    took: Duration,
    /// Whether a process had something in this round.
    has_any: bool,
}

impl<P: Poll> Rounds<P> {
    fn new(scope: Scope, poll: P) -> Self {
        Self {
            scope,
            poll,
            workers: HashMap::new(),
            refused: HashSet::new(),
            without: HashMap::new(),
            took: Duration::ZERO,
            has_any: false,
        }
    }

    fn run(&mut self, end: &(Mutex<bool>, Condvar)) {
        let mut interval = FIRST;
        let mut wait = FIRST;
        loop {
            let (is_over, changed) = end;
            let is_over = is_over.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = changed.wait_timeout_while(is_over, wait, |is_over| !*is_over);
            let is_over = *waited.unwrap_or_else(PoisonError::into_inner).0;
            let before = nanoseconds(ClockId::ThreadCPUTime);
            if self.ask_all().is_break() || is_over {
                return;
            }
            let own = nanoseconds(ClockId::ThreadCPUTime).saturating_sub(before);
            let took = self.took.saturating_add(Duration::from_nanos(own));
            interval = (interval * 2).min(if self.has_any { P::LONGEST } else { P::WITHOUT });
            wait = interval.max(took.saturating_mul(REST).min(MOST_REST));
        }
    }

    /// Asks all processes once.
    fn ask_all(&mut self) -> ControlFlow<()> {
        (self.took, self.has_any) = (Duration::ZERO, false);
        let pids = recorded_now(&self.scope);
        self.workers.retain(|pid, _| pids.contains(pid));
        self.refused.retain(|pid| pids.contains(pid));
        self.without.retain(|pid, _| pids.contains(pid));
        for pid in pids {
            self.ask(pid)?;
        }
        self.poll.end_round()
    }

    fn ask(&mut self, pid: u32) -> ControlFlow<()> {
        let now = Instant::now();
        let is_later = self.without.get(&pid).is_some_and(|&(next, _)| now < next);
        if is_later || self.refused.contains(&pid) {
            return ControlFlow::Continue(());
        }
        let mut worker = match self.workers.remove(&pid) {
            Some(worker) => worker,
            None if self.workers.len() >= PROCESSES => return ControlFlow::Continue(()),
            None => match self.poll.begin(pid) {
                Ok(worker) => worker,
                Err(_) => return ControlFlow::Continue(()),
            },
        };
        let asked = match self.poll.ask(pid, &mut worker) {
            Ok(asked) => asked?,
            // It has ended, or runs another program, which gets another worker.
            Err(error) if is_gone(&error) => return ControlFlow::Continue(()),
            Err(_) => {
                self.refused.insert(pid);
                return ControlFlow::Continue(());
            }
        };
        self.took = self.took.saturating_add(asked.took);
        self.has_any |= asked.has_any;
        if !asked.has_any && matches!(self.scope, Scope::User(_) | Scope::All) {
            // Each worker takes memory, and few of many processes have something.
            let longer = self.without.get(&pid).map_or(P::WITHOUT, |(_, wait)| *wait * 2);
            self.without.insert(pid, (now + longer, longer.min(RARELY)));
        } else {
            self.without.remove(&pid);
            self.workers.insert(pid, worker);
        }
        ControlFlow::Continue(())
    }
}
