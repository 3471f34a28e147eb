//! Checks the log at every instant: the state in which a thread leaves it that is killed between
//! two stores.

use std::cell::RefCell;
use std::rc::Rc;

use code_log::{Budget, Follower};
use jitdump::check::{Severity, check};
use jitdump::{CodeEvent, CodeLoad, Dump};

use super::layout::{CHUNK, FIRST_CHUNK, chunk};
use super::mapping::observe;
use super::observed::{self, Instant, Known, Observed, Observer};
use jit_code::Code;

/// A reader outside of the process.
struct Outsider {
    /// Readers that read only what has changed, and how often each of them reads: the seldom ones find many changes at once.
    followers: Vec<(Follower, u64)>,
}

impl Default for Outsider {
    fn default() -> Self {
        Self { followers: [1, 7, 61, 1009].map(|every| (Follower::new(None), every)).into() }
    }
}

/// To limit the cost, raw logs are checked at one of this many instants.
const CHECKED: u64 = 16;
/// A reader that reads at each instant has its result compared at one of this many.
const COMPARED: u64 = 5;

impl Observer for Outsider {
    fn look(&mut self, instant: &Instant<'_>) {
        let &Instant { number, bytes, .. } = instant;
        let snapshot = code_log::snapshot(&bytes).unwrap();
        assert_eq!(snapshot.torn, 0, "instant {number}");
        compare(&snapshot.bytes, instant);
        self.follow(bytes, &snapshot.bytes, number);
        if number.is_multiple_of(CHECKED) {
            // A tool without support for logs reads all of it.
            let findings = check(bytes).findings;
            let worst = findings.iter().find(|finding| finding.severity == Severity::Error);
            assert!(worst.is_none(), "instant {number}: {worst:?}");
            compare(bytes, instant);
        }
    }
}

impl Outsider {
    /// What is found by reading only changes is what is found by reading everything.
    fn follow(&mut self, log: &[u8], snapshot: &[u8], instant: u64) {
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
}

/// The codes that are certainly alive are in the dump, once, and no others but those that may be.
fn compare(dump: &[u8], instant: &Instant<'_>) {
    let mut found = living(dump);
    let count = found.len();
    found.dedup();
    assert_eq!(found.len(), count, "twice at instant {}", instant.number);
    let addresses = |codes: &[Known]| codes.iter().map(|code| code.address).collect::<Vec<_>>();
    let (alive, perhaps) = (addresses(instant.alive), addresses(instant.perhaps));
    found.retain(|address| !perhaps.contains(address));
    assert!(found == alive, "instant {}: {found:x?} of {alive:x?}", instant.number);
}

/// The addresses of codes that have not died, in order.
fn living(dump: &[u8]) -> Vec<u64> {
    let alive = loads(dump).filter(|code| code.died().is_none());
    let mut alive: Vec<u64> = alive.map(|code| code.address).collect();
    alive.sort_unstable();
    alive
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

#[test]
fn a_kill_during_an_announcement_loses_only_that_code() {
    observed::announcements::<Outsider>();
}

#[test]
fn a_kill_during_reuse_keeps_all_live_code() {
    observed::reuse::<Outsider>();
}

#[test]
fn a_kill_while_chunks_are_joined_or_split_keeps_all_live_code() {
    observed::joining_and_splitting::<Outsider>();
}

#[test]
fn a_kill_between_a_record_and_its_tail_loses_no_later_code() {
    // A reused chunk, with free space in front of a live code.
    let mut test = Observed::<Outsider>::new(1, true);
    let last = (1..).take_while(|n| test.load(n << 20, 5_001)).last().unwrap();
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

#[test]
fn a_kill_while_inherited_codes_are_copied_loses_none() {
    for first in [Some(200), None, Some(150_000)] {
        let mut test = Observed::<Outsider>::new(12, true);
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
        test.adopt();
        let own = Code::at(1 << 40, 100).named("the child's own");
        let own = test.log.load(&own, true, 1).unwrap();

        let inherited: Vec<u64> = test.handles.keys().copied().collect();
        let look = move |bytes: &[u8]| {
            let snapshot = code_log::snapshot(&bytes).unwrap();
            assert_eq!(snapshot.torn, 0);
            let mut alive = living(&snapshot.bytes);
            assert_eq!(alive.len(), loads(&snapshot.bytes).count(), "some died before the fork");
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
        for (address, (_, (position, index))) in &test.handles {
            assert!(test.log.living(*position, *index).is_some(), "{address:x}");
        }
        test.handles.insert(1 << 40, (Known::at(1 << 40), own));
        // From here on, it is a log like any other.
        assert!(test.load(1 << 41, 3_000));
        test.unload(2 << 20);
        test.finish();
    }
}
