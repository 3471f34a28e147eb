//! Privileges that some tests need and that not every machine gives: a container or a chroot often has no namespaces, and
//! not everybody is root.
//!
//! A test that cannot run reports its name, and returns:
//!
//! ```
//! use test_privilege::needs;
//!
//! # fn test() {
//! needs!(Mounts, OtherUsers);
//! # }
//! ```
//!
//! [`have`] asks the same for a part of a test.
//!
//! It prints `skipped: needs …`, past the test harness, and adds the line to the file that `JITSCRIBE_SKIPPED` names:
//! `scripts/test.sh` prints that file at its end. Where `JITSCRIBE_NO_SKIP` is set, the test fails instead.
#![cfg(unix)]
#![forbid(unsafe_code)]

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// What a test needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Privilege {
    /// A mount namespace in which a file system can be mounted: as root, or by a user namespace.
    Mounts,
    /// The same with process ids of its own, and a `/proc` that shows them.
    Processes,
    /// To be root, and to start programs as another user.
    OtherUsers,
    /// That programs with the set-user-id bit get the rights of their owner: a seccomp filter usually forbids it (`no_new_privs`).
    SetUserId,
    /// To trace programs that the test starts, and to change their system calls.
    Trace,
    /// To record the user's own programs by perf: containers refuse perf_event_open, and so does a high `perf_event_paranoid`.
    Perf,
    /// To record all processes by perf: `perf record -a`.
    PerfOfAll,
    /// To set hardware breakpoints in the user's own programs by perf: virtual machines may have none.
    Breakpoints,
    /// To be root, with the right to mount a file system of `/dev/fuse`.
    Fuse,
    /// To be root, and to mount an ext4 file system that is in a file: `mkfs.ext4` and a loop device.
    Ext4,
    /// To refuse system calls to programs that the test starts, as containers do: see [`refusing`].
    Filters,
    /// perf 6.12 of Debian 13, to compare with: `scripts/setup.sh live` unpacks it.
    NewerPerf,
    /// Python 3.14 of Debian sid, which may no longer have it: `scripts/setup.sh live` unpacks it.
    NewerPython,
    /// LLVM's checker of debug information: `scripts/setup.sh live` installs it.
    Dwarfdump,
    /// The checker of ELF files of elfutils: `scripts/setup.sh live` installs it.
    Elflint,
    /// That the kernel itself runs the program, and not QEMU's user mode, whose own calls and signals `/proc` shows.
    Kernel,
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mounts => "mount namespaces (unshare --mount)",
            Self::Processes => "PID namespaces (unshare --mount --pid --mount-proc)",
            Self::OtherUsers => "root, with the right to start programs as another user",
            Self::SetUserId => "set-user-id programs (no_new_privs forbids them)",
            Self::Trace => "ptrace (strace)",
            Self::Perf => "perf_event_open (perf record)",
            Self::PerfOfAll => "perf_event_open for all processes (perf record -a)",
            Self::Breakpoints => "hardware breakpoints (perf record -e mem:ADDRESS:x)",
            Self::Fuse => "root, with /dev/fuse and mounts",
            Self::Ext4 => "root, with mkfs.ext4 and loop devices",
            Self::Filters => "seccomp filters (python3 on x86-64 or AArch64)",
            Self::NewerPerf => "perf 6.12, to compare with (scripts/setup.sh live)",
            Self::NewerPython => "Python 3.14 of Debian sid (scripts/sid.sh)",
            Self::Dwarfdump => "llvm-dwarfdump (scripts/setup.sh live)",
            Self::Elflint => "eu-elflint (scripts/setup.sh live)",
            Self::Kernel => "a program that the kernel runs, not QEMU",
        })
    }
}

impl Privilege {
    /// Why it is not there, if it is not. Found out by trying, once for each program.
    fn missing(self) -> Option<&'static str> {
        const COUNT: usize = Privilege::Kernel as usize + 1;
        static ANSWERS: [OnceLock<Option<String>>; COUNT] = [const { OnceLock::new() }; COUNT];
        ANSWERS[self as usize].get_or_init(|| try_it(&mut self.trial())).as_deref()
    }

    /// A command that succeeds where it is there.
    fn trial(self) -> Command {
        match self {
            Self::Mounts => {
                let mut unshare = unshare();
                unshare.args(["--mount", "mount", "-t", "tmpfs", "none", "/proc"]);
                unshare
            }
            Self::Processes => {
                let mut unshare = unshare();
                unshare.args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]);
                // A folder that is there everywhere.
                unshare.args(["mount", "-t", "tmpfs", "none", "/proc"]);
                unshare
            }
            Self::OtherUsers => {
                let mut other = Command::new("setpriv");
                other.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "true"]);
                other
            }
            Self::SetUserId => {
                let mut grep = Command::new("grep");
                grep.args(["-q", "^NoNewPrivs:.0$", "/proc/self/status"]);
                grep
            }
            Self::Trace => {
                let mut strace = Command::new("strace");
                strace.args([
                    "-f",
                    "-qq",
                    "-o",
                    "/dev/null",
                    "-e",
                    "inject=getppid:retval=1",
                    "true",
                ]);
                strace
            }
            Self::Perf => perf_record("cpu-clock:u", &[]),
            Self::PerfOfAll => perf_record("cpu-clock:u", &["-a"]),
            Self::Breakpoints => perf_record("mem:0x1000:x:u", &[]),
            Self::Fuse => {
                let mut sh = Command::new("sh");
                sh.args(["-ec", "exec 3<>/dev/fuse; test \"$(id -u)\" = 0; unshare --mount true"]);
                sh
            }
            Self::Ext4 => {
                let mut sh = Command::new("sh");
                let script = "image=$(mktemp); trap 'rm $image' EXIT; truncate -s 1M $image; \
                              mkfs.ext4 -q $image; unshare --mount mount -o loop $image /proc";
                sh.args(["-ec", script]);
                sh
            }
            Self::Filters => {
                let mut filtered = refusing(Refused::PerfEventOpen, 1);
                filtered.args(["grep", "-q", "^Seccomp:.2$", "/proc/self/status"]);
                filtered
            }
            Self::NewerPerf => version_in_cache("trixie/run/perf"),
            Self::NewerPython => version_in_cache("sid/run/python3.14"),
            Self::Dwarfdump => version_of("llvm-dwarfdump"),
            Self::Elflint => version_of("eu-elflint"),
            Self::Kernel => {
                // QEMU answers as if it were the program for `/proc/self`, but not by this path.
                let runs = std::fs::read_link("/proc/thread-self/exe").unwrap_or_default();
                let mut test = Command::new("test");
                test.arg(runs).arg("=").arg(std::env::current_exe().unwrap_or_default());
                test
            }
        }
    }
}

