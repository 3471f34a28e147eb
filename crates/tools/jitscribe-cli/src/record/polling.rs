//! Asks the recorded processes again and again while perf records.
//!
//! A thread asks a worker for each process, at intervals that grow from [`FIRST`], again whenever there is a new process, and that are at least [`REST`] times the processor time of the
//! last round: so that takes at most 4 % of a processor. A process may also report that it has changed ([`Poll::alarms`]): then it is asked at once, and the
//! intervals begin again; that takes at most a fifth of a processor. The recorded processes are not stopped. A process that has not run since it was asked is not asked, as it
//! has changed nothing ([`Poll::IDLE`]), but at the end.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::time::{ClockId, Timespec};

use super::recorded_processes::{is_gone, recorded_now};
use super::scope::Scope;
use crate::foreign::processor_time;
use crate::process::nanoseconds;

/// The time until the first round.
const FIRST: Duration = Duration::from_millis(10);
/// How much longer than the processor time of a round the time between two rounds is at least.
const REST: u32 = 25;
/// The same after an alarm.
const ALARM_REST: u32 = 4;
/// The shortest time between two rounds.
const SHORTEST: Duration = Duration::from_millis(1);
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

    /// The longest time for which a process that has not run is not asked: for what others may change in it.
    const IDLE: Duration = Duration::MAX;

    /// Starts a worker for a process.
    fn begin(&mut self, pid: u32) -> io::Result<Self::Worker>;

    /// Asks a process. Breaks off if there is no room for answers. Fails if the process has ended, runs another program or may not be read, or the worker
    /// does not answer.
    fn ask(&mut self, pid: u32, worker: &mut Self::Worker) -> io::Result<ControlFlow<(), Asked>>;

    /// Descriptors that become readable when the process has changed.
    fn alarms(_worker: &Self::Worker) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

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
    /// Whether this is all that there was. Otherwise the process is asked again, also if it has not run in between.
    pub is_whole: bool,
    /// The processor time of the worker.
    pub took: Duration,
}

/// The thread.
#[derive(Debug)]
pub struct Polling<P: Poll> {
    /// Becomes readable at the end.
    end: Option<Arc<OwnedFd>>,
    thread: Option<JoinHandle<P>>,
}

impl<P: Poll> Polling<P> {
    /// Begins to ask the processes in `scope` or, if perf starts the command, its processes; with `at_once`, those that run now before this returns.
    pub fn start(name: &str, scope: &Scope, poll: P, at_once: bool) -> Self {
        let end = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok().map(Arc::new);
        let mut rounds = Rounds::new(scope.clone(), poll);
        if at_once {
            _ = rounds.ask_all();
        }
        let its_end = end.clone();
        let run = move || {
            if let Some(end) = its_end {
                rounds.run(end.as_fd());
            }
            rounds.poll
        };
        let thread = thread::Builder::new().name(name.into()).spawn(run).ok();
        Self { end, thread }
    }

    /// Asks once more what still runs, and ends. `None` if it has ended already, or could not be started.
    pub fn stop(&mut self) -> Option<P> {
        if let Some(end) = &self.end {
            _ = rustix::io::write(end, &1_u64.to_ne_bytes());
        }
        // If it panicked, there is no answer.
        self.thread.take()?.join().ok()
    }
}

impl<P: Poll> Drop for Polling<P> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Why the thread goes on.
enum Woken {
    /// It is time.
    Time,
    /// These processes have changed.
    Alarm(Vec<u32>),
    /// The recording has ended.
    End,
}

/// Processes that have changed, and are asked soon again: what they have done may not be finished.
struct FollowUp {
    pids: Vec<u32>,
    at: Instant,
    interval: Duration,
}

