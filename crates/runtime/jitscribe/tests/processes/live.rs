//! A process without rights, confined, that announces 100,000 functions a second, read from outside by its own
//! user: what it had announced, and what had not died, is in each snapshot once, and whole.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use jitscribe::Scribe;

use crate::Test;
use crate::logs::{log_of_pid, wait_until};
use crate::roster::{Hand, Phase, Roster, THREADS, WORDS, compare};
use crate::stress::Random;
use crate::sys::{self, Shared};

pub const TESTS: &[Test] = &[("a_confined_process_is_read_while_it_announces", confined)];

/// Two threads, each with half of it: every second act is a load.
const ACTS_A_SECOND: u64 = 200_000;
const SECONDS: u64 = 3;
/// Rows of slots that each of the two threads has.
const ROWS: usize = THREADS / 2;
/// What a hardened service has no more once it is running.
const FORBIDDEN: &[i64] = &[
    libc::SYS_openat,
    libc::SYS_execve,
    libc::SYS_socket,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_kill,
    libc::SYS_memfd_create,
    libc::SYS_mprotect,
];

fn confined() {
    // A copy that other users can run, wherever this one is.
    let dir = tempfile::TempDir::new().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("processes");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let (shared, fd) = Shared::new(WORDS);
    let roster = Roster(shared);
    let mut announcer =
        as_nobody(&program).args(["role:announcer", "announce", &fd.to_string()]).spawn().unwrap();
    wait_until("the first codes", || roster.is_ready());
    let (pid, fd) = (announcer.id().to_string(), fd.to_string());
    let looked = as_nobody(&program).args(["role:announcer", "look", &fd, &pid]).status().unwrap();
    announcer.kill().unwrap();
    announcer.wait().unwrap();
    assert!(looked.success(), "{looked}");
}

fn as_nobody(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    let to = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs"];
    command.args(to).arg(program);
    command
}

pub fn play(arguments: &[&str]) {
    match arguments {
        ["announce", fd] => announce(Roster(Shared::open(fd.parse().unwrap(), WORDS))),
        ["look", fd, pid] => {
            look(Roster(Shared::open(fd.parse().unwrap(), WORDS)), pid.parse().unwrap());
        }
        _ => panic!("{arguments:?}"),
    }
}

fn announce(roster: Roster) {
    // Space for some seconds of it: then the space of dead code is reused.
    let scribe = Scribe::builder().limit(8 << 20).build();
    let run = |thread: usize| {
        // Most of it comes and goes in one row of slots; what is in the others lives for half a second.
        let rows = thread * ROWS..(thread + 1) * ROWS;
        let mut hands: Vec<Hand> = rows.map(|row| Hand::new(roster, scribe, row, false)).collect();
        let mut random = Random(thread as u64 + 77);
        for _ in 0..20_000 {
            hands[random.next() as usize % ROWS].act(random.next());
        }
        if thread == 0 {
            roster.set_ready();
        }
        let start = Instant::now();
        for done in 0_u64.. {
            let row = if random.next().is_multiple_of(100) {
                1 + random.next() as usize % (ROWS - 1)
            } else {
                0
            };
            hands[row].act(random.next());
            if done.is_multiple_of(100) {
                let due = Duration::from_micros(done * 2_000_000 / ACTS_A_SECOND);
                std::thread::sleep(due.saturating_sub(start.elapsed()));
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(1));
        scope.spawn(|| {
            // For this thread, which announces, and for what it would start.
            sys::forbid(FORBIDDEN, libc::EPERM);
            assert!(File::open("/proc/self/maps").is_err());
            run(0);
        });
    });
}

fn look(roster: Roster, pid: u32) {
    let log = log_of_pid(pid);
    let (start, acts_before) = (Instant::now(), roster.total());
    let mut looks = 0;
    // On a busy machine, ten take longer.
    while looks < 10 || start.elapsed() < Duration::from_secs(SECONDS) {
        let before = roster.slots();
        let snapshot = code_log::snapshot(&log).unwrap();
        let after = roster.slots();
        assert_eq!((snapshot.torn, snapshot.head.left_out), (0, 0));
        let stable = before.iter().zip(&after).filter(|(before, after)| before == after);
        let lived = stable.filter(|(slot, _)| slot.phase == Phase::Live).count();
        assert_eq!(compare(&snapshot.bytes, &before, &after, false, |_| false), Ok(0));
        // The comparison does not cover codes that changed during the snapshot.
        assert!(lived > before.len() / 4, "{lived}");
        looks += 1;
    }
    let acts = (roster.total() - acts_before) as f64 / start.elapsed().as_secs_f64();
    println!("{looks} snapshots, {:.0} announcements a second", acts / 2.0);
}
