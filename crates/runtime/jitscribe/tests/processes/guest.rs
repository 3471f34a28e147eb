//! What the process does without knowing of the library: it closes descriptors, handles signals, forks, forbids itself
//! system calls, has several scribes.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use code_log::Source;
use jitscribe::{Code, Mode, Scribe, Subject};
use rustix::process::{Resource, getrlimit};

use crate::Test;
use crate::logs::{Mapped, loads, own_log, own_snapshot, player, shared_memory};
use crate::notices::listening;
use crate::sys;

pub const TESTS: &[Test] = &[
    ("a_host_that_closes_all_descriptors_keeps_its_files", closed_descriptors),
    ("a_log_that_cannot_grow_says_why", || succeeds(&["refused"])),
    ("a_code_larger_than_the_log_is_said_to_be", || succeeds(&["large"])),
    ("a_signal_handler_may_announce", signal_handlers),
    ("a_real_time_thread_waits_for_an_ordinary_one", || succeeds(&["real-time"])),
    ("memcheck_does_not_search_the_room_of_a_log", memcheck),
    ("two_scribes_have_two_dumps_of_perfs_name", || succeeds_in_a_folder("two-dumps")),
    ("the_environment_has_one_scribe", || succeeds(&["from-env"])),
    ("a_childs_dump_grows_without_its_descriptor", || succeeds_in_a_folder("child-dump")),
    ("a_child_without_a_log_leaves_its_parents_alone", || succeeds(&["orphan"])),
    ("each_system_call_may_be_forbidden", forbidden_calls),
];

/// No test that ends at all takes so long.
const LONG: Duration = Duration::from_secs(240);

/// Runs a scenario to its end, which it must come to.
fn run(arguments: &[&str]) -> ExitStatus {
    let mut child = player("guest", arguments).spawn().unwrap();
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > LONG {
            child.kill().unwrap();
            panic!("{arguments:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn succeeds(arguments: &[&str]) {
    let status = run(arguments);
    assert!(status.success(), "{arguments:?}: {status}");
}

fn succeeds_in_a_folder(scenario: &str) {
    let dir = tempfile::tempdir().unwrap();
    succeeds(&[scenario, dir.path().to_str().unwrap()]);
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub fn play(arguments: &[&str]) {
    match arguments {
        ["closed", kind, growth, dir] => close_and_announce(kind, growth, Path::new(dir)),
        ["refused"] => announce_without_descriptor(),
        ["large"] => announce_large(),
        ["handler", kind, dir] => announce_in_handlers(kind, Path::new(dir)),
        ["real-time"] => announce_in_real_time(),
        ["memcheck"] => {
            let scribe = Scribe::global();
            for n in 0..100 {
                scribe.load(&Code::at(0x1000 + n, 1).named("f")).leak();
            }
        }
        ["orphan"] => orphan(),
        ["child-dump", dir] => grow_a_childs_dump(Path::new(dir)),
        ["two-dumps", dir] => dump_twice(Path::new(dir)),
        ["from-env"] => {
            let (one, other) = (Scribe::global(), Scribe::global());
            let number = |scribe: Scribe| scribe.log_fd().unwrap().as_raw_fd();
            assert_eq!(number(one), number(other));
            let logs = || {
                let maps = fs::read_to_string("/proc/self/maps").unwrap();
                maps.lines().filter(|line| line.contains("memfd:jitscribe")).count()
            };
            let before = logs();
            let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(Scribe::global)).collect();
            threads.into_iter().for_each(|thread| drop(thread.join()));
            assert_eq!(logs(), before);
        }
        ["forbidden", name, how, when] => announce_without(name, how, when),
        _ => panic!("{arguments:?}"),
    }
}

/// The log of this process, found by its mapping alone. Of a dump, the marker is mapped as well.
fn own_log_in_memory(name: &str) -> Mapped {
    // The child of a fork may still have its parent's log mapped, on either side of its own.
    let pid = std::process::id();
    let mut logs = shared_memory("self", name);
    logs.retain(|log| code_log::snapshot(log).is_ok_and(|snapshot| snapshot.head.pid == pid));
    let [own] = <[Mapped; 1]>::try_from(logs).unwrap();
    own
}

/// How many codes a log has.
fn codes_in(source: &impl Source) -> usize {
    let snapshot = code_log::snapshot(source).unwrap();
    assert_eq!((snapshot.torn, snapshot.head.left_out), (0, 0));
    loads(&snapshot.bytes).count()
}

fn load(scribe: Scribe, count: u64) -> usize {
    let codes = (0..count).map(|n| Code::at(0x1000 + n, 1).named("a name of some length"));
    codes.filter(|code| scribe.load(code).into_raw() != 0).count()
}

/// A file of the host's, under all descriptors' numbers from 3 to 1100.
struct Precious {
    file: File,
    numbers: Vec<i32>,
}

const CONTENT: &[u8] = b"precious";

impl Precious {
    fn take_all_numbers() -> Self {
        sys::close_all_descriptors();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(CONTENT).unwrap();
        file.rewind().unwrap();
        let mut numbers = Vec::new();
        while numbers.last().is_none_or(|last| *last < 1_000) {
            // Kept for ever.
            let copy = OwnedFd::from(file.try_clone().unwrap());
            numbers.push(std::os::fd::IntoRawFd::into_raw_fd(copy));
        }
        Self { file, numbers }
    }

    fn assert_untouched(&self) {
        let ours = self.file.metadata().unwrap();
        assert_eq!(ours.len(), CONTENT.len() as u64);
        let mut content = [0; CONTENT.len()];
        self.file.read_exact_at(&mut content, 0).unwrap();
        assert_eq!(content, CONTENT);
        for number in &self.numbers {
            // SAFETY: the number is open, or the question fails; it is not closed.
            #[allow(unsafe_code)]
            let file = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(*number) });
            let found = file.metadata().unwrap();
            assert_eq!((found.dev(), found.ino()), (ours.dev(), ours.ino()), "{number}");
        }
    }
}

