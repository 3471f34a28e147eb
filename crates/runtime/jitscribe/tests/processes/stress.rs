//! 16 threads that load, move and unload; forks, and SIGKILL at random moments. What was committed is in the
//! log, whole, and nothing else is.

use std::fs::File;
use std::process::Child;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use jitscribe::{Code, LoadedCode, Scribe};

use crate::Test;
use crate::logs::{bytes_of, errors_in, loads, log_of, own_log, own_snapshot, player, wait_until};
use crate::roster::{Hand, Roster, SLOTS, Slot, THREADS, WORDS, compare};
use crate::sys::{self, Shared};

pub const TESTS: &[Test] = &[
    ("stress_of_threads_forks_and_kills", stress),
    ("a_child_starts_with_what_was_alive_whatever_its_parent_did_since", late_child),
    ("a_child_copies_what_it_inherits_before_the_parents_log_is_full", copy_in_time),
];

/// A small generator of numbers that look random: xorshift.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn stress() {
    let wanted = std::env::var("JITSCRIBE_STRESS_OPS").ok().and_then(|n| n.parse().ok());
    let wanted: u64 = wanted.unwrap_or(1_000_000);
    let seed = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 | 1;
    println!("seed {seed}");
    let mut random = Random(seed);
    let (mut total, mut kills, mut forks, mut looks) = (0, 0, 0, 0);
    // On a slow machine a round has few forks.
    while total < wanted || kills < 20 || (forks <= 20 && kills < 200) {
        let round = Round::new(kills, &mut random);
        looks += round.run(&mut random);
        total += round.roster.total();
        forks += round.roster.forks();
        kills += 1;
    }
    println!(
        "{total} loads, moves and unloads, {kills} kills, {forks} forks, {looks} looks at running processes"
    );
    assert!(forks > 20);
}

struct Round {
    roster: Roster,
    with_bytes: bool,
    arguments: Vec<String>,
}

impl Round {
    fn new(number: u64, random: &mut Random) -> Self {
        let (shared, fd) = Shared::new(WORDS);
        let with_bytes = number % 2 == 1;
        // Room for what lives and half as much, or plenty.
        let limit = if number.is_multiple_of(3) { 16 << 20 } else { 3 << 20 };
        let arguments =
            [fd as u64, random.next(), u64::from(with_bytes), limit].map(|n| n.to_string());
        Self { roster: Roster(shared), with_bytes, arguments: arguments.to_vec() }
    }

    fn run(&self, random: &mut Random) -> u64 {
        let roster = self.roster;
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let child = Worker(player("worker", &arguments).spawn().unwrap());
        wait_until("the worker's first codes", || roster.is_ready());
        let log = log_of(&child.0);
        let end = Instant::now() + Duration::from_millis(100 + random.next() % 600);
        let mut looks = 0;
        while Instant::now() < end {
            // A reader that gets no processor finds a chunk changed each time that it reads it, and gives up. It is damage if
            // that does not pass.
            let (before, snapshot, after) = (0..100)
                .map(|_| (roster.slots(), code_log::snapshot(&log).unwrap(), roster.slots()))
                .find(|(_, snapshot, _)| snapshot.torn == 0)
                .expect("a chunk that can be read");
            self.compare(&snapshot.bytes, &before, &after);
            looks += 1;
            std::thread::sleep(Duration::from_millis(random.next() % 50));
        }
        drop(child);
        self.after(&log);
        assert_eq!(roster.errors(), 0, "children of forks found errors");
        looks
    }

    fn compare(&self, dump: &[u8], before: &[Slot], after: &[Slot]) {
        match compare(dump, before, after, self.with_bytes, |_| false) {
            Ok(missing) => assert_eq!(missing, 0, "missing from {:?}", self.arguments),
            Err(error) => panic!("{error}, {:?}", self.arguments),
        }
    }

    /// The process is dead: nothing changes any more.
    fn after(&self, log: &File) {
        let slots = self.roster.slots();
        let snapshot = code_log::snapshot(log).unwrap();
        assert_eq!(snapshot.torn, 0);
        self.compare(&snapshot.bytes, &slots, &slots);
        let raw = bytes_of(log);
        self.compare(&raw, &slots, &slots);
        for dump in [&snapshot.bytes, &raw] {
            let errors = errors_in(dump);
            assert!(errors.is_empty(), "{errors:?}");
        }
        // Each thread may have counted one that it had not noted yet.
        let (told, noted) = (snapshot.head.left_out, self.roster.left_out());
        assert!((noted..=noted + THREADS as u64).contains(&told), "{told} left out, {noted} noted");
    }
}

