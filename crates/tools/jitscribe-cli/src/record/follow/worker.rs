//! The worker that follows processes.
//!
//! It looks for new processes fifty times a second, which costs one short file each time (`/proc/loadavg` has the last process id that was
//! given out) as long as there are none, and less often if looking takes long. A process enters a container, if at all, soon after
//! it was started, so new processes are examined each time and others once a second.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::{geteuid, getpid, getppid};
use serde::{Deserialize, Serialize};

use super::cause::{Added, Cause};
use super::family::{Family, Whose};
use super::roots::{Root, Roots};
use crate::descriptors;
use crate::foreign::{Output, Target};
use crate::process::{newest_process, processes, relations};

/// The request for a [`Followed`].
pub const REPORT: &[u8] = b"?";

/// The shortest time between two looks.
const INTERVAL: Duration = Duration::from_millis(20);
/// Looking takes at most one part in this many of a processor's time.
const PART: u32 = 100;
/// For how long a process counts as new.
const NEW: Duration = Duration::from_secs(2);
/// How often processes that are not new are examined.
const SELDOM: Duration = Duration::from_secs(1);
/// The most bytes of a command line and of an environment.
const MOST_TEXT: u64 = 256 << 10;
/// The most processes that have ended and are remembered.
const ENDED: usize = 1 << 16;

/// The task: follow processes until the command ends, and report on request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FollowTask {
    /// Which processes.
    pub whose: Whose,
    /// What was added to them.
    pub added: Added,
}

/// What is known of the followed processes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Followed {
    /// The process that holds the roots.
    pub worker: u32,
    /// The processes. Of several that had one process id, the last one.
    pub processes: Vec<FollowedProcess>,
    /// The number of roots that were not held because there were too many.
    pub left_out: usize,
}

/// What is known of a followed process.
#[derive(Debug, Serialize, Deserialize)]
pub struct FollowedProcess {
    /// Its id.
    pub pid: u32,
    /// Its id in its own pid namespace.
    pub inner: u32,
    /// Its effective user when it was last examined.
    pub user: u32,
    /// The worker's descriptor of its root, if that is not ours.
    pub root: Option<i32>,
    /// Whether V8 writes files in it only because `record` asked it to.
    pub is_asked: bool,
}

impl FollowTask {
    pub fn perform(self, output: &mut Output) -> io::Result<()> {
        // Some descriptors are for looking.
        let limit = descriptors::raise().saturating_sub(64);
        let mut follower = Follower::new(self, limit)?;
        let mut wait = follower.look();
        output.keep()?;
        loop {
            let time = Timespec::try_from(wait).unwrap_or_default();
            let asked = poll(&mut [PollFd::new(output, PollFlags::IN)], Some(&time));
            if asked.is_ok_and(|count| count > 0) {
                break;
            }
            wait = follower.look();
        }
        let mut room = [0; REPORT.len()];
        while output.next_request(&mut room).is_some() {
            follower.look_at_all(Instant::now(), true);
            output.bytes(&serde_json::to_vec(&follower.report())?)?;
            output.finish(Ok(()))?;
        }
        Ok(())
    }
}

struct Follower {
    /// Whether only processes of one user are followed.
    user: Option<u32>,
    added: Added,
    family: Family,
    roots: Roots,
    known: BTreeMap<u32, Known>,
    /// Those of [`Self::known`] that have ended, in this order.
    ended: VecDeque<u32>,
    /// The last process id that was given out, when the processes were last listed.
    newest: Option<u32>,
    /// When all processes were last examined.
    all: Option<Instant>,
}

/// What is known of a process.
#[derive(Clone, Copy, Debug)]
struct Known {
    since: Instant,
    /// Its effective user, and its id in its own pid namespace, once it was examined.
    facts: Option<(u32, u32)>,
    root: Option<Root>,
    /// Who asked V8 for the files that it writes.
    cause: Cause,
}