fn close_and_announce(kind: &str, growth: &str, dir: &Path) {
    if growth == "old" {
        // As before Linux 5.14: there is no way to have pages made by their mapping.
        sys::forbid(&[libc::SYS_madvise], libc::EINVAL);
    }
    let builder = Scribe::builder().limit(16 << 20);
    let builder = if kind == "file" { builder.jitdump(Mode::On).dir(dir) } else { builder };
    let (builder, heard) = listening(builder);
    let scribe = builder.build();
    let kept = heard.lock().unwrap().len();
    assert_eq!(load(scribe, 100), 100);
    let raised = getrlimit(Resource::Nofile).current;
    assert!(raised.is_none_or(|limit| limit > 1_100), "too few descriptors for this test");

    let precious = Precious::take_all_numbers();
    assert!(scribe.log_fd().is_none());
    assert_eq!(load(scribe, 50_000), 50_000);
    precious.assert_untouched();
    assert!(scribe.log_fd().is_none());
    let name = if kind == "file" { "jit-" } else { "memfd:jitscribe" };
    assert_eq!(codes_in(&own_log_in_memory(name)), 50_100);

    let Some(child) = sys::fork() else {
        assert_eq!(load(scribe, 50_000), 50_000);
        precious.assert_untouched();
        // From then on it has its parent's codes itself.
        assert_eq!(codes_in(&own_log_in_memory(name)), 100_100);
        let head = own_snapshot(scribe).head;
        sys::exit(i32::from(head.pid != std::process::id()));
    };
    assert_eq!(sys::wait_for(child), 0);
    // The parent's is as it was.
    assert_eq!(load(scribe, 100), 100);
    precious.assert_untouched();
    assert_eq!(codes_in(&own_log_in_memory(name)), 50_200);
    assert_eq!(heard.lock().unwrap().len(), kept, "{heard:?}");
}

