//! Code logs whose words are not what their writer meant: read in this process, thousands of times.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::mutants::{Numbers, announce, bytes_of_log, damage_log};
use code_log::{Budget, Follower, Source, snapshot_within};
use jitscribe::Scribe;

/// A log with code alive and dead, and what is in use of it.
fn log() -> (Scribe, File, Vec<u8>) {
    let scribe = Scribe::builder().build();
    announce(&scribe, vec![[0xc3; 64]; 500].leak());
    let (file, bytes) = bytes_of_log(&scribe);
    (scribe, file, bytes)
}

/// Follows it, asks for each code, and follows it once more.
fn follow(log: &impl Source, size: usize) {
    let mut follower = Follower::new(None);
    for _ in 0..2 {
        let _ = follower.update(log, Budget::default(), |dump| dump.len() as u64);
        assert!(follower.len() <= size as u64 && follower.codes().count() as u64 == follower.len());
        for code in follower.codes().step_by(97) {
            let dump = follower.code(log, code, size).ok().flatten();
            assert!(dump.is_none_or(|dump| dump.len() <= size + 40));
            let _ = follower.died(log, code);
        }
    }
}

/// Reads it, and what came of it. Whatever it claims, no more comes of it than is there.
fn read(log: &impl Source, size: usize) {
    let Ok(snapshot) = snapshot_within(log, Budget::default()) else {
        let _ = Follower::new(None).update(log, Budget::default(), |_| 0);
        return;
    };
    follow(log, size);
    assert!(snapshot.bytes.len() <= size + 4096, "{} of {size}", snapshot.bytes.len());
    let Ok(dump) = jitdump::Dump::parse(&snapshot.bytes) else { return };
    for event in dump.codes().flatten() {
        if let jitdump::CodeEvent::Load(code) = event {
            assert!(code.lines().count() <= size && code.inlined().count() <= size);
        }
    }
}

#[test]
fn whatever_a_log_says_it_is_read_or_refused() {
    let (_scribe, _, sound) = log();
    let whole = code_log::snapshot(&sound.as_slice()).expect("a snapshot");
    assert_eq!((whole.codes, whole.torn, whole.is_cut), (500, 0, false));
    for seed in 1..=20_000 {
        let mut numbers = Numbers::new(seed);
        let mut bytes = sound.clone();
        damage_log(&mut numbers, &mut bytes);
        if numbers.next(8) == 0 {
            bytes.truncate(numbers.next(sound.len()));
        }
        read(&bytes.as_slice(), sound.len());
        // What is damaged does not change: following finds what a snapshot finds.
        let Ok(snapshot) = code_log::snapshot(&bytes.as_slice()) else { continue };
        let mut follower = Follower::new(None);
        let update = follower.update(&bytes.as_slice(), Budget::default(), |_| 0).expect("a log");
        assert_eq!((follower.len(), update.torn), (snapshot.codes, snapshot.torn), "{seed}");
    }
}

#[test]
fn a_log_that_is_written_over_while_it_is_read_is_read_or_refused() {
    let (_scribe, file, sound) = log();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut numbers = Numbers::new(u64::MAX);
            while !is_over.load(Ordering::Relaxed) {
                let mut bytes = sound.clone();
                for _ in 0..50 {
                    damage_log(&mut numbers, &mut bytes);
                    let at = numbers.next(bytes.len() / 4096) * 4096;
                    file.write_all_at(&bytes[at..at + 4096], at as u64).expect("a page");
                }
            }
        });
        let same = file.try_clone().expect("a descriptor");
        for _ in 0..1000 {
            // Chunks of a size that was never meant lie where something else does.
            read(&Short(&same, sound.len() as u64), 8 * sound.len());
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Nobody waits here for chunks that seem to be just being changed.
struct Short<'f>(&'f File, u64);

impl Source for Short<'_> {
    fn read_at(&self, at: u64, room: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.1.saturating_sub(at)).unwrap_or(usize::MAX);
        let count = room.len().min(left);
        Source::read_at(self.0, at, &mut room[..count])
    }

    fn may_change(&self) -> bool {
        false
    }
}

/// Bytes of which most are not there.
struct Sparse {
    there: Vec<u8>,
    size: u64,
    read: std::cell::Cell<u64>,
}

impl Source for Sparse {
    fn read_at(&self, at: u64, room: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(at)).unwrap_or(usize::MAX);
        let count = room.len().min(left);
        room[..count].fill(0);
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(self.there.len());
        let there = count.min(self.there.len() - from);
        room[..there].copy_from_slice(&self.there[from..from + there]);
        self.read.set(self.read.get() + count as u64);
        Ok(count)
    }

    fn next_data(&self, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
        let there = range.start..range.end.min(self.there.len() as u64);
        Ok(Some(there).filter(|there| !there.is_empty()))
    }

    fn may_change(&self) -> bool {
        false
    }
}

#[test]
fn holes_are_not_read() {
    let (_scribe, _, sound) = log();
    // How many chunks of this size there are said to be, up to the most that a log may have.
    for (chunk_size, chunks) in [(0x1_0000_u32, 0x8_0000_u32), (4096, 0x80_0000), (1 << 28, 128)] {
        let mut there = sound.clone();
        there[92..96].copy_from_slice(&chunk_size.to_ne_bytes());
        there[96..100].copy_from_slice(&chunks.to_ne_bytes());
        // The first one reaches to the end.
        there[4096 + 56..4096 + 60].copy_from_slice(&chunks.to_ne_bytes());
        let sparse = Sparse { there, size: 33 << 30, read: std::cell::Cell::new(0) };
        read(&sparse, sound.len());
        let read = sparse.read.get();
        assert!(read < 64 << 20, "{read} bytes read of {}", sound.len());
    }
}

#[test]
fn what_a_budget_does_not_allow_is_left_out_and_said() {
    let (_scribe, _, sound) = log();
    let source = sound.as_slice();
    let within = |budget| snapshot_within(&source, budget).expect("a snapshot");
    let usual = Budget::default();
    let cut = within(Budget { codes: 100, ..usual });
    assert!(cut.is_cut && cut.codes <= 100);
    let cut = within(Budget { held: 10_000, ..usual });
    assert!(cut.is_cut && cut.codes > 0 && cut.bytes.len() <= 10_000 + 4096);
    let cut = within(Budget { read: 20_000, ..usual });
    assert!(cut.is_cut && cut.codes < 500);
}