/// What was known of a process when it was asked.
struct LastAsked {
    /// The processor time that it had used before.
    used: u64,
    at: Instant,
    /// Whether it had something.
    has_any: bool,
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
    /// What was known of each process when it was asked.
    asked: HashMap<u32, LastAsked>,
    /// The processor time of the workers in this round.
    took: Duration,
    /// Whether a process had something in this round.
    has_any: bool,
    /// Whether a process was new in this round, or the command has not begun.
    is_beginning: bool,
}

impl<P: Poll> Rounds<P> {
    fn new(scope: Scope, poll: P) -> Self {
        Self {
            scope,
            poll,
            workers: HashMap::new(),
            refused: HashSet::new(),
            without: HashMap::new(),
            asked: HashMap::new(),
            took: Duration::ZERO,
            has_any: false,
            is_beginning: false,
        }
    }

    fn run(&mut self, end: BorrowedFd<'_>) {
        let mut interval = FIRST;
        let mut next = Instant::now() + FIRST;
        let mut follow_up: Option<FollowUp> = None;
        loop {
            let soon = follow_up.as_ref().map(|follow_up| follow_up.at);
            let woken = self.wait(end, soon.map_or(next, |soon| soon.min(next)));
            let before = nanoseconds(ClockId::ThreadCPUTime);
            self.took = Duration::ZERO;
            let is_round = Instant::now() >= next;
            let done = match (&woken, &mut follow_up) {
                (Woken::End, _) => {
                    self.asked.clear();
                    _ = self.ask_all();
                    return;
                }
                _ if is_round => self.ask_all(),
                (Woken::Alarm(pids), _) => self.ask_each(pids),
                (Woken::Time, Some(follow_up)) => self.ask_each(&follow_up.pids),
                (Woken::Time, None) => continue,
            };
            if done.is_break() {
                return;
            }
            let own = nanoseconds(ClockId::ThreadCPUTime).saturating_sub(before);
            let took = self.took.saturating_add(Duration::from_nanos(own));
            let rest = |times| took.saturating_mul(times).min(MOST_REST);
            let now = Instant::now();
            if is_round {
                // One that has just begun may not run for long.
                let longer = (interval * 2).min(self.longest());
                interval = if self.is_beginning { FIRST } else { longer };
                next = now + interval.max(rest(REST));
            }
            match woken {
                Woken::Alarm(pids) => {
                    let interval = SHORTEST;
                    follow_up = Some(FollowUp { pids, at: now + interval, interval });
                    if wait_for(&mut [PollFd::new(&end, PollFlags::IN)], rest(ALARM_REST)) {
                        next = Instant::now();
                    }
                }
                _ => {
                    follow_up = follow_up.filter(|it| it.interval < P::LONGEST);
                    if let Some(follow_up) = &mut follow_up {
                        follow_up.interval *= 2;
                        follow_up.at = now + follow_up.interval.max(rest(ALARM_REST));
                    }
                }
            }
        }
    }