fn closed_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    for kind in ["memory", "file"] {
        for growth in ["new", "old"] {
            if (kind, growth) == ("memory", "old") && !is_root() {
                println!("skipped: opening /proc/self/map_files needs CAP_CHECKPOINT_RESTORE");
                continue;
            }
            succeeds(&["closed", kind, growth, dir.path().to_str().unwrap()]);
        }
    }
}

/// Neither the kernel's help nor a descriptor nor the right to open the mapping: nothing is written anywhere.
fn announce_without_descriptor() {
    sys::forbid(&[libc::SYS_madvise], libc::EINVAL);
    let (builder, heard) = listening(Scribe::builder());
    let scribe = builder.build();
    load(scribe, 100);
    let precious = Precious::take_all_numbers();
    sys::forbid(&[libc::SYS_openat], libc::EACCES);
    let before = heard.lock().unwrap().len();
    let written = load(scribe, 50_000);
    assert!(written < 50_000, "{written}");
    let heard = heard.lock().unwrap();
    let [(subject, text)] = &heard[before..] else { panic!("{heard:?}") };
    assert_eq!(*subject, Subject::Full);
    assert!(text.contains("does not grow") && !text.contains("JITSCRIBE_LIMIT"), "{text}");
    precious.assert_untouched();
    load(scribe, 100);
}

fn announce_large() {
    let (builder, heard) = listening(Scribe::builder().limit(1 << 20));
    let scribe = builder.build();
    let name = "n".repeat(2 << 20);
    assert_eq!(scribe.load(&Code::at(0x1000, 1).named(&name)).into_raw(), 0);
    {
        let heard = heard.lock().unwrap();
        let [(Subject::Full, text)] = heard.as_slice() else { panic!("{heard:?}") };
        assert!(text.contains("more room than the code log may have"), "{text}");
    }
    // It is not full; the notice about that comes when it is.
    assert!(load(scribe, 20_000) < 20_000);
    let heard = heard.lock().unwrap();
    let [_, (Subject::Full, text)] = heard.as_slice() else { panic!("{heard:?}") };
    assert!(text.contains("is full"), "{text}");
}

static SCRIBE: OnceLock<Scribe> = OnceLock::new();
static CODE: [u8; 60_000] = [0xc3; 60_000];
static IN_HANDLERS: AtomicU64 = AtomicU64::new(0);
static FORKS: AtomicU64 = AtomicU64::new(0);
/// One of so many handlers forks; 0: none.
static FORK_EACH: AtomicU64 = AtomicU64::new(0);

fn announce(n: u64) {
    let Some(scribe) = SCRIBE.get() else { return };
    let size = 40 + (n * 7_919 % 50_000) as usize;
    let code = scribe.load(&Code::new(&CODE[..size]).named("function"));
    if n.is_multiple_of(3) { code.leak() } else { drop(code) }
}

extern "C" fn handler(_: libc::c_int) {
    let n = IN_HANDLERS.fetch_add(1, Relaxed);
    announce(n);
    let each = FORK_EACH.load(Relaxed);
    if each > 0 && n % each == each - 1 {
        FORKS.fetch_add(1, Relaxed);
        if sys::fork().is_none() {
            announce(n);
            // Two in three go on with what the handler interrupted.
            if n.is_multiple_of(3) {
                sys::exit(0);
            }
            FORK_EACH.store(0, Relaxed);
            sys::begin_alarms(handler, 0);
            IN_CHILD.store(1, Relaxed);
        }
    }
}

static IN_CHILD: AtomicU64 = AtomicU64::new(0);

