//! A process that may be a JVM.
//!
//! A process is treated as a JVM if it has a file `libjvm.so` mapped as code. This does not prove that it is one: any process
//! can map a file of that name. The only consequences are that a request is sent with the privileges of the process's own user
//! and with a deadline, and that the process gets a SIGQUIT if it handles that signal.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat, openat2, stat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use super::attach::{Failure, Wait};
use crate::foreign::Usage;

/// The most bytes that are read of the list of mappings. A large JVM has some ten thousand lines of a hundred bytes.
const MOST_MAPS: u64 = 64 << 20;

/// The length at which lines are split. The kernel writes no longer lines, whatever the path.
const LONGEST_LINE: usize = 32 << 10;

/// The start of the file name of OpenJ9's own library, which continues with its version.
const OPENJ9: &[u8] = b"/libj9vm";

/// The most bytes that are read of a command line, and of an environment.
const MOST_WORDS: u64 = 4 << 20;

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
}

/// The list of mappings of a process.
#[derive(Debug)]
pub struct Maps(File);

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
    catches_quit: bool,
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
        Ok(Self { pid, inner, user, group, proc, pidfd })
    }

    /// Whether it handles SIGQUIT. Only then may it be a JVM. This can be checked without reading the mappings.
    pub fn catches_quit(&self) -> io::Result<bool> {
        Ok(status(&self.proc)?.catches_quit)
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

    /// Opens the list of its mappings.
    ///
    /// Opening and reading it waits for the lock of the process's address space, which a hostile process can keep locked.
    pub fn maps(&self) -> io::Result<Maps> {
        Ok(Maps(open(&self.proc, "maps")?))
    }

    /// Whether its command line or its environment turns on `PreserveFramePointer`, which is off by default. Files that may have
    /// options, too, are not read: without frame pointers, stacks are recorded in a way that never needs them.
    ///
    /// This waits for the lock of the process's address space, as [`Self::maps`] does.
    pub fn is_told_to_keep_frame_pointers(&self) -> bool {
        let mut words = Vec::new();
        for file in ["environ", "cmdline"] {
            // What cannot be read says nothing.
            if let Ok(file) = open(&self.proc, file) {
                let _ = file.take(MOST_WORDS).read_to_end(&mut words);
                words.push(0);
            }
        }
        turns_on_frame_pointers(&words)
    }

    /// Opens its root folder.
    pub fn root(&self) -> io::Result<Root> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Root(openat(&self.proc, "root", flags, Mode::empty())?))
    }

    /// Sends SIGQUIT, which makes a JVM listen, unless the signal would end the process.
    pub fn quit(&self) -> Result<(), Failure> {
        if !self.catches_quit()? {
            return Err(Failure::Refused(
                "it accepts no commands (yet), and SIGQUIT, which enables them, would end it"
                    .into(),
            ));
        }
        let sent = match &self.pidfd {
            Some(pidfd) => pidfd_send_signal(pidfd, Signal::QUIT),
            None => match Pid::from_raw(self.pid.cast_signed()) {
                Some(pid) => kill_process(pid, Signal::QUIT),
                None => Err(Errno::SRCH),
            },
        };
        Ok(sent?)
    }

    /// What the threads have used of the processors that make a JVM answer; `None` if it has none of them.
    pub fn usage(&self) -> Option<Usage> {
        Usage::of_threads(self.pid, &self.proc, answers)
    }

    /// Fails if it has ended.
    pub fn expect_alive(&self) -> io::Result<()> {
        status(&self.proc).map(drop)
    }
}

impl Maps {
    /// Whether a file `libjvm.so` is mapped as code.
    pub fn have_jvm(self, wait: &Wait<'_>) -> Result<bool, Failure> {
        have_jvm(BufReader::new(self.0.take(MOST_MAPS)), wait)
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

    fn is_ours(&self) -> bool {
        let file = |status: rustix::fs::Stat| (status.st_dev, status.st_ino);
        matches!((fstat(&self.0), stat("/")), (Ok(a), Ok(b)) if file(a) == file(b))
    }
}

fn open(proc: impl AsFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(openat(proc, name, flags, Mode::empty())?.into())
}

/// Whether a JVM's thread of this name has to run before the JVM answers: the one that handles SIGQUIT, the one that serves requests,
/// and those that stop the others, collect garbage, and continue them. Threads of the application do not count: a thread that
/// always has work waits for processors all the time, also in a JVM that would never answer.
fn answers(name: &[u8]) -> bool {
    let begins = [&b"Signal Dispatch"[..], b"Attach Listener", b"VM Thread", b"GC ", b"G1 "];
    begins.iter().any(|begin| name.starts_with(begin))
}

/// Whether the last word about the option turns it on.
fn turns_on_frame_pointers(words: &[u8]) -> bool {
    let words = words.split(|byte| [0, b' ', b'=', b'\n', b'\t', b'"', b'\''].contains(byte));
    let mut about = words.filter_map(|word| match word.strip_prefix(b"-XX:")? {
        b"+PreserveFramePointer" => Some(true),
        b"-PreserveFramePointer" => Some(false),
        _ => None,
    });
    about.next_back().unwrap_or(false)
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
            catches_quit: caught >> (Signal::QUIT.as_raw() - 1) & 1 == 1,
        })
    }
}

