//! What keeps perf from recording, and how to allow it.
//!
//! perf's own messages name the setting of the kernel alone. In a container, a seccomp filter or a missing capability is the usual cause.

mod event;

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::process::geteuid;

use crate::{descriptors, text};

/// What is to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Processes of this user.
    Own,
    /// All processes, as by `-a`.
    All,
}

/// What keeps perf from recording. Its text is one line: what forbids it, and how to allow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// perf is not installed.
    Missing,
    /// perf is installed, but does not run. The text is what it says.
    Broken(String),
    /// A seccomp filter refuses the system call.
    Seccomp(Errno),
    /// The kernel's setting forbids it to users without the capability.
    Paranoid {
        /// The value of `kernel.perf_event_paranoid`.
        level: i32,
        /// What was to be recorded.
        recorded: Recorded,
        /// Whether the user is root: root of a container has few capabilities.
        is_root: bool,
    },
    /// A security module refuses it: nothing else does.
    SecurityModule(Errno),
    /// The kernel has no performance events.
    NoEvents,
    /// The system's error, which has another cause.
    Other(Errno),
}

/// The error message if perf is not installed.
pub const MISSING: &str = "perf is not installed; on Debian: apt-get install linux-perf, elsewhere it \
                           comes with the kernel's tools";

/// The bits of `CAP_SYS_ADMIN` and `CAP_PERFMON`, each of which allows all events.
const CAPABILITIES: u64 = 1 << 21 | 1 << 38;

impl Obstacle {
    /// What keeps perf from recording; `None` if nothing does. Starts perf, and opens an event as perf does.
    pub fn find(recorded: Recorded) -> Option<Self> {
        Self::of_program().or_else(|| Self::of_kernel(recorded))
    }

    /// What keeps any profiler from recording; `None` if nothing does.
    pub fn of_kernel(recorded: Recorded) -> Option<Self> {
        let refused = event::open(recorded == Recorded::All).err()?;
        Some(Self::of(refused, recorded, &Rights::of_this_process()))
    }

    /// What is wrong with the program; `None` if it runs.
    fn of_program() -> Option<Self> {
        let mut perf = Command::new("perf");
        perf.arg("version").stdin(Stdio::null());
        descriptors::restore_in(&mut perf);
        let printed = match perf.output() {
            Ok(printed) if printed.status.success() => return None,
            Ok(printed) => printed,
            Err(error) if error.kind() == ErrorKind::NotFound => return Some(Self::Missing),
            Err(error) => return Some(Self::Broken(error.to_string())),
        };
        // Ubuntu installs a script that looks for the perf of the running kernel.
        let said = [printed.stderr, printed.stdout].concat();
        let said = String::from_utf8_lossy(&said);
        let line = said.lines().map(str::trim).find(|line| !line.is_empty());
        let line = line.map_or_else(|| printed.status.to_string(), str::to_owned);
        Some(Self::Broken(line))
    }

    /// Why a process with these rights gets this error.
    fn of(refused: Errno, recorded: Recorded, rights: &Rights) -> Self {
        // From this level on, users without the capability may not record user code: Debian's and Ubuntu's kernels have levels above 2.
        let forbids = |level: i32| match recorded {
            Recorded::Own => level > 2,
            Recorded::All => level > 0,
        };
        let level = rights.paranoid.filter(|&level| !rights.is_capable && forbids(level));
        let paranoid =
            level.map(|level| Self::Paranoid { level, recorded, is_root: rights.is_root });
        match (refused, paranoid) {
            // The kernel has the setting if it has the events.
            (Errno::NOSYS, _) if rights.paranoid.is_none() || !rights.is_filtered => Self::NoEvents,
            // The kernel's own check gives this error, a filter usually another.
            (Errno::ACCESS, Some(paranoid)) => paranoid,
            (Errno::NOSYS | Errno::PERM | Errno::ACCESS, _) if rights.is_filtered => {
                Self::Seccomp(refused)
            }
            (Errno::PERM, Some(paranoid)) => paranoid,
            (Errno::PERM | Errno::ACCESS, None) => Self::SecurityModule(refused),
            _ => Self::Other(refused),
        }
    }
}

/// What decides whether this process may record.
#[derive(Clone, Copy, Debug)]
struct Rights {
    is_root: bool,
    /// Whether it has one of [`CAPABILITIES`] outside of a user namespace.
    is_capable: bool,
    /// Whether a seccomp filter applies to it.
    is_filtered: bool,
    /// `kernel.perf_event_paranoid`, if the kernel has performance events.
    paranoid: Option<i32>,
}