fn announce_in_handlers(kind: &str, dir: &Path) {
    let builder = Scribe::builder().limit(2 << 20).bytes();
    let builder = match kind {
        "log" | "fork" => builder,
        "perf-map" => builder.perf_map(Mode::On).perf_map_dir(dir),
        "gdb" => builder.gdb(Mode::On),
        "unwinders" => builder.unwinders(Mode::On),
        "lean" => Scribe::builder().limit(1 << 20),
        _ => panic!("{kind}"),
    };
    SCRIBE.set(builder.build()).unwrap();
    FORK_EACH.store(if kind == "fork" { 50 } else { 0 }, Relaxed);
    sys::begin_alarms(handler, 53);
    // Until enough handlers have interrupted something: each of a thousand is at another place.
    let mut n = 0;
    while IN_HANDLERS.load(Relaxed) < 3_000 && IN_CHILD.load(Relaxed) == 0 {
        announce(n);
        n += 1;
        sys::reap();
    }
    sys::begin_alarms(handler, 0);
    for n in 0..100 {
        announce(n);
    }
    let scribe = SCRIBE.get().unwrap();
    let snapshot = own_snapshot(*scribe);
    let is_well = snapshot.torn == 0 && snapshot.head.pid == std::process::id();
    if IN_CHILD.load(Relaxed) != 0 {
        sys::exit(i32::from(!is_well));
    }
    assert!(is_well, "{} torn", snapshot.torn);
    assert_eq!(sys::failed_children(), 0);
    assert_eq!(FORKS.load(Relaxed) > 0, kind == "fork");
}

fn signal_handlers() {
    let dir = tempfile::tempdir().unwrap();
    for kind in ["log", "lean", "fork", "perf-map", "gdb", "unwinders"] {
        succeeds(&["handler", kind, dir.path().to_str().unwrap()]);
    }
}

/// The two are on one processor, where the ordinary thread runs while the other one sleeps, and is interrupted with what it
/// holds.
fn announce_in_real_time() {
    SCRIBE.set(Scribe::builder().limit(1 << 20).bytes().build()).unwrap();
    sys::stay_on_one_processor();
    let over = Arc::new(AtomicU64::new(0));
    let ends = over.clone();
    let ordinary = std::thread::spawn(move || {
        while ends.load(Relaxed) == 0 {
            announce(1);
        }
    });
    if !sys::become_real_time() {
        println!("skipped: SCHED_FIFO needs CAP_SYS_NICE");
        sys::exit(0);
    }
    let mut slow = 0;
    for n in 0..8_000 {
        std::thread::sleep(Duration::from_micros(200 + n % 200));
        let began = Instant::now();
        announce(n);
        // Who waits with the processor waits until the kernel throttles it: 950 ms.
        slow += u64::from(began.elapsed() > Duration::from_millis(400));
    }
    over.store(1, Relaxed);
    ordinary.join().unwrap();
    assert_eq!(slow, 0);
}

/// Page faults of memcheck with a log that may take so much.
fn faults(limit: &str) -> Option<i64> {
    let mut command = Command::new("valgrind");
    let player = player("guest", &["memcheck"]);
    command.args(["-q", "--tool=memcheck", "--leak-check=full"]);
    command.arg(player.get_program()).args(player.get_args());
    command.env("JITSCRIBE", "log,valgrind=off").env("JITSCRIBE_LIMIT", limit);
    let child = command.spawn().ok()?;
    let (status, faults) = sys::faults_of(child);
    assert_eq!(status, 0, "{limit}");
    Some(faults)
}

fn memcheck() {
    let Some(small) = faults("1M") else { return println!("skipped: needs valgrind") };
    let large = faults("1G").unwrap();
    // The log's table has a page for 4 MiB.
    assert!(large < small + 4_096, "{small} faults, and {large} with room for 1 GiB");
}

