//! A process that is asked to load an agent.
//!
//! It may not be what it looks like: any process can map a file of any name. The only consequences are that a request is sent with the privileges of the
//! process's own user and with a deadline, and that the process gets a signal if it handles that.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat, openat2, stat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use super::failure::Failure;
use crate::foreign::Usage;

/// `/proc/PID/status` has some 2 KiB.
const MOST_STATUS: u64 = 64 << 10;

/// A process. All operations apply to the process that had the id when this was created, never to a later process with the
/// same id.
#[derive(Debug)]
pub struct Target {
    /// Its id in our pid namespace.
    pub pid: u32,
    /// Its id in its own pid namespace.
    pub inner: u32,
    /// Its effective user.
    pub user: u32,
    /// Its effective group.
    pub group: u32,
    proc: OwnedFd,
    /// `None` if the kernel does not support pidfds (before 5.3).
    pidfd: Option<OwnedFd>,
    /// Whether a thread of this name makes it answer.
    answers: fn(&[u8]) -> bool,
}

/// The root folder of a process.
#[derive(Debug)]
pub struct Root(OwnedFd);

/// The relevant part of `/proc/PID/status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Status {
    inner: u32,
    user: u32,
    group: u32,
    has_ended: bool,
    is_stopped: bool,
    caught: u64,
}

impl Target {
    /// The process with this id.
    pub fn open(pid: u32) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = openat(CWD, format!("/proc/{pid}"), flags, Mode::empty())?;
        let id =
            i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
        let pidfd = match pidfd_open(id, PidfdFlags::empty()) {
            Ok(pidfd) => Some(pidfd),
            Err(Errno::NOSYS | Errno::PERM) => None,
            Err(error) => return Err(error.into()),
        };
        // That this can be read through `proc` proves that the process existed all the time, so `pidfd` refers to the same
        // process.
        let status = status(&proc)?;
        let Status { inner, user, group, .. } = status;
        Ok(Self { pid, inner, user, group, proc, pidfd, answers: |_| true })
    }

    /// The same process, of which a thread whose name is one of these has to run before it answers.
    pub fn answered_by(self, answers: fn(&[u8]) -> bool) -> Self {
        Self { answers, ..self }
    }

    /// Whether it handles a signal. This can be checked without waiting for it.
    pub fn catches(&self, signal: Signal) -> io::Result<bool> {
        Ok(status(&self.proc)?.catches(signal))
    }

    /// Whether it still has the user and the group that it had when this was created. They change if it runs a set-user-ID
    /// program.
    pub fn has_same_owner(&self) -> io::Result<bool> {
        let Status { user, group, .. } = status(&self.proc)?;
        Ok((user, group) == (self.user, self.group))
    }

    /// Whether a signal has stopped it.
    pub fn is_stopped(&self) -> io::Result<bool> {
        Ok(status(&self.proc)?.is_stopped)
    }

    /// Opens a file of its folder in `/proc`.
    ///
    /// Opening and reading `maps`, `environ` or `cmdline` waits for the lock of the process's address space, which a hostile process can keep locked.
    pub fn file(&self, name: &str) -> io::Result<File> {
        open(&self.proc, name)
    }

    /// Its memory, to read and write. It is that of the program that runs now.
    ///
    /// # Errors
    /// If we may not trace the process, or it has ended.
    pub fn memory(&self) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(openat(&self.proc, "mem", flags, Mode::empty())?.into())
    }

    /// Its folder in `/proc`.
    pub fn folder(&self) -> BorrowedFd<'_> {
        self.proc.as_fd()
    }

    /// Opens its root folder.
    pub fn root(&self) -> io::Result<Root> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Root(openat(&self.proc, "root", flags, Mode::empty())?))
    }

    /// Sends a signal, unless that would end the process.
    ///
    /// # Errors
    /// `without`, if it does not handle the signal.
    pub fn signal(&self, signal: Signal, without: &str) -> Result<(), Failure> {
        if !self.catches(signal)? {
            return Err(Failure::Refused(without.into()));
        }
        let sent = match &self.pidfd {
            Some(pidfd) => pidfd_send_signal(pidfd, signal),
            None => match Pid::from_raw(self.pid.cast_signed()) {
                Some(pid) => kill_process(pid, signal),
                None => Err(Errno::SRCH),
            },
        };
        Ok(sent?)
    }

    /// What the threads have used of the processors that make it answer; `None` if it has none of them.
    pub fn usage(&self) -> Option<Usage> {
        Usage::of_threads(self.pid, &self.proc, self.answers)
    }

    /// Fails if it has ended.
    pub fn expect_alive(&self) -> io::Result<()> {
        status(&self.proc).map(drop)
    }
}

impl Root {
    /// Opens a path as the process sees it, with `O_PATH`. No link leads out of this root.
    ///
    /// # Errors
    /// The system's error; also if the kernel (before 5.6) has no `openat2` and the process's root is not ours.
    pub fn open(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
        match openat2(&self.0, path, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
            Err(Errno::NOSYS) if self.is_ours() => openat(CWD, path, flags, Mode::empty()),
            done => done,
        }
    }