    /// Waits until a time, an alarm, or the end.
    fn wait(&self, end: BorrowedFd<'_>, until: Instant) -> Woken {
        let alarms: Vec<(u32, BorrowedFd<'_>)> = self
            .workers
            .iter()
            .flat_map(|(&pid, worker)| P::alarms(worker).into_iter().map(move |fd| (pid, fd)))
            .collect();
        let mut descriptors = vec![PollFd::new(&end, PollFlags::IN)];
        descriptors.extend(alarms.iter().map(|(_, alarm)| PollFd::new(alarm, PollFlags::IN)));
        if !wait_for(&mut descriptors, until.saturating_duration_since(Instant::now())) {
            return Woken::Time;
        }
        let [is_over, rest @ ..] = descriptors.as_slice() else { return Woken::Time };
        if !is_over.revents().is_empty() {
            return Woken::End;
        }
        let mut pids: Vec<u32> = alarms
            .iter()
            .zip(rest)
            .filter(|(_, alarm)| !alarm.revents().is_empty())
            .map(|((pid, _), _)| *pid)
            .collect();
        pids.dedup();
        Woken::Alarm(pids)
    }

    /// The longest time until the next round.
    fn longest(&self) -> Duration {
        if self.has_any { P::LONGEST } else { P::WITHOUT }
    }

    /// Asks these processes once.
    fn ask_each(&mut self, pids: &[u32]) -> ControlFlow<()> {
        for &pid in pids {
            if self.workers.contains_key(&pid) {
                self.ask(pid)?;
            }
        }
        self.poll.end_round()
    }

    /// Asks all processes once.
    fn ask_all(&mut self) -> ControlFlow<()> {
        let pids = recorded_now(&self.scope);
        self.has_any = false;
        self.is_beginning = pids.is_empty() && matches!(self.scope, Scope::None);
        self.workers.retain(|pid, _| pids.contains(pid));
        self.refused.retain(|pid| pids.contains(pid));
        self.without.retain(|pid, _| pids.contains(pid));
        self.asked.retain(|pid, _| pids.contains(pid));
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
        let used = processor_time(pid);
        if let Some(last) = self.asked.get(&pid)
            && Some(last.used) == used
            && now.saturating_duration_since(last.at) < P::IDLE
        {
            self.has_any |= last.has_any;
            return ControlFlow::Continue(());
        }
        self.asked.remove(&pid);
        let mut worker = match self.workers.remove(&pid) {
            Some(worker) => worker,
            None if self.workers.len() >= PROCESSES => return ControlFlow::Continue(()),
            None => match self.poll.begin(pid) {
                Ok(worker) => {
                    self.is_beginning |= !self.without.contains_key(&pid);
                    worker
                }
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
        if let Some(used) = used.filter(|_| asked.is_whole) {
            self.asked.insert(pid, LastAsked { used, at: now, has_any: asked.has_any });
        }
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

/// Waits for one of the descriptors; `false` if none is ready when the time is over.
fn wait_for(descriptors: &mut [PollFd<'_>], time: Duration) -> bool {
    let time = Timespec::try_from(time).ok();
    poll(descriptors, time.as_ref()).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::mpsc;

    use super::*;

    /// Counts, and says when a round ends.
    struct Counting {
        asked: u32,
        rounds: mpsc::Sender<u32>,
        is_whole: bool,
    }

    impl Poll for Counting {
        type Worker = ();

        const LONGEST: Duration = Duration::from_millis(10);
        const WITHOUT: Duration = Self::LONGEST;

        fn begin(&mut self, _pid: u32) -> io::Result<()> {
            Ok(())
        }

        fn ask(&mut self, _pid: u32, _worker: &mut ()) -> io::Result<ControlFlow<(), Asked>> {
            self.asked += 1;
            let is_whole = self.is_whole;
            Ok(ControlFlow::Continue(Asked { has_any: true, is_whole, took: Duration::ZERO }))
        }

        fn end_round(&mut self) -> ControlFlow<()> {
            // The test may have enough.
            _ = self.rounds.send(self.asked);
            ControlFlow::Continue(())
        }
    }

    #[test]
    fn a_process_that_does_not_run_is_asked_once_more_at_the_end() {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).spawn().expect("started");
        // It uses nothing once it waits.
        let mut used = None;
        while used != processor_time(cat.id()) {
            used = processor_time(cat.id());
            thread::sleep(Duration::from_millis(100));
        }
        for is_whole in [true, false] {
            let (rounds, ended) = mpsc::channel();
            let counting = Counting { asked: 0, rounds, is_whole };
            let scope = Scope::Processes(vec![cat.id()]);
            let mut polling = Polling::start("counting", &scope, counting, false);
            let last = ended.iter().nth(9).expect("ten rounds");
            assert_eq!(last, if is_whole { 1 } else { 10 });
            let counting = polling.stop().expect("it ran");
            assert!(if is_whole { counting.asked == 2 } else { counting.asked > 10 });
        }
        cat.kill().expect("killed");
        cat.wait().expect("its end");
    }
}
