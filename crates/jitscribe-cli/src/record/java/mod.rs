//! Running JVMs: they are asked by `jcmd` to load the agent, which announces what they compile for as long as we [`hold`] it;
//! or, where that cannot be, for a perf map.

mod hold;
mod jcmd;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::logs_of;
use crate::{java_agent, note};

use hold::{Hold, Offer};
use jcmd::jcmd;

/// How long a JVM that was named may take to answer.
const NAMED: Duration = Duration::from_secs(30);

/// How long all may take that nobody named.
const ALL: Duration = Duration::from_secs(5);

/// How long they may take to let go of what was recorded.
const GOODBYE: Duration = Duration::from_secs(5);

/// How many are asked at a time: each by a `jcmd` of its own, which is a JVM itself.
const AT_A_TIME: usize = 4;

/// The JVMs among the processes that are recorded.
#[derive(Debug, Default)]
pub struct Jvms {
    /// All that were there when the recording began.
    known: Vec<u32>,
    /// Those that announce while this is there.
    held: Vec<(u32, Hold)>,
    /// Those that are asked for maps.
    mapped: Vec<u32>,
}

impl Jvms {
    /// Has the JVMs among these processes, which were named, tell of their code. With `ask`, they may be given the agent.
    pub fn named(pids: &[u32], ask: bool) -> Self {
        let mut jvms = Self::of(pids);
        if ask {
            jvms.load(Instant::now() + NAMED);
        } else {
            jvms.mapped = jvms.known.clone();
        }
        jvms.ask_for_maps();
        jvms
    }

    /// The same of all these processes, as far as they let us and answer soon.
    pub fn among(pids: &[u32]) -> Self {
        let mut jvms = Self::of(pids);
        jvms.load(Instant::now() + ALL);
        if !jvms.held.is_empty() {
            let pids: Vec<_> = jvms.held.iter().map(|(pid, _)| pid.to_string()).collect();
            note::say(format_args!(
                "the agent for Java is loaded into {} (--no-env leaves them alone): {}",
                if let [_] = &*pids {
                    "1 process".into()
                } else {
                    format!("{} processes", pids.len())
                },
                pids.join(", ")
            ));
        }
        jvms.ask_for_maps();
        jvms
    }

    fn of(pids: &[u32]) -> Self {
        let known = pids.iter().copied().filter(|&pid| is_java(pid)).collect();
        Self { known, ..Self::default() }
    }

    /// Gives them the agent, if there is one.
    fn load(&mut self, until: Instant) {
        let Some(agent) = java_agent::path() else {
            self.mapped.clone_from(&self.known);
            return;
        };
        for (pid, loaded) in side_by_side(&self.known, |pid| load(pid, &agent, until)) {
            match loaded {
                Ok(hold) => self.held.push((pid, hold)),
                // It ended meanwhile.
                Err(_) if !is_java(pid) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    note::warning(format_args!("process {pid} is Java, and {error}"));
                }
                Err(error) => {
                    note::warning(format_args!(
                        "process {pid} is Java, and does not load the agent: {error}. It is asked for a perf map, \
                         which has neither lines nor inlined calls, and no methods that are gone"
                    ));
                    self.mapped.push(pid);
                }
            }
        }
    }

    /// The recording is over. JVMs that still run tell of what they compiled meanwhile, and are as they were. Of those that
    /// began meanwhile among `pids`, the agent would not tell when their code came: they give maps, but for those that announce
    /// by themselves.
    pub fn finish(mut self, pids: &[u32]) {
        let announces = |pid| logs_of(pid).is_ok_and(|logs| !logs.is_empty());
        let new = pids.iter().copied().filter(|pid| !self.known.contains(pid));
        self.mapped.extend(new.filter(|&pid| is_java(pid) && !announces(pid)));
        self.ask_for_maps();
        // Without a look at each: who does not listen lets go when it sees that we are gone.
        self.held.iter_mut().for_each(|(_, hold)| hold.let_go());
        let until = Instant::now() + GOODBYE;
        self.held.iter().for_each(|(_, hold)| hold.wait(until));
    }

    /// They write none by themselves, and one tells only of the methods that are compiled when it is written.
    fn ask_for_maps(&self) {
        let until = Instant::now() + NAMED;
        for (pid, asked) in
            side_by_side(&self.mapped, |pid| jcmd(pid, &["Compiler.perfmap"], until))
        {
            match asked {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    note::warning(format_args!(
                        "process {pid} is Java, and there is no jcmd here to ask it for a perf map; it comes with the \
                         JDK. By hand: jcmd {pid} Compiler.perfmap, then jitscribe inject"
                    ));
                }
                Err(error) => note::warning(format_args!(
                    "process {pid} is Java, and gave no perf map: jcmd {pid} Compiler.perfmap: {error}"
                )),
            }
        }
    }
}

/// What `ask` gives for each process. One that does not answer keeps no other from being asked.
fn side_by_side<T: Send>(pids: &[u32], ask: impl Fn(u32) -> T + Sync) -> Vec<(u32, T)> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(&pid) = pids.get(next.fetch_add(1, Ordering::Relaxed)) {
            let answer = ask(pid);
            if let Ok(mut done) = done.lock() {
                done.push((pid, answer));
            }
        }
    };
    thread::scope(|scope| {
        (0..AT_A_TIME.min(pids.len())).for_each(|_| drop(scope.spawn(work)));
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_unstable_by_key(|(pid, _)| *pid);
    done
}

fn is_java(pid: u32) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().any(|line| line.ends_with("/libjvm.so"))
}

/// Has a JVM load the agent, which it may have already.
fn load(pid: u32, agent: &Path, until: Instant) -> io::Result<Hold> {
    let agent = agent.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
    // It may live in another file system.
    if !Path::new(&format!("/proc/{pid}/root{agent}")).exists() {
        return Err(io::Error::other(format!("there is no {agent} where it runs")));
    }
    let offer = Offer::make(pid)?;
    let said = jcmd(pid, &["JVMTI.agent_load", agent, &format!("hold:{}", offer.path())], until)?;
    if said.lines().any(|line| line.trim() == "return code: 0") {
        return Ok(offer.taken());
    }
    // The first line is the process.
    let cause = said.lines().nth(1).unwrap_or("it said nothing");
    Err(io::Error::other(cause.to_owned()))
}