    /// Checks that the process sees a file: it may have another root file system than we do.
    pub fn expect_file(&self, path: &str) -> Result<(), Failure> {
        let missing = |error| {
            let error = io::Error::from(error);
            Failure::Refused(format!("there is no {path} in its file system ({error})"))
        };
        self.open(path, OFlags::empty()).map(drop).map_err(missing)
    }

    fn is_ours(&self) -> bool {
        let file = |status: rustix::fs::Stat| (status.st_dev, status.st_ino);
        matches!((fstat(&self.0), stat("/")), (Ok(a), Ok(b)) if file(a) == file(b))
    }
}

fn open(proc: impl AsFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(openat(proc, name, flags, Mode::empty())?.into())
}

/// Fails if the process has ended, also if its parent has not asked for its end yet.
fn status(proc: impl AsFd) -> io::Result<Status> {
    let mut text = String::new();
    open(proc, "status")?.take(MOST_STATUS).read_to_string(&mut text)?;
    let status = Status::parse(&text)
        .ok_or_else(|| io::Error::other("unexpected content in /proc/PID/status"))?;
    if status.has_ended { Err(Errno::SRCH.into()) } else { Ok(status) }
}

impl Status {
    /// The process chooses its name, but the kernel escapes newlines in it.
    fn parse(text: &str) -> Option<Self> {
        let words = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.split_ascii_whitespace())
        };
        // The effective id is the second of four.
        let id = |name| words(name)?.nth(1)?.parse().ok();
        let caught = words("SigCgt:")?.next()?;
        let caught = u64::from_str_radix(caught, 16).ok()?;
        let state = words("State:")?.next()?;
        let threads: u32 = words("Threads:")?.next()?.parse().ok()?;
        Some(Self {
            inner: words("NStgid:")?.next_back()?.parse().ok()?,
            user: id("Uid:")?,
            group: id("Gid:")?,
            // The first thread can end before the others.
            has_ended: matches!(state, "Z" | "X") && threads <= 1,
            is_stopped: matches!(state, "T" | "t"),
            caught,
        })
    }

    fn catches(self, signal: Signal) -> bool {
        self.caught >> (signal.as_raw() - 1) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn links_do_not_lead_out_of_a_root() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(dir.path().join("elsewhere")).expect("made");
        let inside = |path| std::os::unix::fs::symlink(path, dir.path().join("tmp"));
        let root = Root(File::open(dir.path()).expect("opened").into());
        let folder = |path| root.open(path, OFlags::DIRECTORY);
        for link in ["/elsewhere", "../../../../elsewhere"] {
            inside(link).expect("a link");
            let (found, meant) =
                (folder("/tmp").expect("found"), folder("/elsewhere").expect("found"));
            assert_eq!(fstat(found).expect("there").st_ino, fstat(meant).expect("there").st_ino);
            std::fs::remove_file(dir.path().join("tmp")).expect("removed");
        }
        inside("/proc").expect("a link");
        assert_eq!(folder("/tmp").expect_err("nothing there"), Errno::NOENT);
    }

    #[test]
    fn status_is_parsed() {
        let text = "Name:\tx\\nUid:\t0\nState:\tT (stopped)\nNStgid:\t77\t5\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n\
                    Threads:\t1\nSigCgt:\t0000000000000004\n";
        let wanted =
            Status { inner: 5, user: 2, group: 6, has_ended: false, is_stopped: true, caught: 4 };
        assert_eq!(Status::parse(text), Some(wanted));
        let ended = text.replace("T (stopped)", "Z (zombie)");
        let wanted = Status { has_ended: true, is_stopped: false, ..wanted };
        assert_eq!(Status::parse(&ended), Some(wanted));
        let others_run = ended.replace("Threads:\t1", "Threads:\t2");
        assert_eq!(Status::parse(&others_run), Some(Status { has_ended: false, ..wanted }));
        assert_eq!(Status::parse(&text.replace("SigCgt", "SigIgn")), None);
    }

    #[test]
    fn this_process_is_a_target() {
        let own = Target::open(std::process::id()).expect("this process");
        assert_eq!(own.user, rustix::process::geteuid().as_raw());
        assert_eq!(own.group, rustix::process::getegid().as_raw());
        assert!(!own.is_stopped().expect("read"));
        assert!(own.has_same_owner().expect("read"));
        for (user, group) in [(own.user + 1, own.group), (own.user, own.group + 1)] {
            let before = Target { user, group, ..Target::open(own.pid).expect("this process") };
            assert!(!before.has_same_owner().expect("read"));
        }
        assert!(Target::open(0).is_err() && Target::open(u32::MAX).is_err());
        // It has no handler, so nothing is sent, or this test would end here.
        assert!(matches!(own.signal(Signal::QUIT, ""), Err(Failure::Refused(_))));
    }

    #[test]
    fn a_process_that_has_ended_is_not_opened() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("sleep");
        let target = Target::open(child.id()).expect("it runs");
        child.kill().expect("killed");
        // Waits for its end, and leaves it to be asked for.
        let id = rustix::process::Pid::from_child(&child);
        let options =
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(id), options).expect("it ends");
        assert!(target.expect_alive().is_err());
        assert!(Target::open(child.id()).is_err());
        child.wait().expect("its end");
    }
}
