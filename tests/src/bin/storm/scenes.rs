//! What is done to the processes, scene by scene.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use crate::check::{Findings, check};
use crate::host::{Role, Under};
use crate::sys::{self, Fork, Refusal};
use crate::truth::{Entry, SLOTS, State, THREADS, Truth};

/// A process that does nothing for so long hangs, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

struct Storm {
    jitscribe: PathBuf,
    truth: Truth,
    fd: i32,
    folder: PathBuf,
    /// A file system that is full soon, if one could be mounted.
    small: Option<PathBuf>,
    random: u64,
    failures: Vec<String>,
    /// Codes of a fork's child that its log has otherwise, as the parent went on before the child first announced.
    later: u64,
}

/// What one scene did.
#[derive(Default)]
struct Scene {
    processes: u64,
    taken: u64,
    refused: u64,
    findings: Findings,
}

impl Scene {
    fn count(&mut self, entry: Entry) {
        self.processes += 1;
        self.taken += entry.taken();
        self.refused += entry.refused();
    }
}

/// What the library asks of the system, now and in versions to come, on x86-64 and arm64. Without getpid: where that fails,
/// which the C library itself takes for impossible, the log is of a process that nobody can name.
const CALLS: &[(&str, i64)] = &[
    ("clock_gettime", libc::SYS_clock_gettime),
    ("clone", libc::SYS_clone),
    ("clone3", libc::SYS_clone3),
    ("close", libc::SYS_close),
    ("dup3", libc::SYS_dup3),
    ("fallocate", libc::SYS_fallocate),
    ("fchmod", libc::SYS_fchmod),
    ("fcntl", libc::SYS_fcntl),
    ("fstat", libc::SYS_fstat),
    ("ftruncate", libc::SYS_ftruncate),
    ("futex", libc::SYS_futex),
    ("getegid", libc::SYS_getegid),
    ("geteuid", libc::SYS_geteuid),
    ("getrandom", libc::SYS_getrandom),
    ("gettid", libc::SYS_gettid),
    ("getuid", libc::SYS_getuid),
    ("lseek", libc::SYS_lseek),
    ("madvise", libc::SYS_madvise),
    ("membarrier", libc::SYS_membarrier),
    ("memfd_create", libc::SYS_memfd_create),
    ("mkdirat", libc::SYS_mkdirat),
    ("mmap", libc::SYS_mmap),
    ("mprotect", libc::SYS_mprotect),
    ("mremap", libc::SYS_mremap),
    ("msync", libc::SYS_msync),
    ("munmap", libc::SYS_munmap),
    ("newfstatat", libc::SYS_newfstatat),
    ("openat", libc::SYS_openat),
    ("prctl", libc::SYS_prctl),
    ("pread64", libc::SYS_pread64),
    ("prlimit64", libc::SYS_prlimit64),
    ("pwrite64", libc::SYS_pwrite64),
    ("read", libc::SYS_read),
    ("readlinkat", libc::SYS_readlinkat),
    ("rt_sigaction", libc::SYS_rt_sigaction),
    ("rt_sigprocmask", libc::SYS_rt_sigprocmask),
    ("sched_yield", libc::SYS_sched_yield),
    ("statx", libc::SYS_statx),
    ("sysinfo", libc::SYS_sysinfo),
    ("uname", libc::SYS_uname),
    ("unlinkat", libc::SYS_unlinkat),
    ("write", libc::SYS_write),
];

/// Limits, each with values that are hard on the library.
fn limits() -> Vec<(&'static str, u32, &'static [u64], bool)> {
    vec![
        ("address space (RLIMIT_AS)", libc::RLIMIT_AS, &[48 << 20, 96 << 20, 160 << 20], false),
        ("data (RLIMIT_DATA)", libc::RLIMIT_DATA, &[1 << 20, 16 << 20], false),
        ("file size (RLIMIT_FSIZE)", libc::RLIMIT_FSIZE, &[0, 100, 70_000, 1 << 20], false),
        ("descriptors (RLIMIT_NOFILE)", libc::RLIMIT_NOFILE, &[0, 4, 5, 6, 7], false),
        ("processes (RLIMIT_NPROC)", libc::RLIMIT_NPROC, &[0, 1], true),
        ("locked memory (RLIMIT_MEMLOCK)", libc::RLIMIT_MEMLOCK, &[0, 64 << 10], true),
        ("stack (RLIMIT_STACK)", libc::RLIMIT_STACK, &[16 << 10, 128 << 10], false),
    ]
}

