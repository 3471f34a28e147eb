//! Checks the log at every instant: the state in which a thread leaves it that is killed between
//! two stores.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use code_log::{Budget, Follower};
use jitdump::check::{Severity, check};
use jitdump::{CodeEvent, CodeLoad, Dump};

use super::layout::{CHUNK, FIRST_CHUNK, chunk};
use super::mapping::observe;
use super::{Log, LogOptions, Position};
use crate::clock::Clock;
use jit_code::{Code, Line};

/// Addresses that are certainly alive, and one that may be.
struct Expected {
    alive: Vec<u64>,
    perhaps: Vec<u64>,
    instants: u64,
    /// Readers that read only what has changed, and how often each of them reads: the seldom ones find many changes at once.
    followers: Vec<(Follower, u64)>,
}

impl Default for Expected {
    fn default() -> Self {
        let followers = [1, 7, 61, 1009].map(|every| (Follower::new(None), every)).into();
        Self { alive: Vec::new(), perhaps: Vec::new(), instants: 0, followers }
    }
}

/// To limit the cost, raw logs are checked at one of this many instants.
const CHECKED: u64 = 16;
/// A reader that reads at each instant has its result compared at one of this many.
const COMPARED: u64 = 5;

impl Expected {
    fn look(&mut self, bytes: &[u8]) {
        self.instants += 1;
        let snapshot = code_log::snapshot(&bytes).unwrap();
        assert_eq!(snapshot.torn, 0, "instant {}", self.instants);
        self.compare(&snapshot.bytes);
        self.follow(bytes, &snapshot.bytes);
        if self.instants.is_multiple_of(CHECKED) {
            // A tool without support for logs reads all of it.
            let findings = check(bytes).findings;
            let worst = findings.iter().find(|finding| finding.severity == Severity::Error);
            assert!(worst.is_none(), "instant {}: {worst:?}", self.instants);
            self.compare(bytes);
        }
    }

    /// What is found by reading only changes is what is found by reading everything.
    fn follow(&mut self, log: &[u8], snapshot: &[u8]) {
        let instant = self.instants;
        let due = self.followers.iter_mut().filter(|(_, every)| instant.is_multiple_of(*every));
        for (follower, every) in due {
            let update = follower.update(&log, Budget::default(), index_of).unwrap();
            assert_eq!((update.torn, update.is_cut), (0, false), "instant {instant}");
            // Comparing takes longer than reading.
            if *every == 1 && !instant.is_multiple_of(COMPARED) {
                continue;
            }
            let followed = follower.codes().map(|code| {
                let died = follower.died(&log, code).unwrap().expect("nothing has changed since");
                (code.address, code.loaded, u64::from(code.size), code.tag, died)
            });
            let mut followed: Vec<_> = followed.collect();
            followed.sort_unstable();
            assert_eq!(followed.len() as u64, follower.len());
            let mut all: Vec<_> = loads(snapshot)
                .map(|code| {
                    let died = code.died().unwrap_or(0);
                    (code.address, code.timestamp, code.size, code.index, died)
                })
                .collect();
            all.sort_unstable();
            // While the space of dead codes is being freed, some of them are gone already.
            let is_being_reused = is_being_reused(log);
            if is_being_reused {
                let is_dead = |(.., died): &(u64, u64, u64, u64, u64)| *died != 0;
                followed.retain(|code| !is_dead(code) || all.contains(code));
            }
            assert!(followed == all, "instant {instant}, every {every}: {followed:x?} of {all:x?}");
            // One of them, with everything that the log has of it.
            let number = usize::try_from(instant).unwrap() % follower.len().max(1) as usize;
            let Some(code) = follower.codes().nth(number) else { continue };
            let alone = follower.code(&log, code, 1 << 20).unwrap();
            let found = alone.as_deref().map(|alone| loads(alone).next().unwrap());
            let of_all = loads(snapshot).find(|all| all.index == code.tag);
            if is_being_reused && of_all.is_none() {
                continue;
            }
            let facts_of = |code: &Option<_>| code.as_ref().map(facts);
            assert_eq!(facts_of(&found), facts_of(&of_all), "instant {instant}");
        }
    }

    fn compare(&self, dump: &[u8]) {
        let events = Dump::parse(dump).unwrap().codes();
        let mut alive: Vec<u64> = events
            .filter_map(|event| match event.unwrap() {
                CodeEvent::Load(code) if code.died().is_none() => Some(code.address),
                _ => None,
            })
            .collect();
        alive.sort_unstable();
        let count = alive.len();
        alive.dedup();
        assert_eq!(alive.len(), count, "twice at instant {}", self.instants);
        alive.retain(|address| !self.perhaps.contains(address));
        assert!(alive == self.alive, "instant {}: {alive:x?} of {:x?}", self.instants, self.alive);
    }
}

fn loads(dump: &[u8]) -> impl Iterator<Item = CodeLoad<'_>> {
    Dump::parse(dump).unwrap().codes().filter_map(|event| match event.unwrap() {
        CodeEvent::Load(code) => Some(code),
        _ => None,
    })
}