fn dump_twice(dir: &Path) {
    let make = || {
        let (builder, heard) = listening(Scribe::builder().jitdump(Mode::On).dir(dir));
        let scribe = builder.build();
        assert!(heard.lock().unwrap().is_empty(), "{heard:?}");
        scribe
    };
    let scribes = [make(), make(), make()];
    for (scribe, count) in scribes.iter().zip(1..) {
        load(*scribe, count);
    }
    let check = |more: u64| {
        let paths: Vec<PathBuf> = scribes.iter().map(|it| it.dump_path().unwrap()).collect();
        let name = format!("jit-{}.dump", std::process::id());
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        for (path, count) in paths.iter().zip(1..) {
            // What perf knows a dump by: its name, and that it is mapped executable.
            assert_eq!(path.file_name().unwrap(), &*name);
            let is_marker =
                |line: &&str| line.ends_with(path.to_str().unwrap()) && line.contains("r-xp");
            assert_eq!(maps.lines().filter(is_marker).count(), 1, "{path:?}");
            let codes = codes_in(&File::open(path).unwrap());
            assert_eq!(codes as u64, count + more);
        }
    };
    check(0);
    let Some(child) = sys::fork() else {
        for scribe in &scribes {
            load(*scribe, 1);
        }
        // A child keeps its parent's markers mapped, too.
        for (scribe, count) in scribes.iter().zip(1..) {
            let path = scribe.dump_path().unwrap();
            assert_eq!(codes_in(&File::open(path).unwrap()), count + 1);
        }
        sys::exit(0);
    };
    assert_eq!(sys::wait_for(child), 0);
    check(0);
}

/// Without a page that is cleared on fork, in a child that gets no log: neither the first announcement nor a later one goes to
/// the parent's.
fn orphan() {
    sys::forbid(&[libc::SYS_madvise], libc::EINVAL);
    let scribe = Scribe::builder().build();
    assert_eq!(load(scribe, 100), 100);
    let Some(child) = sys::fork() else {
        sys::forbid(&[libc::SYS_memfd_create], libc::EPERM);
        sys::exit(i32::from(load(scribe, 100) > 0));
    };
    assert_eq!(sys::wait_for(child), 0);
    assert_eq!(codes_in(&own_log(scribe)), 100);
}

/// The child's dump is not where its name would be, which is taken.
fn grow_a_childs_dump(dir: &Path) {
    let scribe = Scribe::builder().limit(16 << 20).jitdump(Mode::On).dir(dir).build();
    assert_eq!(load(scribe, 100), 100);
    let Some(child) = sys::fork() else {
        let name = format!("jit-{}.dump", std::process::id());
        fs::write(dir.join(&name), "").unwrap();
        assert_eq!(load(scribe, 100), 100);
        let path = scribe.dump_path().unwrap();
        assert_eq!(path, dir.join("2").join(name));
        sys::close_all_descriptors();
        assert_eq!(load(scribe, 50_000), 50_000);
        assert_eq!(codes_in(&File::open(path).unwrap()), 50_200);
        sys::exit(0);
    };
    assert_eq!(sys::wait_for(child), 0);
}

/// What becomes of announcements where a system call is forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// All are in the log.
    All,
    /// The log has some, and has counted the others; or there is no log.
    Fewer,
    /// The process is killed, as the filter requires.
    Killed,
}

use Outcome::{All, Fewer, Killed};