impl Rights {
    fn of_this_process() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let users = read("/proc/self/uid_map");
        Self::new(
            &read("/proc/self/status"),
            &users,
            &read("/proc/sys/kernel/perf_event_paranoid"),
            geteuid().is_root(),
        )
    }

    /// By the content of the files.
    fn new(status: &str, users: &str, paranoid: &str, is_root: bool) -> Self {
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let capabilities = field("CapEff:").and_then(|bits| u64::from_str_radix(bits, 16).ok());
        // The namespace with all users is the first one. Capabilities of another do not count.
        let is_first = users.split_ascii_whitespace().eq(["0", "0", "4294967295"]);
        Self {
            is_root,
            is_capable: is_first && capabilities.is_some_and(|bits| bits & CAPABILITIES != 0),
            is_filtered: field("Seccomp:") == Some("2"),
            paranoid: paranoid.trim().parse().ok(),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str(MISSING),
            Self::Broken(said) => {
                let said = text::said(said);
                write!(f, "perf does not run ({said}); install the perf of this kernel: on Debian, apt-get install linux-perf")
            }
            Self::Seccomp(refused) => write!(
                f,
                "a seccomp filter forbids perf_event_open ({}); to allow it: in Docker, --cap-add PERFMON or --security-opt \
                 seccomp=unconfined; in Kubernetes, securityContext.capabilities.add: [PERFMON] or \
                 securityContext.seccompProfile.type: Unconfined",
                name(*refused)
            ),
            Self::Paranoid { level, recorded, is_root } => {
                let wanted = match recorded {
                    Recorded::Own => "1",
                    Recorded::All => "-1",
                };
                let whom = if *is_root { "root without CAP_PERFMON" } else { "this user" };
                write!(
                    f,
                    "kernel.perf_event_paranoid is {level}, which forbids perf_event_open to {whom}; to allow it: sudo sysctl \
                     kernel.perf_event_paranoid={wanted}"
                )?;
                if !is_root {
                    f.write_str(", or run as root")?;
                }
                f.write_str(
                    "; in Docker, --cap-add PERFMON; in Kubernetes, securityContext.capabilities.add: [PERFMON]",
                )
            }
            Self::SecurityModule(refused) => write!(
                f,
                "a security module forbids perf_event_open ({}); to allow it: in SELinux, the permission perf_event for this \
                 domain; in Docker, --security-opt label=disable; in Kubernetes, securityContext.seLinuxOptions",
                name(*refused)
            ),
            Self::NoEvents => f.write_str(
                "this kernel has no perf_event_open (ENOSYS), as in gVisor; in Docker, --runtime runc; in Kubernetes, another \
                 runtimeClassName",
            ),
            Self::Other(refused) => {
                write!(f, "perf_event_open failed: {}; to see what perf says: perf record -- true", std::io::Error::from(*refused))
            }
        }
    }
}

/// The name of an error in the C library's header.
fn name(error: Errno) -> &'static str {
    match error {
        Errno::ACCESS => "EACCES",
        Errno::NOSYS => "ENOSYS",
        _ => "EPERM",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "         0          0 4294967295\n";
    const ROOTLESS: &str = "         0       1000          1\n";

    fn status(capabilities: &str, seccomp: u8) -> String {
        format!(
            "Name:\tperf\nCapEff:\t{capabilities}\nNoNewPrivs:\t0\nSeccomp:\t{seccomp}\nSeccomp_filters:\t1\n"
        )
    }

    fn rights(capabilities: &str, seccomp: u8, users: &str, paranoid: &str) -> Rights {
        let is_root = capabilities != "0000000000000000";
        Rights::new(&status(capabilities, seccomp), users, paranoid, is_root)
    }

    /// CapEff of a user, of Docker's root, and of root.
    const NONE: &str = "0000000000000000";
    const DOCKER: &str = "00000000a80425fb";
    const ALL: &str = "000001ffffffffff";

    #[test]
    fn a_container_s_filter_is_told_from_the_kernel_s_setting() {
        let of = |refused, rights| Obstacle::of(refused, Recorded::Own, &rights);
        // Docker's default profile, and podman's, by what they answer.
        for refused in [Errno::PERM, Errno::NOSYS] {
            let filtered = rights(DOCKER, 2, FIRST, "2\n");
            assert_eq!(of(refused, filtered), Obstacle::Seccomp(refused));
        }
        // Kubernetes has no filter by default, and Ubuntu's kernels level 4.
        let paranoid = |is_root| Obstacle::Paranoid { level: 4, recorded: Recorded::Own, is_root };
        assert_eq!(of(Errno::ACCESS, rights(DOCKER, 0, FIRST, "4\n")), paranoid(true));
        assert_eq!(of(Errno::ACCESS, rights(DOCKER, 2, FIRST, "4\n")), paranoid(true));
        assert_eq!(of(Errno::ACCESS, rights(NONE, 0, FIRST, "4\n")), paranoid(false));
        // All capabilities, but of a user namespace.
        assert_eq!(of(Errno::ACCESS, rights(ALL, 0, ROOTLESS, "4\n")), paranoid(true));
        let module = Obstacle::SecurityModule(Errno::ACCESS);
        assert_eq!(of(Errno::ACCESS, rights(ALL, 0, FIRST, "4\n")), module);
        assert_eq!(of(Errno::ACCESS, rights(NONE, 0, FIRST, "2\n")), module);
        // A kernel without events has no setting for them.
        assert_eq!(of(Errno::NOSYS, rights(DOCKER, 2, FIRST, "")), Obstacle::NoEvents);
        assert_eq!(of(Errno::NOSYS, rights(ALL, 0, FIRST, "2\n")), Obstacle::NoEvents);
        assert_eq!(of(Errno::MFILE, rights(ALL, 0, FIRST, "2\n")), Obstacle::Other(Errno::MFILE));
    }

    #[test]
    fn all_processes_need_more() {
        let user = rights(NONE, 0, FIRST, "2\n");
        let all = Obstacle::of(Errno::ACCESS, Recorded::All, &user);
        assert!(all.to_string().contains("kernel.perf_event_paranoid=-1"), "{all}");
    }

    #[test]
    fn each_names_docker_and_kubernetes_on_one_line() {
        let paranoid = |is_root| Obstacle::Paranoid { level: 3, recorded: Recorded::Own, is_root };
        for obstacle in [Obstacle::Seccomp(Errno::PERM), paranoid(true), paranoid(false)] {
            let text = obstacle.to_string();
            for word in
                ["perf_event_open", "Docker", "--cap-add PERFMON", "Kubernetes", "[PERFMON]"]
            {
                assert!(text.contains(word), "no {word}: {text}");
            }
            assert!(!text.contains('\n'), "{text}");
        }
        let broken = Obstacle::Broken("perf\u{1b}[2J: not found\n".into()).to_string();
        assert!(!broken.contains(['\u{1b}', '\n']), "{broken}");
    }
}