/// Whether the space of dead codes is being freed in a chunk.
fn is_being_reused(log: &[u8]) -> bool {
    let chunks = log.get(FIRST_CHUNK..).unwrap().chunks(CHUNK);
    let mut epochs = chunks.map(|chunk| chunk[chunk::EPOCH..].first_chunk().unwrap());
    epochs.any(|epoch| u64::from_ne_bytes(*epoch) % 2 == 1)
}

/// Finds a code again, whatever is at its address.
fn index_of(dump: &[u8]) -> u64 {
    let mut codes = loads(dump);
    let code = codes.next().unwrap();
    assert!(codes.next().is_none());
    code.index
}

/// What is the same wherever in a dump the code is.
fn facts(code: &CodeLoad<'_>) -> String {
    let lines: Vec<u64> = code.lines().map(|line| line.address).collect();
    let place = (code.address, code.timestamp, code.size, code.died());
    format!("{:?}", (place, code.name, code.bytes, lines))
}

struct Test {
    log: Log,
    with_bytes: bool,
    expected: Rc<RefCell<Expected>>,
    handles: BTreeMap<u64, (Position, u32)>,
    bytes: Vec<u8>,
}

impl Test {
    fn new(chunks: usize, with_bytes: bool) -> Self {
        let limit = FIRST_CHUNK + chunks * CHUNK;
        let options =
            LogOptions { file: None, limit, control: 1, reuse: true, clock: Clock::Monotonic };
        let log = Log::create(options, |failure, _| panic!("{failure}")).unwrap();
        // The observer reads all of it. Growing the file gives no chunk to anyone.
        log.mapping.have(&log.backing, 0, limit).unwrap();
        Self {
            log,
            with_bytes,
            expected: Rc::default(),
            handles: BTreeMap::new(),
            bytes: (0..200_000_u32).map(|n| n as u8).collect(),
        }
    }

    fn observed<T>(&self, perhaps: &[u64], action: impl FnOnce(&Log) -> T) -> T {
        {
            let mut expected = self.expected.borrow_mut();
            expected.perhaps = perhaps.to_vec();
            expected.alive =
                self.handles.keys().copied().filter(|known| !perhaps.contains(known)).collect();
        }
        let expected = self.expected.clone();
        let mut result = None;
        observe::during(
            move |bytes| expected.borrow_mut().look(bytes),
            || result = Some(action(&self.log)),
        );
        result.unwrap()
    }

    fn load(&mut self, address: u64, size: usize) -> bool {
        let name = format!("code {address:x}");
        let lines = [1, 2].map(|line| Line::new(line, "f", line));
        let code = Code::new(&self.bytes[..size]).runs_at(address).named(&name).lines(&lines);
        let with_bytes = self.with_bytes;
        let handle = self.observed(&[address], |log| log.load(&code, with_bytes, 1));
        if let Some(handle) = handle {
            self.handles.insert(address, handle);
        }
        handle.is_some()
    }

    fn unload(&mut self, address: u64) {
        let (position, index) = self.handles[&address];
        self.observed(&[address], |log| log.end(log.living(position, index).unwrap()));
        self.handles.remove(&address);
    }

    fn moved(&mut self, from: u64, to: u64) {
        let (position, index) = self.handles[&from];
        let new = self.observed(&[from, to], |log| {
            let new = log.move_to(position, index, to, None, 1);
            log.end(log.living(position, index).unwrap());
            new
        });
        self.handles.remove(&from);
        if let Some(handle) = new {
            self.handles.insert(to, handle);
        }
    }

    /// Returns the number of instants that were checked.
    fn finish(self) -> u64 {
        self.observed(&[], |log| {
            log.mapping.word(0).load(Relaxed);
        });
        let instants = self.expected.borrow().instants;
        // Frees lanes, chunks and the mapping: this log is not used any more.
        drop(self.log);
        instants
    }
}

#[test]
fn a_kill_during_an_announcement_loses_only_that_code() {
    for with_bytes in [false, true] {
        let mut test = Test::new(2, with_bytes);
        for n in 1..30_u64 {
            assert!(test.load(n << 20, 100 + n as usize));
            if n % 3 == 0 {
                test.unload((n - 1) << 20);
            }
            if n % 3 == 1 {
                test.moved(n << 20, (n + 100) << 20);
            }
        }
        assert!(test.finish() > 500);
    }
}

#[test]
fn a_kill_during_reuse_keeps_all_live_code() {
    for with_bytes in [false, true] {
        let mut test = Test::new(2, with_bytes);
        let size = if with_bytes { 9_000 } else { 100 };
        let mut next = 0;
        // Names are short, and codes large: with bytes a chunk holds few, without bytes it holds
        // many.
        for round in 0..3 {
            let before = next;
            while test.handles.len() < if with_bytes { 12 } else { 700 } {
                next += 1;
                if !with_bytes && next % 100 != 0 {
                    // Only the changes of chunks matter here.
                    let code = Code::at(next << 20, size as u64).named("code");
                    let Some(handle) = test.log.load(&code, false, 1) else { break };
                    test.handles.insert(next << 20, handle);
                } else if !test.load(next << 20, size) {
                    break;
                }
            }
            assert!(next > before, "round {round}");
            let doomed: Vec<u64> = test.handles.keys().copied().collect();
            for (n, address) in doomed.into_iter().enumerate() {
                if n % 4 != round {
                    test.unload(address);
                }
            }
        }
        test.finish();
    }
}