/// A system call, and what comes of it where it fails or kills: from before the scribe is made, from after that, and in a child
/// of a fork. `docs/design/guest.md` says the same.
type Call = (&'static str, i64, [Outcome; 3], [Outcome; 3]);

const CALLS: &[Call] = &[
    ("memfd_create", libc::SYS_memfd_create, [All, All, Fewer], [Killed, All, Killed]),
    ("ftruncate", libc::SYS_ftruncate, [All, All, Fewer], [Killed, All, Killed]),
    ("mmap", libc::SYS_mmap, [Fewer, All, Fewer], [Killed, All, Killed]),
    ("madvise", libc::SYS_madvise, [All, All, All], [Killed, Killed, Killed]),
    ("fcntl", libc::SYS_fcntl, [All, All, All], [Killed, All, Killed]),
    ("newfstatat", libc::SYS_newfstatat, [All, All, Fewer], [Killed, All, Killed]),
    ("close", libc::SYS_close, [All, All, All], [Killed, All, Killed]),
    ("prlimit64", libc::SYS_prlimit64, [All, All, All], [Killed, All, Killed]),
    ("getpid", libc::SYS_getpid, [All, All, All], [Killed, All, Killed]),
    ("gettid", libc::SYS_gettid, [All, All, All], [Killed, All, Killed]),
    ("rt_sigprocmask", libc::SYS_rt_sigprocmask, [All, All, All], [Killed, Killed, Killed]),
    ("openat", libc::SYS_openat, [All, All, All], [Killed, All, Killed]),
    ("statx", libc::SYS_statx, [All, All, All], [Killed, All, Killed]),
    ("read", libc::SYS_read, [All, All, All], [Killed, All, Killed]),
    ("dup3", libc::SYS_dup3, [All, All, All], [All, All, Killed]),
    ("fallocate", libc::SYS_fallocate, [All, All, All], [All, All, All]),
    ("pwrite64", libc::SYS_pwrite64, [All, All, All], [All, All, All]),
    ("clock_nanosleep", libc::SYS_clock_nanosleep, [All, All, All], [All, All, All]),
    ("sched_yield", libc::SYS_sched_yield, [All, All, All], [All, All, All]),
    ("futex", libc::SYS_futex, [All, All, All], [All, All, All]),
];

const TIMES: [&str; 3] = ["before", "after", "fork"];

fn announce_without(name: &str, how: &str, when: &str) {
    let number = CALLS.iter().find(|call| call.0 == name).unwrap().1;
    let forbid = || match how {
        "EPERM" => sys::forbid(&[number], libc::EPERM),
        "ENOSYS" => sys::forbid(&[number], libc::ENOSYS),
        _ => sys::forbid_to_live(number),
    };
    let make = || Scribe::builder().limit(4 << 20).build();
    // Thousands of codes: the log grows.
    let outcome = |scribe: Scribe| {
        let loaded = load(scribe, 5_000);
        if name == "getpid" {
            // By the process's number in it, readers know the log for one of the process that they look at.
            let number = fs::read_link("/proc/self").unwrap();
            let head = own_snapshot(scribe).head;
            assert_eq!(head.pid.to_string(), number.to_str().unwrap());
        }
        i32::from(loaded < 5_000)
    };
    let code = match when {
        "before" => {
            forbid();
            outcome(make())
        }
        "after" => {
            let scribe = make();
            load(scribe, 100);
            forbid();
            outcome(scribe)
        }
        _ => {
            let scribe = make();
            load(scribe, 100);
            let Some(child) = sys::fork() else {
                forbid();
                sys::exit(outcome(scribe));
            };
            let status = sys::wait_for(child);
            if libc::WIFSIGNALED(status) { 2 } else { libc::WEXITSTATUS(status) }
        }
    };
    sys::exit(code);
}

fn forbidden_calls() {
    use std::os::unix::process::ExitStatusExt;
    let mut wrong = Vec::new();
    for (name, _, failing, killing) in CALLS {
        for how in ["EPERM", "ENOSYS", "KILL"] {
            let expected = if how == "KILL" { killing } else { failing };
            for (when, expected) in TIMES.iter().zip(expected) {
                let status = run(&["forbidden", name, how, when]);
                let found = match (status.code(), status.signal()) {
                    (Some(0), _) => All,
                    (Some(1), _) => Fewer,
                    (Some(2), _) | (None, Some(libc::SIGSYS)) => Killed,
                    _ => panic!("{name} {how} {when}: {status}"),
                };
                if found != *expected {
                    wrong.push(format!("{name} {how} {when}: {found:?}, not {expected:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