fn have_jvm(mut maps: impl BufRead, wait: &Wait<'_>) -> Result<bool, Failure> {
    let mut line = Vec::new();
    let mut is_java = false;
    loop {
        line.clear();
        let read = maps.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(is_java);
        }
        let line = line.trim_ascii_end();
        is_java |= is_jvm(line);
        // OpenJ9 also has a libjvm.so, but on SIGQUIT it writes a large dump file.
        if line.windows(OPENJ9.len()).any(|part| part == OPENJ9) {
            return Ok(false);
        }
        wait.check()?;
    }
}

/// A line such as `7f00-7f10 r-xp 00000000 08:01 1034    /usr/lib/jvm/lib/server/libjvm.so`, with ` (deleted)` at the end if the
/// JDK was updated since.
fn is_jvm(line: &[u8]) -> bool {
    let permissions = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let path = line.strip_suffix(b" (deleted)").unwrap_or(line);
    permissions.get(2) == Some(&b'x') && path.ends_with(b"/libjvm.so")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::foreign::Limit;

    fn wait(time: Duration) -> Wait<'static> {
        Wait::new(Limit::of(time), None, None)
    }

    #[test]
    fn the_last_word_about_frame_pointers_counts() {
        for (words, is_on) in [
            ("java\0-XX:+PreserveFramePointer\0Main\0", true),
            ("JAVA_TOOL_OPTIONS=-Xmx1g -XX:+PreserveFramePointer\0java\0Main\0", true),
            (
                "JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer\0java\0-XX:-PreserveFramePointer\0",
                false,
            ),
            ("java\0-XX:+PreserveFramePointers\0", false),
            ("", false),
        ] {
            assert_eq!(turns_on_frame_pointers(words.as_bytes()), is_on, "{words:?}");
        }
    }

    #[test]
    fn code_of_libjvm_so_is_java() {
        let later = wait(Duration::from_secs(600));
        let is_java = |maps: &[u8]| have_jvm(maps, &later).expect("read");
        assert!(is_java(
            b"1-2 r--p 0 08:01 1 /a/libjvm.so\n3-4 r-xp 0 08:01 1    /a/libjvm.so\n5-6"
        ));
        assert!(is_java(b"1-2 r--p 0 08:01 1 /\xff\n3-4 r-xp 0 08:01 1 /a b/libjvm.so (deleted)"));
        for other in [
            "",
            "\n\n",
            "1-2 r--p 0 08:01 1 /a/libjvm.so\n",
            "1-2 r-xp 0 08:01 1 /a/notlibjvm.so\n",
            "1-2 r-xp 0 08:01 1 /a/libjvm.so.bak\n",
            "1-2 r-xp 0 08:01 1 [anon: /libjvm.so]\n",
            "1-2 r-xp 0 08:01 1 /a/libjvm.so\n1-2 r-xp 0 08:01 1 /a/libj9vm29.so\n",
        ] {
            assert!(!is_java(other.as_bytes()), "{other}");
        }
        let past = have_jvm(b"1-2 r-xp 0 08:01 1 /x\n".as_slice(), &wait(Duration::ZERO));
        assert!(matches!(past, Err(Failure::NotAnswering)));
    }

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
        let wanted = Status {
            inner: 5,
            user: 2,
            group: 6,
            has_ended: false,
            is_stopped: true,
            catches_quit: true,
        };
        assert_eq!(Status::parse(text), Some(wanted));
        let ended = text.replace("T (stopped)", "Z (zombie)");
        let wanted = Status { has_ended: true, is_stopped: false, ..wanted };
        assert_eq!(Status::parse(&ended), Some(wanted));
        let others_run = ended.replace("Threads:\t1", "Threads:\t2");
        assert_eq!(Status::parse(&others_run), Some(Status { has_ended: false, ..wanted }));
        assert_eq!(Status::parse(&text.replace("SigCgt", "SigIgn")), None);
    }

    #[test]
    fn this_process_is_not_a_jvm() {
        let own = Target::open(std::process::id()).expect("this process");
        assert_eq!(own.user, rustix::process::geteuid().as_raw());
        assert_eq!(own.group, rustix::process::getegid().as_raw());
        let later = wait(Duration::from_secs(600));
        assert!(!own.maps().expect("opened").have_jvm(&later).expect("read"));
        assert!(!own.is_stopped().expect("read"));
        assert!(own.has_same_owner().expect("read"));
        for (user, group) in [(own.user + 1, own.group), (own.user, own.group + 1)] {
            let before = Target { user, group, ..Target::open(own.pid).expect("this process") };
            assert!(!before.has_same_owner().expect("read"));
        }
        assert!(Target::open(0).is_err() && Target::open(u32::MAX).is_err());
        // It has no handler, so nothing is sent, or this test would end here.
        assert!(matches!(own.quit(), Err(Failure::Refused(_))));
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