/// The version of a program in the cache of `scripts/setup.sh live`.
fn version_in_cache(path: &str) -> Command {
    let folder = |name| std::env::var_os(name).map(PathBuf::from);
    let cache = folder("JITSCRIBE_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|base| base.join("jitscribe")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/jitscribe")));
    let mut program = Command::new(cache.unwrap_or_default().join(path));
    program.arg("--version");
    program
}

fn version_of(program: &str) -> Command {
    let mut command = Command::new(program);
    command.arg("--version");
    command
}

fn perf_record(event: &str, more: &[&str]) -> Command {
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", event, "-o", "/dev/null"]).args(more).arg("true");
    perf
}

/// `unshare`, which lets a user who is not root become root in a namespace.
pub fn unshare() -> Command {
    let mut unshare = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    unshare
}

/// A system call that a container's seccomp filter refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// `perf_event_open`, which Docker's default profile refuses.
    PerfEventOpen,
}

/// A command that runs the command in its further arguments with a system call refused by this error number.
pub fn refusing(call: Refused, error: u16) -> Command {
    let mut python = Command::new("python3");
    let Refused::PerfEventOpen = call;
    python.args(["-c", include_str!("refusing.py"), "perf_event_open", &error.to_string()]);
    python
}

fn try_it(command: &mut Command) -> Option<String> {
    match command.env("LC_ALL", "C").output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("{:?}: {error}", command.get_program())),
    }
}

/// Returns from the test unless it has each [`Privilege`] that is named.
#[macro_export]
macro_rules! needs {
    ($($need:ident),+) => {
        if !$crate::have(&[$($crate::Privilege::$need),+]) {
            return;
        }
    };
}

/// Whether the test that calls this has all that it needs. Otherwise this is reported, and the test must return.
///
/// # Panics
/// If something is missing and `JITSCRIBE_NO_SKIP` is set, or the file that `JITSCRIBE_SKIPPED` names cannot be written.
#[must_use]
#[track_caller]
pub fn have(needs: &[Privilege]) -> bool {
    let missing = needs.iter().find_map(|need| Some((need, need.missing()?)));
    let Some((need, why)) = missing else { return true };
    let place = Location::caller();
    let thread = std::thread::current();
    // The test harness gives a thread the name of its test; one without has only the main thread.
    let test = thread.name().filter(|name| *name != "main").unwrap_or_default();
    let line = format!("skipped: needs {need}: {test} {}:{} ({why})\n", place.file(), place.line());
    assert!(std::env::var_os("JITSCRIBE_NO_SKIP").is_none(), "{line}");
    // Not by `eprintln`, which the test harness keeps to itself.
    _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(list) = std::env::var_os("JITSCRIBE_SKIPPED") {
        let mut list = OpenOptions::new().append(true).create(true).open(list).expect("a file");
        // One write, as tests run concurrently.
        list.write_all(line.as_bytes()).expect("written");
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a child, as the environment is the whole program's.
    #[test]
    fn missing_privileges_are_reported_and_counted() {
        if std::env::var_os("ROLE").is_some() {
            assert!(!have(&[Privilege::OtherUsers]), "tried with what program?");
            return;
        }
        let list = std::env::temp_dir().join(format!("skipped-{}", std::process::id()));
        let run = |no_skip: bool| {
            let mut again = Command::new(std::env::current_exe().expect("a path"));
            again.args([
                "--exact",
                "tests::missing_privileges_are_reported_and_counted",
                "--nocapture",
            ]);
            again.env("ROLE", "1").env("JITSCRIBE_SKIPPED", &list);
            // Without a path there is no program to try it with.
            again.env("PATH", "/nonexistent").env_remove("JITSCRIBE_NO_SKIP");
            if no_skip {
                again.env("JITSCRIBE_NO_SKIP", "1");
            }
            again.output().expect("this program")
        };
        let skipped = run(false);
        assert!(skipped.status.success(), "{skipped:?}");
        let said = String::from_utf8_lossy(&skipped.stderr).into_owned();
        assert!(said.starts_with("skipped: needs root"), "{said}");
        assert!(said.contains("missing_privileges_are_reported_and_counted"), "{said}");
        assert_eq!(std::fs::read_to_string(&list).expect("a list"), said);
        assert!(!run(true).status.success(), "not a failure where nothing may be skipped");
        std::fs::remove_file(&list).expect("removed");
    }
}