/// Bytes that the logs and dumps of a scene take at most.
const ROOM: u64 = 512 << 20;

/// Bytes that can be written to a file system.
fn room(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(0, |system| system.f_bavail * system.f_frsize)
}

pub fn all(jitscribe: PathBuf, seconds: u64) -> ExitCode {
    sys::adopt_orphans();
    // Containers often have little of it.
    let memory = Path::new("/dev/shm");
    let base = if room(memory) < ROOM { std::env::temp_dir() } else { memory.to_owned() };
    let folder = tempfile::Builder::new().prefix("jitscribe-storm-").tempdir_in(base);
    let folder = folder.expect("a folder");
    let small = folder.path().join("small");
    fs::create_dir(&small).expect("a folder");
    let path = std::ffi::CString::new(small.to_str().expect("UTF-8")).expect("no NUL");
    let small = (sys::own_mounts() && sys::mount_small(&path, c"size=1m")).then_some(small);
    let (shared, fd) = sys::Shared::new(crate::truth::WORDS);
    let mut storm = Storm {
        jitscribe,
        truth: Truth(shared),
        fd,
        folder: folder.path().to_owned(),
        small,
        random: u64::from(std::process::id()) | 1,
        failures: Vec::new(),
        later: 0,
    };
    println!("{:<40} {:>9} {:>11} {:>9}", "", "", "announce-", "");
    println!(
        "{:<40} {:>9} {:>11} {:>9} {:>8} {:>10} {:>5} {:>5} {:>6} {:>7}",
        "",
        "processes",
        "ments",
        "refused",
        "readings",
        "codes",
        "lost",
        "mixed",
        "undead",
        "damaged"
    );
    let share = |part: u64| Duration::from_millis(seconds * 10 * part);
    let (file, memory) = (Some(folder.path().to_owned()), None);
    storm.kills("kill -9, the log a file", Role::Churn, file.as_deref(), share(12));
    storm.kills("stopped, then kill -9, the log in memory", Role::Churn, memory, share(12));
    storm.kills("threads that come and go, kill -9", Role::Threads, file.as_deref(), share(8));
    for (how, name) in [(Fork::Library, "fork"), (Fork::Clone3, "raw clone3")] {
        for (waits, then) in [(true, "parent waits"), (false, "parent goes on")] {
            for (folder, kind) in [(None, "in memory"), (file.as_deref(), "files")] {
                let name = format!("{name}, {then}, {kind}");
                storm.forks(&name, Role::Forks(how, waits), folder, share(4));
            }
        }
    }
    storm.kills("vfork, children that announce", Role::Borrowers(true), memory, share(5));
    storm.kills("clone with CLONE_VM, the same", Role::Borrowers(false), memory, share(5));
    storm.limits();
    storm.full_disk();
    storm.cgroup();
    storm.seccomp(share(26));
    println!(
        "inherited codes that a child's log has as its parent's stood after the fork: {}",
        storm.later
    );
    sys::unmount(&path);
    for failure in &storm.failures {
        println!("FAILED {failure}");
    }
    println!("{} failures", storm.failures.len());
    if storm.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Storm {
    fn random(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % below
    }

    fn start(&self, role: &Role, folder: Option<&Path>, entry: Entry) -> Child {
        self.start_by(
            &mut Command::new(std::env::current_exe().expect("a path")),
            role,
            folder,
            entry,
        )
    }

    fn start_by(
        &self,
        command: &mut Command,
        role: &Role,
        folder: Option<&Path>,
        entry: Entry,
    ) -> Child {
        command.arg("host").arg(self.fd.to_string()).arg(entry.number().to_string());
        command.arg(folder.unwrap_or(Path::new("-"))).args(role.words());
        // The user who runs the storm may have set it.
        command.env_remove("JITSCRIBE").env_remove("JITSCRIBE_DIR").env_remove("JITSCRIBE_LIMIT");
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("a process")
    }

    /// Waits for an action of a process; an error if it never happens.
    fn wait_for(&mut self, what: &str, mut is_so: impl FnMut() -> bool) -> bool {
        let start = Instant::now();
        while !is_so() {
            if start.elapsed() > PATIENCE {
                self.failures.push(format!("hangs: {what}"));
                return false;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        true
    }

    fn row(name: &str, scene: &Scene) {
        let Scene { processes, taken, refused, findings } = scene;
        println!("{name:<40} {processes:>9} {taken:>11} {refused:>9} {findings}");
    }

    fn judge(&mut self, name: &str, scene: &mut Scene, found: Result<Findings, String>) {
        match found {
            Ok(findings) => {
                self.later += findings.later;
                scene.findings.add(findings);
            }
            Err(why) => {
                scene.findings.readings += 1;
                self.failures.push(format!("{name}: {why}"));
            }
        }
    }

    /// The dump of a process in a folder, which is removed.
    fn take_dump(folder: &Path, pid: i32) -> Option<Vec<u8>> {
        let path = folder.join(format!("jit-{pid}.dump"));
        let bytes = fs::read(&path).ok()?;
        // It may be another's folder by now.
        _ = fs::remove_file(path);
        Some(bytes)
    }

    /// What `jitscribe dump -p` finds. `None` if it reports that there is no log.
    fn read(&self, pid: i32) -> Result<Option<Vec<u8>>, String> {
        let path = self.folder.join("read.dump");
        let mut dump = Command::new(&self.jitscribe);
        dump.args(["dump", "-p", &pid.to_string(), "--force", "--jitdump"]).arg(&path);
        let output = dump.output().expect("jitscribe");
        if output.status.success() {
            return Ok(Some(fs::read(&path).map_err(|error| error.to_string())?));
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_none = output.status.code() == Some(1);
        if is_none { Ok(None) } else { Err(format!("jitscribe: {}: {said}", output.status)) }
    }

    /// Compares what is found of a process that stands still.
    fn compare(
        &self,
        entry: Entry,
        dump: Option<&[u8]>,
        in_the_middle: u64,
    ) -> Result<Findings, String> {
        // Nothing to be read is right where nothing was taken.
        let is_empty = (0..SLOTS).all(|slot| entry.alive(slot) == 0);
        match dump {
            Some([]) | None if is_empty => Ok(Findings::default()),
            Some(dump) => check(dump, entry, in_the_middle),
            None => Err(format!("no log, and {} announcements were taken", entry.taken())),
        }
    }

    /// Kills processes at work, one after the other, and looks at what is left.
    fn kills(&mut self, name: &str, role: Role, folder: Option<&Path>, time: Duration) {
        let mut scene = Scene::default();
        let start = Instant::now();
        while start.elapsed() < time || scene.processes < 5 {
            let entry = self.truth.claim();
            let mut child = self.start(&role, folder, entry);
            let pid = child.id() as i32;
            let least = 1 + self.random(2_000);
            if !self.wait_for(name, || entry.taken() >= least || sys_is_gone(pid)) {
                child.kill().expect("ours");
            }
            std::thread::sleep(Duration::from_micros(self.random(3_000)));
            let dump = if folder.is_none() {
                sys::send(pid, libc::SIGSTOP);
                self.wait_for("stopping", || is_stopped(pid));
                self.read(pid)
            } else {
                Ok(None)
            };
            sys::send(pid, libc::SIGKILL);
            let status = child.wait().expect("ours");
            if status.signal() != Some(libc::SIGKILL) {
                self.failures.push(format!("{name}: it ended by itself: {status}"));
            }
            let dump = match folder {
                Some(folder) => Ok(Self::take_dump(folder, pid)),
                None => dump,
            };
            let found = dump.and_then(|dump| self.compare(entry, dump.as_deref(), THREADS as u64));
            scene.count(entry);
            self.judge(name, &mut scene, found);
            entry.free();
        }
        Self::row(name, &scene);
    }

    /// One process makes children all the time; each is looked at when it has done its part, and killed.
    fn forks(&mut self, name: &str, role: Role, folder: Option<&Path>, time: Duration) {
        let mut scene = Scene::default();
        let start = Instant::now();
        let mut rounds = 0;
        while start.elapsed() < time || rounds < 2 {
            rounds += 1;
            let parent = self.truth.claim();
            let mut child = self.start(&role, folder, parent);
            let round = Instant::now();
            let mut seen = 0;
            while seen < 5 || (round.elapsed() < time / 4 && start.elapsed() < time) {
                if round.elapsed() > PATIENCE {
                    self.failures.push(format!("hangs: {name}"));
                    break;
                }
                let done: Vec<Entry> =
                    self.truth.entries().filter(|entry| entry.state() == State::Done).collect();
                if done.is_empty() {
                    std::thread::sleep(Duration::from_micros(500));
                }
                for entry in done {
                    self.look_at_heir(name, &mut scene, folder, entry);
                    seen += 1;
                }
            }
            // The parent in the middle of forking, and then all that it made.
            sys::send(child.id() as i32, libc::SIGSTOP);
            self.wait_for("stopping", || is_stopped(child.id() as i32));
            let dump = if folder.is_none() { self.read(child.id() as i32) } else { Ok(None) };
            sys::send(child.id() as i32, libc::SIGKILL);
            child.wait().expect("ours");
            let dump = match folder {
                Some(folder) => Ok(Self::take_dump(folder, child.id() as i32)),
                None => dump,
            };
            let found = dump.and_then(|dump| self.compare(parent, dump.as_deref(), THREADS as u64));
            scene.count(parent);
            self.judge(name, &mut scene, found);
            // Children that were created and have not reported that they are done. A child begins by copying its parent's record, which stays until
            // then.
            let end = Instant::now() + PATIENCE;
            loop {
                let has_children = sys::forget_orphans();
                let is_child = |entry: &Entry| entry.number() != parent.number();
                let left: Vec<Entry> = (self.truth.entries().filter(is_child))
                    .filter(|entry| entry.state() != State::Free)
                    .collect();
                if left.is_empty() {
                    break;
                }
                for entry in left {
                    if entry.state() == State::Done {
                        self.look_at_heir(name, &mut scene, folder, entry);
                    } else if entry.pid() == 0 && !has_children {
                        // Claimed by a parent that did not come to fork. A child that was not yet given processor time would write to it.
                        entry.free();
                    }
                }
                if Instant::now() > end {
                    self.failures.push(format!("{name}: a child never came to its end"));
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            parent.free();
        }
        Self::row(name, &scene);
    }

    fn look_at_heir(&mut self, name: &str, scene: &mut Scene, folder: Option<&Path>, entry: Entry) {
        let pid = entry.pid();
        let dump = if folder.is_none() { self.read(pid) } else { Ok(None) };
        sys::send(pid, libc::SIGKILL);
        let dump = match folder {
            Some(folder) => Ok(Self::take_dump(folder, pid)),
            None => dump,
        };
        let found = dump.and_then(|dump| self.compare(entry, dump.as_deref(), 0));
        scene.count(entry);
        self.judge(name, scene, found);
        entry.free();
    }

    /// A process that announces so much, and then waits; or that is ended by the signal that it may be ended by.
    fn one(
        &mut self,
        name: &str,
        scene: &mut Scene,
        role: &Role,
        folder: Option<&Path>,
        may_end_by: Option<i32>,
    ) {
        let mut command = Command::new(std::env::current_exe().expect("a path"));
        self.one_by(&mut command, name, scene, role, folder, may_end_by);
    }

    fn one_by(
        &mut self,
        command: &mut Command,
        name: &str,
        scene: &mut Scene,
        role: &Role,
        folder: Option<&Path>,
        may_end_by: Option<i32>,
    ) {
        let entry = self.truth.claim();
        let mut child = self.start_by(command, role, folder, entry);
        let pid = child.id() as i32;
        let done = self.wait_for(name, || entry.state() == State::Done || sys_is_gone(pid));
        let mut dump = Ok(None);
        // If no file could be created, the log is in memory.
        let is_done = done && entry.state() == State::Done;
        let has_file = |folder: &&Path| {
            let file = fs::metadata(folder.join(format!("jit-{pid}.dump")));
            file.is_ok_and(|file| file.len() > 0)
        };
        let folder = folder.filter(|folder| !is_done || has_file(folder));
        if is_done && folder.is_none() {
            dump = self.read(pid);
        }
        let ended_before = sys_is_gone(pid);
        sys::send(pid, libc::SIGKILL);
        let status = child.wait().expect("ours");
        if ended_before && status.signal() != may_end_by {
            self.failures.push(format!("{name}: it ended by itself: {status}"));
        }
        if let Some(folder) = folder {
            dump = Ok(Self::take_dump(folder, pid));
        }
        // The log in memory of a process that was ended is gone with it.
        let found = if ended_before && folder.is_none() {
            Ok(Findings::default())
        } else {
            dump.and_then(|dump| self.compare(entry, dump.as_deref(), u64::from(ended_before)))
        };
        scene.count(entry);
        self.judge(name, scene, found);
        entry.free();
    }

    fn limits(&mut self) {
        for (name, what, values, as_nobody) in limits() {
            let mut scene = Scene::default();
            for &to in values {
                for late in [false, true] {
                    for folder in [None, Some(self.folder.clone())] {
                        // A file of root's, which another user cannot make.
                        if as_nobody && folder.is_some() && !late {
                            continue;
                        }
                        let under = Under::Limit { what, to, as_nobody };
                        let role = Role::Calls { many: 20_000, under, late };
                        let case = format!("{name} {to}, late: {late}, file: {}", folder.is_some());
                        self.one(&case, &mut scene, &role, folder.as_deref(), None);
                    }
                }
            }
            Self::row(name, &scene);
        }
    }

    fn full_disk(&mut self) {
        let name = "a full tmpfs";
        let Some(small) = self.small.clone() else {
            println!("{name:<40} left out: needs mount namespaces");
            return;
        };
        let mut scene = Scene::default();
        for _ in 0..10 {
            let role = Role::Calls { many: 50_000, under: Under::Nothing, late: false };
            self.one(name, &mut scene, &role, Some(&small), None);
        }
        if scene.refused == 0 {
            self.failures.push(format!("{name}: it was never full"));
        }
        Self::row(name, &scene);
    }

    /// A cgroup with less memory than the log may take.
    fn cgroup(&mut self) {
        let name = "a cgroup of 24 MiB";
        let Some(group) = Group::new("24M") else {
            println!("{name:<40} left out: no cgroup with a limit on memory can be made here");
            return;
        };
        let mut scene = Scene::default();
        for folder in [None, Some(self.folder.clone())] {
            for _ in 0..3 {
                let under = Under::Nothing;
                let role = Role::Calls { many: 200_000, under, late: false };
                let mut command = Command::new("sh");
                let procs = group.0.join("cgroup.procs");
                command.args(["-c", "echo $$ >\"$0\" && exec \"$@\""]).arg(&procs);
                command.arg(std::env::current_exe().expect("a path"));
                // The kernel may end it, as any other that takes too much.
                self.one_by(
                    &mut command,
                    name,
                    &mut scene,
                    &role,
                    folder.as_deref(),
                    Some(libc::SIGKILL),
                );
            }
        }
        Self::row(name, &scene);
    }

    fn seccomp(&mut self, time: Duration) {
        let start = Instant::now();
        let ways = [
            ("EPERM", Refusal::Error(libc::EPERM)),
            ("ENOSYS", Refusal::Error(libc::ENOSYS)),
            ("KILL", Refusal::Kill),
        ];
        // All are tried, if need be less often.
        let mut rounds = 0;
        let mut scenes: Vec<Scene> = ways.iter().map(|_| Scene::default()).collect();
        let mut killed = Vec::new();
        while rounds == 0 || (start.elapsed() < time && rounds < 20) {
            rounds += 1;
            for (scene, (way, how)) in scenes.iter_mut().zip(ways) {
                for &(call, number) in CALLS {
                    for late in [false, true] {
                        for folder in [None, Some(self.folder.clone())] {
                            let under = Under::Forbidden { call: number, how };
                            let role = Role::Calls { many: 3_000, under, late };
                            let case =
                                format!("{call} {way}, late: {late}, file: {}", folder.is_some());
                            let signal = (how == Refusal::Kill).then_some(libc::SIGSYS);
                            let before = scene.taken;
                            self.one(&case, scene, &role, folder.as_deref(), signal);
                            if how == Refusal::Kill
                                && scene.taken - before < 2_000
                                && !killed.contains(&call)
                            {
                                killed.push(call);
                            }
                        }
                    }
                }
            }
        }
        for (scene, (way, _)) in scenes.iter().zip(ways) {
            Self::row(&format!("each of {} system calls forbidden: {way}", CALLS.len()), scene);
        }
        println!(
            "system calls that the library cannot do without (KILL ended it): {}",
            killed.join(", ")
        );
        _ = self.truth.forks().load(SeqCst);
    }
}

/// A cgroup, removed when this is dropped.
struct Group(PathBuf);

impl Group {
    fn new(memory: &str) -> Option<Self> {
        // In version 2, the controller may have to be enabled; and in version 1.
        let name = format!("jitscribe-storm-{}", std::process::id());
        for (root, file) in
            [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")]
        {
            _ = fs::write(format!("{root}/cgroup.subtree_control"), "+memory");
            let group = Self(Path::new(root).join(&name));
            if fs::create_dir(&group.0).is_ok() && fs::write(group.0.join(file), memory).is_ok() {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The last of its processes may be on its way out.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The state letter of a process in `/proc`.
fn state_of(pid: i32) -> Option<u8> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    stat.get(end + 2).copied()
}

/// Whether it has ended and its parent has not waited for it.
fn sys_is_gone(pid: i32) -> bool {
    matches!(state_of(pid), None | Some(b'Z' | b'X'))
}

fn is_stopped(pid: i32) -> bool {
    matches!(state_of(pid), None | Some(b'T' | b't' | b'Z'))
}