/// Killed also if the test fails.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The process that is killed.
pub fn worker(arguments: &[&str]) {
    let numbers: Vec<u64> = arguments.iter().map(|argument| argument.parse().unwrap()).collect();
    let [fd, seed, with_bytes, limit] = numbers[..] else { panic!("{arguments:?}") };
    let roster = Roster(Shared::open(fd as i32, WORDS));
    let with_bytes = with_bytes != 0;
    let scribe = Scribe::builder().limit(limit as usize);
    let scribe = if with_bytes { scribe.bytes() } else { scribe }.build();
    let run = |thread: usize| {
        let mut hand = Hand::new(roster, scribe, thread, with_bytes);
        let mut random = Random(seed ^ (thread as u64 + 1) << 32 | 1);
        loop {
            hand.act(random.next());
            if random.next().is_multiple_of(20_000) {
                fork(&mut hand);
            }
            if thread == 0 {
                roster.set_ready();
            }
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || run(thread));
        }
    });
}

/// Forks; the child compares its log with what there was, and uses handles from before.
fn fork(hand: &mut Hand) {
    // The slots after the fork, for the child; the first word is set when they are complete.
    let told = Shared::anonymous(1 + THREADS * SLOTS);
    let before = hand.roster.slots();
    let parent = std::process::id();
    let Some(pid) = sys::fork() else {
        let start = Instant::now();
        while told.word(0).load(SeqCst) == 0 {
            // Its parent may have been killed before it could write them.
            if start.elapsed() > Duration::from_secs(5) {
                sys::exit(0);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let after = (1..=THREADS * SLOTS).map(|at| Slot::from_word(told.word(at).load(SeqCst)));
        let after: Vec<Slot> = after.collect();
        if let Err(error) = child(hand, parent, &before, &after) {
            hand.roster.add_error();
            sys::complain(&format!("child of a fork: {error}\n"));
        }
        sys::exit(0);
    };
    for (at, slot) in hand.roster.slots().into_iter().enumerate() {
        told.word(1 + at).store(slot.word(), SeqCst);
    }
    told.word(0).store(1, SeqCst);
    sys::wait_for(pid);
    hand.roster.add_fork();
}

fn child(hand: &mut Hand, parent: u32, before: &[Slot], after: &[Slot]) -> Result<(), String> {
    let scribe = hand.scribe;
    let of_child = |name: &[u8]| name == b"child";
    let mark = scribe.load(&Code::at(0x1000, 16).named("child"));
    let look = || {
        let fd = scribe.log_fd().ok_or("no log")?.try_clone_to_owned();
        let file = File::from(fd.map_err(|error| error.to_string())?);
        code_log::snapshot(&file).map_err(|error| error.to_string())
    };
    let snapshot = look()?;
    let head = snapshot.head;
    if (head.pid, head.parent, snapshot.torn) != (std::process::id(), parent, 0) {
        return Err(format!("{head:?}, {} torn", snapshot.torn));
    }
    let missing = compare(&snapshot.bytes, before, after, hand.with_bytes, of_child)?;
    if missing > head.left_out {
        return Err(format!("{missing} missing, {} said to be", head.left_out));
    }
    let errors = errors_in(&snapshot.bytes);
    if !errors.is_empty() {
        return Err(format!("{errors:?}"));
    }
    // Handles from before the fork are as good here, and what is done with them stays here: the roster is the
    // parent's, so what this does is not noted.
    let mut expected = before.to_vec();
    let mut expected_after = after.to_vec();
    for (slot, (_, raw)) in hand.slots.iter().enumerate() {
        if *raw != 0 {
            drop(LoadedCode::from_raw(scribe, *raw));
            for slots in [&mut expected, &mut expected_after] {
                slots[hand.thread * SLOTS + slot].phase = crate::roster::Phase::Empty;
            }
        }
    }
    for n in 0..2_000 {
        drop(scribe.load(&Code::at(0x2000 + n, 1).named("child")));
    }
    let snapshot = look()?;
    compare(&snapshot.bytes, &expected, &expected_after, hand.with_bytes, of_child)?;
    drop(mark);
    Ok(())
}

/// The child announces for the first time when its parent has unloaded, moved and loaded as much again as there was.
fn late_child() {
    let (shared, _fd) = Shared::new(WORDS);
    let roster = Roster(shared);
    for with_bytes in [false, true] {
        let scribe = Scribe::builder();
        let scribe = if with_bytes { scribe.bytes() } else { scribe }.build();
        let mut hand = Hand::new(roster, scribe, 0, with_bytes);
        let mut random = Random(4711);
        (0..1_000).for_each(|_| hand.act(random.next()));
        let before = roster.slots();
        let parent = std::process::id();
        let told = Shared::anonymous(1);
        let Some(pid) = sys::fork() else {
            told.wait_for(1);
            let result = child(&mut hand, parent, &before, &before);
            let left_out = own_snapshot(scribe).head.left_out;
            if result.is_err() || left_out > 0 {
                sys::complain(&format!("{result:?}, {left_out} left out\n"));
            }
            sys::exit(i32::from(result.is_err() || left_out > 0));
        };
        (0..1_000).for_each(|_| hand.act(random.next()));
        let after = roster.slots();
        told.word(0).store(1, SeqCst);
        assert_eq!(sys::wait_for(pid), 0);
        // Nothing of the child is in its parent's log.
        let snapshot = own_snapshot(scribe);
        assert_eq!(compare(&snapshot.bytes, &after, &after, with_bytes, |_| false), Ok(0));
        (0..SLOTS).for_each(|slot| hand.unload(slot));
    }
}

/// The child shares its parent's log. It copies the codes when it announces more, before the parent's log is full and its space
/// is reused; until then, the parent keeps its dead codes.
fn copy_in_time() {
    const LIMIT: usize = 4 << 20;
    const OLD: u64 = 2_000;
    let scribe = Scribe::builder().limit(LIMIT).build();
    let load = |n: u64| {
        let code = scribe.load(&Code::at(n << 12, 64).named("a name of some length"));
        assert!(!code.is_stale());
        code
    };
    let alive = |file: &File| {
        let snapshot = code_log::snapshot(file).unwrap();
        let alive = loads(&snapshot.bytes).filter(|code| code.died().is_none());
        let mut alive: Vec<u64> = alive.map(|code| code.address >> 12).collect();
        alive.sort_unstable();
        (alive, snapshot.head)
    };
    let size_of = |head: code_log::Head| head.chunks as usize * head.chunk_size as usize;
    let inherited: Vec<_> = (1..=OLD).map(load).collect();
    let told = Shared::anonymous(2);
    let parent = own_log(scribe);
    let Some(pid) = sys::fork() else {
        load(OLD + 1).leak();
        let number = jitscribe::binding::log_fd_number(&scribe).unwrap();
        let own = File::open(format!("/proc/self/fd/{number}")).unwrap();
        let (found, head) = alive(&own);
        let is_shared = found == [OLD + 1] && head.inherited.is_some();
        told.word(0).store(1, SeqCst);
        told.wait_for(2);
        // More than a chunk.
        (OLD + 2..OLD + 1_002).for_each(|n| load(n).leak());
        let (found, head) = alive(&own);
        let is_copied = found == (1..OLD + 1_002).collect::<Vec<_>>() && head.inherited.is_none();
        told.word(0).store(3, SeqCst);
        let faults = [!is_shared, !is_copied, head.left_out > 0].map(i32::from);
        sys::exit(faults[0] | faults[1] << 1 | faults[2] << 2);
    };
    told.wait_for(1);
    drop(inherited);
    // Three quarters of the limit; without a child, the space of the dead would be reused from one quarter on.
    while size_of(alive(&parent).1) < LIMIT / 4 * 3 {
        (0..1_000).for_each(|n| drop(load(n + 10 * OLD)));
    }
    told.word(0).store(2, SeqCst);
    told.wait_for(3);
    assert_eq!(sys::wait_for(pid), 0);
    // The parent goes on in the limit.
    (0..100_000).for_each(|n| drop(load(n + 10 * OLD)));
    let (found, head) = alive(&parent);
    assert_eq!((found.len(), head.left_out), (0, 0));
}
