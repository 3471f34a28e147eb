//! Which processes are recorded.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::foreign::Target;
use crate::process::{processes, relations};
use crate::{Error, Result};

/// The recorded processes that perf does not start itself.
#[derive(Clone, Debug)]
pub enum Scope {
    /// None.
    None,
    /// Processes that the user named, and the children that they start during the recording, as perf does.
    Processes(Vec<u32>),
    /// The processes of a user, by uid.
    User(u32),
    /// All processes.
    All,
}

impl Scope {
    /// Determines the processes from the value of `-p` or, without it, from perf's own options. Options that perf will reject
    /// select no process.
    pub fn of(pids: Option<&str>, options: &[OsString]) -> Result<Self> {
        if let Some(list) = pids {
            return Ok(Self::Processes(named(list)?));
        }
        Ok(Self::by_options(options))
    }

    fn by_options(options: &[OsString]) -> Self {
        if let Some(list) = value(options, "-t", "--tid") {
            let threads = list.split(',').filter_map(|thread| thread.trim().parse().ok());
            let processes: BTreeSet<_> = threads.filter_map(process).collect();
            return Self::Processes(processes.into_iter().collect());
        }
        if let Some(user) = value(options, "-u", "--uid") {
            return number(user).map_or(Self::None, Self::User);
        }
        let is_all = |option: &OsString| {
            let option = option.as_bytes();
            let all = ["-a", "-C", "--all-cpus", "--cpu"];
            all.iter().any(|all| option.starts_with(all.as_bytes()))
        };
        if options.iter().any(is_all) { Self::All } else { Self::None }
    }

    /// Whether the user named each process, so that it may be asked to announce more than it does by itself.
    pub fn is_named(&self) -> bool {
        matches!(self, Self::Processes(_))
    }

    /// The processes that run now.
    pub fn pids(&self) -> Vec<u32> {
        match self {
            Self::None => Vec::new(),
            Self::Processes(pids) => pids.clone(),
            Self::User(user) => {
                processes().into_iter().filter(|&pid| owner(pid) == Some(*user)).collect()
            }
            Self::All => processes(),
        }
    }

    /// The processes and their descendants.
    pub fn with_children(&self) -> Vec<u32> {
        let Self::Processes(pids) = self else { return self.pids() };
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for pid in processes() {
            if let Some(relations) = relations(pid) {
                children.entry(relations.parent).or_default().push(pid);
            }
        }
        let mut family = pids.clone();
        let mut next = 0;
        while let Some(pid) = family.get(next) {
            // Removed from the map: processes start and end while they are listed, so the relation may contain a cycle.
            family.extend(children.remove(pid).unwrap_or_default());
            next += 1;
        }
        family.sort_unstable();
        family.dedup();
        family
    }
}

/// The value of one of perf's options, in the word itself or the next one.
fn value<'w>(options: &'w [OsString], short: &str, long: &str) -> Option<&'w str> {
    let mut words = options.iter().map(|word| word.to_str().unwrap_or_default());
    let rest =
        words.find_map(|word| word.strip_prefix(long).or_else(|| word.strip_prefix(short)))?;
    if rest.is_empty() { words.next() } else { Some(rest.strip_prefix('=').unwrap_or(rest)) }
}

/// The processes that `-p` names.
fn named(list: &str) -> Result<Vec<u32>> {
    list.split(',')
        .map(|word| {
            let pid = word.trim().parse().ok().filter(|&pid: &u32| pid != 0);
            let pid =
                pid.ok_or_else(|| Error::Usage(format!("-p {list}: {word} is not a process id")))?;
            if Path::new("/proc").join(pid.to_string()).exists() {
                Ok(pid)
            } else {
                Err(Error::Refused(format!("there is no process {pid}")))
            }
        })
        .collect()
}

/// The process that a thread belongs to.
fn process(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    process.trim().parse().ok()
}

/// The users of these processes. Their files remain trusted after the processes have ended.
pub fn users(pids: &[u32]) -> BTreeMap<u32, u32> {
    let user = |pid| Some((pid, Target::open(pid).ok()?.effective().ok()?.user));
    pids.iter().filter_map(|&pid| user(pid)).collect()
}

fn owner(pid: u32) -> Option<u32> {
    Some(fs::metadata(format!("/proc/{pid}")).ok()?.uid())
}

/// The uid for a uid or user name; perf accepts both.
fn number(user: &str) -> Option<u32> {
    if let Ok(number) = user.parse() {
        return Some(number);
    }
    let done = Command::new("id").args(["-u", "--", user]).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(done.stdout).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: &str) -> Scope {
        let words: Vec<OsString> = options.split_whitespace().map(OsString::from).collect();
        Scope::of(None, &words).expect("options")
    }

    #[test]
    fn perf_options_determine_the_recorded_processes() {
        for nobody in ["", "-F 99 -g", "-t", "-u no-such-user-of-ours", "-t 0,x"] {
            assert!(of(nobody).pids().is_empty(), "{nobody}");
        }
        for all in ["-a", "-g -a", "-C 0", "-C0", "--all-cpus", "--cpu=1"] {
            assert!(matches!(of(all), Scope::All), "{all}");
        }
        let thread = rustix::thread::gettid().as_raw_nonzero();
        for option in ["-t ", "-t", "--tid ", "--tid="] {
            // Each process once, however many of its threads are named.
            let scope = of(&format!("-F 99 {option}{thread},{}", std::process::id()));
            assert_eq!(scope.pids(), [std::process::id()], "{option}");
            assert!(scope.is_named());
        }
        let user = rustix::process::geteuid().as_raw();
        for option in ["-u ", "-u", "--uid="] {
            let scope = of(&format!("{option}{user}"));
            assert!(matches!(scope, Scope::User(number) if number == user), "{option}");
            assert!(scope.pids().contains(&std::process::id()));
        }
        assert!(matches!(of("-u root"), Scope::User(0)));
    }
}