#[test]
fn a_kill_while_chunks_are_joined_or_split_keeps_all_live_code() {
    let mut test = Test::new(5, true);
    assert!(test.load(1 << 20, 1_000));
    // A run of three, which dies, becomes single chunks, which die, and are joined again.
    assert!(test.load(2 << 20, 150_000));
    assert!(test.load(3 << 20, 50_000));
    for round in 0..3_u64 {
        let base = (100 * (round + 1)) << 20;
        test.unload(if round == 0 { 2 << 20 } else { (base - (100 << 20)) + (90 << 20) });
        let mut small = Vec::new();
        for n in 0..12 {
            let address = base + (n << 20);
            if test.load(address, 12_000) {
                small.push(address);
            }
        }
        assert!(small.len() > 8, "{} in round {round}", small.len());
        for address in small {
            test.unload(address);
        }
        assert!(test.load(base + (90 << 20), 120_000), "round {round}");
    }
    assert!(test.finish() > 500);
}

#[test]
fn a_kill_between_a_record_and_its_tail_loses_no_later_code() {
    // A reused chunk, with free space in front of a live code.
    let mut test = Test::new(1, true);
    let mut last = 0;
    for n in 1.. {
        if !test.load(n << 20, 5_001) {
            break;
        }
        last = n;
    }
    for n in 2..last {
        test.unload(n << 20);
    }
    // RETRY_AFTER announcements pass before the next search for space.
    let found = (0..200).any(|n| test.load((1_000 + n) << 20, 3_003));
    assert!(found && test.handles.contains_key(&(last << 20)));
    test.finish();
}

/// The head of a chunk, and the first words of what follows.
const CHUNK_HEAD: usize = 64 + 40;

/// The child of a fork, as one process: what it has of its own is another log all the same.
#[test]
fn a_kill_while_inherited_codes_are_copied_loses_none() {
    for first in [Some(200), None, Some(150_000)] {
        let mut test = Test::new(12, true);
        // The first chunk begins with a code, with a filler, or with a code that is larger than a chunk.
        let sizes = first.into_iter().chain(std::iter::repeat_n(3_000, 60));
        for (n, size) in (1..).zip(sizes) {
            assert!(test.load(n << 20, size));
        }
        if first.is_none() {
            test.unload(1 << 20);
        }
        for n in (4..50).step_by(3) {
            test.unload(n << 20);
        }
        let limit = test.log.mapping.size();
        test.log.adopt(99, true).unwrap();
        // The observer reads all of it.
        test.log.mapping.have(&test.log.backing, 0, limit).unwrap();
        let own = Code::at(1 << 40, 100).named("the child's own");
        assert!(test.log.load(&own, true, 1).is_some());

        let inherited: Vec<u64> = test.handles.keys().copied().collect();
        let look = move |bytes: &[u8]| {
            let snapshot = code_log::snapshot(&bytes).unwrap();
            assert_eq!(snapshot.torn, 0);
            let dump = Dump::parse(&snapshot.bytes).unwrap();
            let mut alive: Vec<u64> = dump
                .codes()
                .map(|event| match event.unwrap() {
                    CodeEvent::Load(code) if code.died().is_none() => code.address,
                    _ => panic!("a code that died before the fork"),
                })
                .collect();
            alive.sort_unstable();
            assert_eq!(alive.pop(), Some(1 << 40));
            // Until the last step, readers find all of them in the parent's log.
            let is_shared = snapshot.head.inherited.is_some();
            let is_part = is_shared && alive.iter().all(|code| inherited.contains(code));
            assert!(alive == inherited || is_part, "{} of {}", alive.len(), inherited.len());
            assert!(check(bytes).findings.iter().all(|one| one.severity != Severity::Error));
        };
        let done = Rc::new(RefCell::new(0));
        let count = done.clone();
        let mut last = None;
        observe::during(
            move |bytes| {
                // Not the second mapping of the parent's.
                if bytes.len() < limit {
                    return;
                }
                *count.borrow_mut() += 1;
                // Most instants are stores behind the filler that covers everything. Looked at are some of these, and all at
                // which what readers walk over changes.
                let head = bytes[FIRST_CHUNK..][..CHUNK_HEAD].to_vec();
                let has_changed = last.replace(head.clone()) != Some(head);
                if has_changed || *count.borrow() % 97 == 0 {
                    look(bytes);
                }
            },
            || assert!(test.log.copy_inherited()),
        );
        assert!(*done.borrow() > 500);
        for (address, (position, index)) in &test.handles {
            let living = test.log.living(*position, *index);
            assert!(living.is_some(), "{address:x}");
        }
        test.handles.insert(1 << 40, (Position::new(1).unwrap(), 0));
        // From here on, it is a log like any other.
        assert!(test.load(1 << 41, 3_000));
        test.unload(2 << 20);
        test.finish();
    }
}