impl Follower {
    fn new(task: FollowTask, descriptors: u64) -> io::Result<Self> {
        let FollowTask { whose, added } = task;
        let user = if let Whose::User(user) = &whose { Some(*user) } else { None };
        // The helper, which the command has started too.
        let helper = getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs());
        Ok(Self {
            user,
            added,
            family: Family::new(whose, helper),
            roots: Roots::new(geteuid().as_raw(), descriptors)?,
            known: BTreeMap::new(),
            ended: VecDeque::new(),
            newest: None,
            all: None,
        })
    }

    /// Looks for new processes and examines them. Returns how long to wait until the next look.
    fn look(&mut self) -> Duration {
        let begun = Instant::now();
        // Read before the processes are listed: those that start in between are found by the next look.
        let newest = newest_process();
        if self.all.is_none_or(|all| begun.duration_since(all) >= SELDOM) {
            self.look_at_all(begun, false);
        } else {
            if newest.is_none() || newest != self.newest {
                self.list(begun, false);
            }
            self.examine(|since| begun.duration_since(since) < NEW);
        }
        self.newest = newest;
        INTERVAL.max(begun.elapsed().saturating_mul(PART)).min(SELDOM)
    }

    /// `is_over` is whether perf has ended.
    fn look_at_all(&mut self, now: Instant, is_over: bool) {
        self.list(now, is_over);
        self.examine(|_| true);
        self.all = Some(now);
    }

    fn list(&mut self, now: Instant, is_over: bool) {
        let change = self.family.update(&processes(), relations);
        for pid in change.ended {
            self.ended.push_back(pid);
            if self.ended.len() > ENDED
                && let Some(oldest) = self.ended.pop_front()
            {
                self.known.remove(&oldest);
            }
        }
        for pid in change.new {
            // A process had this id before. It was recorded, while the new one was not if perf has ended.
            if self.known.contains_key(&pid) {
                if is_over {
                    self.family.leave(pid);
                    continue;
                }
                self.ended.retain(|ended| *ended != pid);
            }
            self.known
                .insert(pid, Known { since: now, facts: None, root: None, cause: Cause::Unknown });
        }
    }

    fn examine(&mut self, is_wanted: impl Fn(Instant) -> bool) {
        for pid in self.family.members() {
            let Some(known) = self.known.get_mut(&pid) else { continue };
            if is_wanted(known.since) {
                // A process that has just ended keeps what was known of it.
                let _ = known.examine(pid, self.user, &self.added, &mut self.roots);
            }
        }
    }

    fn report(&self) -> Followed {
        let processes = self.known.iter().filter_map(|(&pid, known)| {
            let (user, inner) = known.facts?;
            let root = known.root.and_then(|root| self.roots.descriptor(&root));
            self.user.is_none_or(|only| only == user).then_some(FollowedProcess {
                pid,
                inner,
                user,
                root,
                is_asked: known.cause == Cause::Record,
            })
        });
        Followed {
            worker: getpid().as_raw_nonzero().get().unsigned_abs(),
            processes: processes.collect(),
            left_out: self.roots.left_out(),
        }
    }
}

impl Known {
    fn examine(
        &mut self,
        pid: u32,
        user: Option<u32>,
        added: &Added,
        roots: &mut Roots,
    ) -> io::Result<()> {
        let target = Target::open(pid)?;
        let (owner, inner) = target.effective_and_inner()?;
        self.facts = Some((owner.user, inner));
        if user.is_none_or(|user| user == owner.user) {
            self.root = roots.hold(&target, owner.user)?;
        }
        // These are in the process's memory, so another user's process might make us wait for ever.
        if added.asks() && owner.user == geteuid().as_raw() {
            let (command, environment) = (text(&target, "cmdline")?, text(&target, "environ")?);
            self.cause = added.cause(&command, &environment, self.cause);
        }
        Ok(())
    }
}

/// The beginning of a file of a process.
fn text(target: &Target, name: &str) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::from(target.file(name, OFlags::RDONLY)?).take(MOST_TEXT).read_to_end(&mut text)?;
    Ok(text)
}
