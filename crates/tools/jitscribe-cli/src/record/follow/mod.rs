//! Follows the recorded processes while perf records, so that the files of those that end first can still be read.
//!
//! A process in a container writes its perf map or its jitdump into a file system of its own, which the kernel dismantles with the last
//! process in it. Therefore a worker ([`crate::foreign`]) watches which processes come ([`worker`]), and holds the mount namespaces and root
//! folders that are not ours ([`roots`]) until the recording is processed. The descriptors never leave the worker: releasing a file
//! system that a user serves may block.

mod cause;
mod family;
mod roots;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use jitscribe_inject::SeenProcess;

use super::scope::Scope;
use crate::foreign::{self, Kept, Patience, Task};
use crate::note;

pub use cause::{Added, is_dump_of, is_map_of, map_name};
pub use worker::FollowTask;

use family::Whose;
use worker::Followed;

/// The worker that follows the recorded processes. Dropping this releases what it holds.
#[derive(Debug)]
pub struct Following(Option<Kept>);

/// What was learned about the recorded processes.
#[derive(Debug, Default)]
pub struct Seen {
    /// The processes.
    pub processes: BTreeMap<u32, SeenProcess>,
    /// Their effective users.
    pub users: BTreeMap<u32, u32>,
    /// Those in which V8 writes files only because `record` asked it to.
    pub asked: BTreeSet<u32>,
}

impl Following {
    /// Starts to follow the processes in this scope, and those that they start, to which `added` is added. Returns when those that run
    /// already were examined.
    pub fn start(scope: &Scope, added: Added) -> Self {
        let whose = match scope {
            // Those that perf will start.
            Scope::None => Whose::Family(vec![std::process::id()]),
            Scope::Processes(pids) => Whose::Family(pids.clone()),
            Scope::User(user) => Whose::User(*user),
            Scope::All => Whose::All,
        };
        match foreign::run(Task::Follow(FollowTask { whose, added }), Vec::new(), PATIENCE) {
            Ok(answer) => Self(answer.kept),
            Err(error) => {
                warn(&error);
                Self(None)
            }
        }
    }

    /// What was learned so far. The paths in it are valid as long as this value exists.
    pub fn seen(&self) -> Seen {
        let Some(kept) = &self.0 else { return Seen::default() };
        let followed = kept
            .ask(worker::REPORT, PATIENCE)
            .and_then(|answer| Ok(serde_json::from_slice::<Followed>(&answer.bytes)?));
        match followed {
            Ok(followed) => seen(followed),
            Err(error) => {
                warn(&error);
                Seen::default()
            }
        }
    }
}

/// A process may make the worker wait, but not the recording.
const PATIENCE: Patience = Patience::ONE_OF_MANY;

fn seen(followed: Followed) -> Seen {
    if followed.left_out > 0 {
        note::warning(format_args!(
            "too many file systems of containers to hold all: {} were not held (see: ulimit -n)",
            followed.left_out
        ));
    }
    let mut seen = Seen::default();
    for process in followed.processes {
        let root = |number| PathBuf::from(format!("/proc/{}/fd/{number}", followed.worker));
        let root = process.root.map(root);
        seen.processes.insert(
            process.pid,
            SeenProcess { inner: process.inner, root, is_asked: process.is_asked },
        );
        seen.users.insert(process.pid, process.user);
        if process.is_asked {
            seen.asked.insert(process.pid);
        }
    }
    seen
}

fn warn(error: &io::Error) {
    note::warning(format_args!(
        "files of containers that have ended are not found: following their processes failed: {error}"
    ));
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    use test_privilege::{Privilege, have, unshare};

    use super::*;

    /// Starts a shell that says when it is ready and then sleeps.
    fn start(command: &mut Command, script: &str) -> Child {
        let script = format!("{script} echo ready; exec sleep 600");
        command.args(["sh", "-e", "-c", &script]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("started");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        out.read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        child
    }

    fn end(mut child: Child) {
        child.kill().expect("killed");
        child.wait().expect("ended");
    }

    #[test]
    fn a_process_that_has_ended_is_remembered() {
        let following = Following::start(&Scope::None, Added::default());
        let child = start(&mut Command::new("env"), "");
        let pid = child.id();
        let expected = SeenProcess { inner: pid, root: None, is_asked: false };
        assert_eq!(following.seen().processes.get(&pid), Some(&expected));
        end(child);
        let seen = following.seen();
        assert_eq!(seen.processes.get(&pid), Some(&expected));
        assert_eq!(seen.users.get(&pid), Some(&rustix::process::geteuid().as_raw()));
        // No child of ours.
        assert!(!seen.processes.contains_key(&1));
    }

    #[test]
    fn a_file_system_outlives_the_process_that_mounted_it() {
        if !have(&[Privilege::Mounts]) {
            return;
        }
        let name = format!("/tmp/jitscribe-follow-{}", std::process::id());
        let script = format!("mount -t tmpfs none /tmp; echo text >{name};");
        let mut container = unshare();
        let child = start(container.arg("--mount"), &script);
        let pid = child.id();
        let following = Following::start(&Scope::Processes(vec![pid]), Added::default());
        end(child);
        let seen = following.seen();
        let root = seen.processes.get(&pid).and_then(|process| process.root.clone());
        let file = root.expect("a root").join(name.trim_start_matches('/'));
        assert_eq!(fs::read_to_string(&file).expect("held"), "text\n");
        assert!(!std::path::Path::new(&name).exists());
        // The worker is killed, which takes its time.
        drop(following);
        while file.exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}
